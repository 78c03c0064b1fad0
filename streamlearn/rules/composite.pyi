from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.rules.rule import Rule
from streamlearn.rules.self_tuning import Sized
from streamlearn.rules.slot_state import PerSlot as PerSlot

class Support:
    def __init__(
        self, rules: Sequence[Rule], places: Sequence[int] | NDArray[np.int64]
    ) -> None: ...

class Composite(Sized):
    selects: ClassVar[bool]
    def follow(self, leader: Composite) -> None: ...
    def restrict(self, support: Support) -> None: ...

class SizedComposite(Composite): ...

class AdaptiveComposite(SizedComposite):
    def __init__(self, rate: float, update: str, size: str) -> None: ...
    norm: float
    @property
    def rate(self) -> float: ...
    @property
    def update(self) -> str: ...
