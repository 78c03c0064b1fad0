from typing import Any

from streamlearn.rules.slot_state import PerSlot as PerSlot
from streamlearn.rules.slot_state import SlotState

class FeatureSizes(SlotState):
    def scoring(self) -> dict[str, Any]: ...

class LargestSizes(FeatureSizes): ...
class TypicalSizes(FeatureSizes): ...

SIZE_KINDS: dict[str, type[FeatureSizes]]
