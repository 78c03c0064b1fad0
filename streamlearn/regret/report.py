"""A report on the regret of a learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """How far a learner is from the best fixed model on the events it has learned.

    events, weight: the number of events and the sum of their weights; with classes learned one
        versus the rest, those before the third class.
    progressive_loss: the weighted sum of the losses, each before its event was learned.
    objective: that plus the sum of Psi(w_t). `penalty` is "exact", or "sampled" if Psi was read
        from time to time and interpolated linearly in between.
    nonzero: the number of non-zero weights.

    The other fields describe the first `solved_at` events, on which the comparator was solved last:

    regret: the objective minus that of the best fixed model; None if unknown, see `why_unknown`.
        An estimate, or if `certified` the regret against the fixed model that was found.
    regret_low, regret_high: a bracket of the regret. If `certified` it contains the true value.
        Otherwise it includes two standard errors of each end.
    certified: whether the comparator was solved on all events and `penalty` is exact.
    stderr: the standard error of `regret`. 0 if certified.
    comparator: the objective of the best fixed model, `regret` below that of the learner.
    bound: the paper's bound on the regret against it; if None, see `why_no_bound`.
    comparator_nonzero: its number of non-zero weights.
    sampled: how many events it was solved on.
    method: how it was solved.
    why_unknown: why the regret is unknown, and what to do.
    """

    events: int
    weight: float
    progressive_loss: float
    objective: float
    penalty: str
    nonzero: int | None = None
    regret: float | None = None
    regret_low: float | None = None
    regret_high: float | None = None
    stderr: float = 0.0
    certified: bool = False
    comparator: float | None = None
    bound: float | None = None
    why_no_bound: str | None = None
    comparator_nonzero: int | None = None
    solved_at: int = 0
    sampled: int = 0
    method: str | None = None
    why_unknown: str | None = None

    @property
    def average_regret(self) -> float | None:
        """Regret per event.

        >>> Report(9, 9.0, 6.0, 6.0, "exact", regret=2.0, solved_at=8).average_regret
        0.25
        """
        return None if self.regret is None else self.regret / self.solved_at
