from streamlearn.rules.composite import AdaptiveComposite
from streamlearn.rules.normalized_adaptive import NormalizedAdaptive
from streamlearn.rules.slot_state import Field as Field

class MirrorDescent(NormalizedAdaptive):
    def __init__(
        self, rate: float = 1.0, update: str = "invariant", size: str = "typical"
    ) -> None: ...

class CompositeMirrorDescent(AdaptiveComposite): ...
