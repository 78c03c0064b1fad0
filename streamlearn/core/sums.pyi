from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

def add_in_order(totals: Array, values: Array) -> None: ...
def add_in_blocks(totals: Array, values: Array, used: int, size: int) -> Array: ...
