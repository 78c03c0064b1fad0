from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamlearn.losses.loss import Loss, VectorLoss

_Array: TypeAlias = NDArray[np.float64]

class RowMatrix:
    def __init__(self, X: Any) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    def column_counts(self) -> NDArray[np.int64]: ...
    def squares(self) -> _Array: ...
    def add_squares(self, weights: _Array, start: int, stop: int, total: _Array) -> None: ...
    def scores(
        self, w: _Array, k: int, intercept: bool, start: int, stop: int, result: _Array
    ) -> None: ...
    def combine_rows(
        self, slopes: _Array, k: int, intercept: bool, start: int, stop: int, total: _Array
    ) -> None: ...

def value_and_gradient(
    X: RowMatrix,
    loss: Loss | VectorLoss,
    y: _Array,
    weights: _Array,
    w: _Array,
    k: int,
    intercept: bool,
    start: int,
    stop: int,
    gradient: _Array,
) -> float: ...
def derivatives(
    loss: Loss, scores: _Array, y: _Array, weights: _Array, slopes: _Array, curvatures: _Array
) -> float: ...
