from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.events import Events
from streamlearn.engine.joint import Joint
from streamlearn.engine.rows import Rows
from streamlearn.engine.single import OneVersusRest, Single
from streamlearn.features.reader import Reader

_Array: TypeAlias = NDArray[np.float64]
_Learner: TypeAlias = Single | OneVersusRest | Joint

class Model:
    reader: Reader
    learner: _Learner
    codes: dict[Any, float] | None
    def __init__(
        self, reader: Reader, learner: _Learner, grows_when_scored: bool = False
    ) -> None: ...
    def waiting(self) -> None: ...
    def learn_one(self, event: Mapping[Any, Any], label: Any, weight: float) -> bool: ...
    def learn_coded(self, event: Mapping[Any, Any], y: float, weight: float) -> None: ...
    def check(self, event: Mapping[Any, Any]) -> None: ...
    def learn_targets(self, event: Mapping[Any, Any], targets: _Array, weight: float) -> None: ...
    def score_one(self, event: Mapping[Any, Any]) -> float: ...
    def run(
        self,
        events: Events,
        labels: _Array,
        weights: _Array,
        scores: _Array,
        start: int,
        stop: int,
    ) -> int: ...
    def correct(
        self,
        events: Events,
        i: int,
        y: float,
        weight: float,
        asked: _Array,
        before: float,
        weight_before: float,
    ) -> None: ...
    def scores_one(self, event: Mapping[Any, Any], names: list[Any]) -> dict[Any, float]: ...
    def class_one(self, event: Mapping[Any, Any], labels: list[Any]) -> Any: ...
    def classes_one(self, event: Mapping[Any, Any], labels: list[Any]) -> dict[Any, float]: ...
    def rows(self, X: Any, grow: bool) -> Rows: ...
