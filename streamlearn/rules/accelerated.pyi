from streamlearn.rules.dual import Dual

class AcceleratedDualAveraging(Dual):
    def __init__(self, gamma: float = 1.0, smoothness: float | None = None) -> None: ...
    longest: float
    coming: float
    @property
    def gamma(self) -> float: ...
    @property
    def smoothness(self) -> float | None: ...
