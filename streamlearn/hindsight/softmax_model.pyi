from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from streamlearn.hindsight.quadratic_model import Compressed, QuadraticModel

_Array: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]

@final
class SoftmaxModel(QuadraticModel):
    def __init__(
        self,
        rows: Compressed,
        places: _Indices,
        classes: _Indices,
        outputs: int,
        weights: _Array,
        l1: float,
        l2: float,
        intercept: bool,
    ) -> None: ...
    def bend(self, p: _Array) -> None: ...
    def initial_state(self) -> _Array: ...
    def descend(self, coordinates: _Indices) -> float: ...
    def form(self, d: _Array, state: _Array) -> float: ...
    def scores(self, d: _Array) -> _Array: ...
