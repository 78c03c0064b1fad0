from streamlearn.rules.adaptive_curvature import AdaptiveCurvature

class Proximal(AdaptiveCurvature):
    def __init__(
        self,
        radius: float | None = None,
        gradient_bound: float | None = None,
        project: bool | float | None = None,
        horizon: float | None = None,
    ) -> None: ...
    @property
    def horizon(self) -> float | None: ...

class OptimisticProximal(Proximal):
    def __init__(
        self,
        gradient_bound: float | None = None,
        accuracy: float = 0.0,
        restrained: bool = False,
    ) -> None: ...
    @property
    def accuracy(self) -> float: ...
    @property
    def restrained(self) -> bool: ...

def best_tau(l2: float, R: float, G: float, T: float) -> float: ...
