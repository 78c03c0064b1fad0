from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.rules.rule import Field as Field
from streamlearn.rules.table import SlotTable

class FeatureSizes:
    fields: ClassVar[tuple[Field, ...]]
    width: int
    def attach(self, table: SlotTable, offset: int) -> None: ...
    def state(self) -> NDArray[np.float64]: ...
    def restore(self, cells: NDArray[np.float64]) -> None: ...

class LargestSizes(FeatureSizes): ...
class TypicalSizes(FeatureSizes): ...

SIZE_KINDS: dict[str, type[FeatureSizes]]
