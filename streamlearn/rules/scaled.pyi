from numpy.typing import ArrayLike

from streamlearn.rules.rule import Rule

class Scaled(Rule):
    scale: float
    square: float
    peak: float
    changes: float
    largest_gradient: float
    spent: float

class Ballistic(Scaled):
    largest_loss: float
    largest_weight: float
    @property
    def project(self) -> bool | float | None: ...

def outside(u: ArrayLike | None, radius: float) -> str | None: ...
def projection(owner: str, project: bool | float | None) -> bool | float | None: ...
