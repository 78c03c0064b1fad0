from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.events import Events
from streamlearn.features.reader import Reader

_Array: TypeAlias = NDArray[np.float64]

KINDS: dict[str, int]
COLUMNS: tuple[str, ...]
SPREAD: int

def count_forms(form: Mapping[str, Any]) -> int: ...

@final
class Scorer:
    def __init__(
        self,
        forms: Sequence[Mapping[str, Any]],
        slots: int,
        table: _Array,
        stored: NDArray[np.int32] | None,
        index: NDArray[np.uint32] | None,
        intercept: _Array | None,
        free_intercept: _Array | None,
    ) -> None: ...
    @property
    def slots(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def score(self, rows: Events) -> _Array: ...
    def score_single(self, rows: Events) -> list[float]: ...
    def score_event(self, reader: Reader, event: Mapping[Any, Any]) -> list[float]: ...
    def weight(self, output: int, slot: int | None) -> float: ...
