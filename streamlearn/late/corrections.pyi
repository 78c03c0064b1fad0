from typing import Any, final

from streamlearn.core.arrays import Array
from streamlearn.engine.events import Events
from streamlearn.engine.row_learner import RowLearner
from streamlearn.estimators.linear import LabeledRun, Linear
from streamlearn.late.held import HeldEvents
from streamlearn.late.joined_rows import JoinedRows
from streamlearn.late.tickets import TicketPool

CORRECTED: int
PREDICTED: int
TIMED_OUT: int

@final
class LearnedTimeouts:
    def __init__(self, seed: int, ticket_pool: TicketPool) -> None: ...
    @property
    def events(self) -> HeldEvents: ...
    def release_all(self) -> None: ...

class Corrections:
    label: Any
    scores: Array
    def __init__(self, label: Any) -> None: ...
    def learn_part(self, estimator: Linear, rows: JoinedRows, part: LabeledRun) -> None: ...
    def note(self, rows: JoinedRows, part: LabeledRun, first: int, last: int) -> None: ...
    def correct(self, estimator: Linear, rows: JoinedRows, part: LabeledRun, i: int) -> None: ...

def relearn(
    learner: RowLearner,
    rows: Events,
    i: int,
    y: float,
    weight: float,
    old_y: float,
    old_weight: float,
    scores: Array,
) -> None: ...
def check_corrections(estimator: Linear) -> None: ...
