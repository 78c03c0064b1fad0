from streamlearn.rules.self_tuning import SelfTuning
from streamlearn.rules.slot_state import PerSlot as PerSlot

NAMES: tuple[str, ...]
FIELDS: tuple[PerSlot, ...]

class SparseMixture(SelfTuning):
    def __init__(self, share: float = 1e-3) -> None: ...
    features: float
    variance: float
    @property
    def members(self) -> tuple[str, ...]: ...
    shares: list[float]
    regrets: list[float]
    penalties: list[float]
    base_rate: list[float]
    @property
    def share(self) -> float: ...
