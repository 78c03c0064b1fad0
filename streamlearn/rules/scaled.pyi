from numpy.typing import ArrayLike

from streamlearn.rules.recorded_steps import RecordedSteps

class Scaled(RecordedSteps):
    scale: float
    square: float
    peak: float
    changes: float
    largest_gradient: float
    bound_sum: float

class ProjectedSubgradient(Scaled):
    largest_loss: float
    largest_weight: float
    @property
    def project(self) -> bool | float | None: ...

def outside_ball(u: ArrayLike | None, radius: float) -> str | None: ...
def projection(owner: str, project: bool | float | None) -> bool | float | None: ...
