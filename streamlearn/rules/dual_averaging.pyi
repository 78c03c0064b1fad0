from streamlearn.rules.dual import Dual

SCHEDULES: dict[str, int]

class DualAveraging(Dual):
    def __init__(
        self, gamma: float | str = 1.0, rho: float = 0.0, schedule: str = "sqrt"
    ) -> None: ...
    gradients: float
    pace: float
    pace_gradients: float
    def slack(self) -> float: ...
    @property
    def gamma(self) -> float | str: ...
    @property
    def schedule(self) -> str: ...
