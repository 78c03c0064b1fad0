from numpy.typing import ArrayLike

from streamlearn.rules.recorded_steps import RecordedSteps

class Dual(RecordedSteps):
    largest_gradient: float
    bound_sum: float
    charged: float
    slots_at_start: float
    statistic_state: list[float]
    @property
    def rho(self) -> float: ...
    def distance(self, u: ArrayLike | None) -> tuple[float, None] | tuple[None, str]: ...
    def farthest(self) -> float: ...
    def domain_changed(self) -> str | None: ...
