from streamlearn.rules.recorded_steps import RecordedSteps
from streamlearn.rules.scaled import Scaled
from streamlearn.rules.schedules import Schedule

class ForwardBackward(Scaled):
    def __init__(self, step: float | Schedule) -> None: ...
    @property
    def step(self) -> Schedule: ...

class L1ForwardBackward(RecordedSteps):
    def __init__(self, step: float | Schedule) -> None: ...
    scale: float
    drift: float
    @property
    def step(self) -> Schedule: ...
