from typing import Literal

from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import Penalty
from streamlearn.rules.event_rule import EventRule
from streamlearn.rules.rule import Rule

class PassiveAggressive(EventRule):
    def __init__(self, variant: Literal["", "I", "II"] = "I", C: float = 1.0) -> None: ...
    @property
    def variant(self) -> str: ...
    C: float

def hinge_or_epsilon_insensitive(
    rule: Rule, penalty: Penalty, loss: Loss | VectorLoss
) -> str | None: ...
