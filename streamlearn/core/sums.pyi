from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[np.float64]

def add_in_order(totals: _Array, values: _Array) -> None: ...
def add_in_blocks(totals: _Array, values: _Array, used: int, size: int) -> _Array: ...
