from typing import final

import numpy as np
from numpy.typing import NDArray

from streamlearn.late.places import Places

@final
class Settled:
    @property
    def count(self) -> int: ...
    def state(self) -> dict[str, NDArray[np.generic]]: ...
    def restore(self, state: dict[str, NDArray[np.generic]], places: Places) -> None: ...
    def __sizeof__(self) -> int: ...
