from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[np.float64]

class ColumnMatrix:
    def __init__(self, X: Any) -> None: ...
    def curvatures(self, columns: NDArray[np.int64], h: _Array, l2: _Array) -> _Array: ...
    def descend(
        self,
        columns: NDArray[np.int64],
        curvatures: _Array,
        g: _Array,
        h: _Array,
        l1: _Array,
        l2: _Array,
        w: _Array,
        d: _Array,
        moved: _Array,
    ) -> float: ...
