from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import Penalty
from streamlearn.rules.event_rule import EventRule
from streamlearn.rules.rule import Rule

class AROW(EventRule):
    def __init__(self, r: float = 1.0) -> None: ...
    @property
    def r(self) -> float: ...

def hinge(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None: ...
