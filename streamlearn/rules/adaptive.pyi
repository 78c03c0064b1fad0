from streamlearn.rules.adaptive_curvature import AdaptiveCurvature

class Adaptive(AdaptiveCurvature):
    def __init__(
        self,
        radius: float | None = None,
        gradient_bound: float | None = None,
        project: bool | float | None = None,
    ) -> None: ...
