from collections.abc import Sequence
from typing import Any

from streamlearn.rules.rule import Rule
from streamlearn.rules.slot_state import PerSlot, SlotState

class Charges(SlotState):
    @property
    def fields(self) -> tuple[PerSlot, ...]: ...  # type: ignore[override]
    def __init__(self, rules: Sequence[Rule], l1: float, l2: float) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
