from streamlearn.rules.composite import AdaptiveComposite
from streamlearn.rules.normalized_adaptive import NormalizedAdaptive
from streamlearn.rules.slot_state import PerSlot as PerSlot

class MirrorDescent(NormalizedAdaptive):
    def __init__(
        self, rate: float = 1.0, update: str = "invariant", size: str = "typical"
    ) -> None: ...

class CompositeMirrorDescent(AdaptiveComposite): ...
