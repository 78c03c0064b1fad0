from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.engine.events import Events
from streamlearn.features.reader import Reader

def rows_from_columns(
    reader: Reader,
    columns: Sequence[tuple[Any, NDArray[np.float64] | NDArray[np.intp], list[str] | None]],
    n: int,
    grow: bool,
) -> Events: ...
