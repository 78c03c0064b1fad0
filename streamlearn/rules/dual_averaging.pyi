from streamlearn.rules.dual import Dual

SCHEDULES: dict[str, int]

class DualAveraging(Dual):
    def __init__(self, gamma: float = 1.0, rho: float = 0.0, schedule: str = "sqrt") -> None: ...
    @property
    def gamma(self) -> float: ...
    @property
    def schedule(self) -> str: ...
