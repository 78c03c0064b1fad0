from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from streamlearn.hindsight.dual_problem import DualProblem
from streamlearn.hindsight.passes import RowMatrix
from streamlearn.losses import Loss

_Array: TypeAlias = NDArray[np.float64]

class DualAscent(DualProblem):
    def __init__(
        self,
        rows: RowMatrix,
        loss: Loss,
        labels: _Array,
        weights: _Array,
        l1: float,
        l2: float,
        *,
        seed: int = 0,
        averaged: bool = False,
    ) -> None: ...
    @property
    def estimate(self) -> float: ...
    def begin(self, again: bool = False) -> None: ...

@final
class SingleSteps(DualAscent):
    def run(self, examples: int) -> bool: ...

@final
class BatchSteps(DualAscent):
    def __init__(
        self,
        rows: RowMatrix,
        loss: Loss,
        labels: _Array,
        weights: _Array,
        l1: float,
        l2: float,
        *,
        size: int,
        update: str,
        safe_beta: float,
        seed: int = 0,
        averaged: bool = False,
    ) -> None: ...
    @property
    def safe_beta(self) -> float: ...
    @property
    def beta(self) -> float: ...
    def run(self, examples: int) -> bool: ...
