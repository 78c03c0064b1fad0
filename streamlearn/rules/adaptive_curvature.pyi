from streamlearn.rules.scaled import ProjectedSubgradient

class AdaptiveCurvature(ProjectedSubgradient):
    R: float
    curvature: float
    since: float
    @property
    def radius(self) -> float | None: ...
    @property
    def gradient_bound(self) -> float | None: ...

def optional(owner: str, name: str, value: object) -> float | None: ...
