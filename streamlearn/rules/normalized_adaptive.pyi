from streamlearn.rules.self_tuning import Normalized

UPDATES: dict[str, int]

class NormalizedAdaptive(Normalized):
    def __init__(
        self, rate: float = 1.0, update: str = "explicit", size: str = "largest"
    ) -> None: ...
    norm: float
    @property
    def rate(self) -> float: ...
    @property
    def kind(self) -> str: ...
