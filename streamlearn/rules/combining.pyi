from collections.abc import Sequence

from numpy.typing import ArrayLike

from streamlearn.core.arrays import Array
from streamlearn.rules.slot_state import SlotState

HOW: dict[str | None, int]

def combine(
    result: SlotState,
    base: SlotState,
    workers: Sequence[SlotState],
    n: int,
    events: ArrayLike,
    evidence: str | None,
    farther: float = 0.0,
) -> Array | None: ...
