"""What a tracker reports of a learner."""

from __future__ import annotations

from dataclasses import dataclass

STDERRS = 2.0  # by which the ends of a bracket from a sample are further out
SOLVE_LONGER = "its comparator is not solved closely enough: it needs more time"
SAMPLE_MORE = "its sample of events is too small: it needs more memory, or more time to solve"


@dataclass(frozen=True)
class Report:
    """How far a learner is from the best fixed model of the events it has learned.

    events, weight: how many, and the sum of their weights; of classes that are learned one versus
        the rest, those before the third class came.
    progressive_loss: the weighted sum of the losses, each before its event was learned.
    objective: that plus the sum of Psi(w_t); `penalty` says how it was taken: "exact", or
        "sampled": Psi was read from time to time, and is assumed linear in between.
    comparator: the objective of the fixed model u that was found, on the same events.
    regret_low, regret_high: the regret against u, and what it is at most against any other;
        `regret` is the first. Those with |u| above `radius` do not count (infinite: all do).
    certified: whether u was found and measured on all events and `penalty` is exact, so that the
        bracket contains the truth.
    stderr: the standard error of both ends of the bracket if they are estimates: u was fitted on
        one sample of the events and measured on another, or `penalty` is sampled. 0 if certified.
    average_regret: `regret` / `events`.
    bound: the paper's bound on the regret against u, or None: `why_no_bound`.
    nonzero, comparator_nonzero: how many weights are not 0.
    solved_at: after how many events u was found; method: how.
    why_no_comparator: why all of that is None, if it is.
    """

    events: int
    weight: float
    progressive_loss: float
    objective: float
    penalty: str
    nonzero: int | None = None
    comparator: float | None = None
    regret: float | None = None
    regret_low: float | None = None
    regret_high: float | None = None
    stderr: float = 0.0
    certified: bool = False
    radius: float = float("inf")
    bound: float | None = None
    why_no_bound: str | None = None
    comparator_nonzero: int | None = None
    solved_at: int = 0
    method: str | None = None
    why_no_comparator: str | None = None

    @property
    def bracket(self) -> tuple[float, float] | None:
        """What the regret is at least and at most; None where it is unknown: `why_unknown`.

        Of a sample both ends are two standard errors further out. A bracket as wide as the
        learner's own objective says nothing: the regret may be nothing, or all that was paid.

        >>> Report(9, 9.0, 6.0, 6.0, "exact", regret_low=2.0, regret_high=2.5).bracket
        (2.0, 2.5)
        >>> wide = Report(9, 9.0, 6.0, 6.0, "exact", regret_low=0.0, regret_high=6.0)
        >>> wide.bracket, wide.why_unknown == SAMPLE_MORE
        (None, True)
        """
        if self.regret_low is None or self.regret_high is None:
            return None
        low = self.regret_low - STDERRS * self.stderr
        high = self.regret_high + STDERRS * self.stderr
        return (low, high) if high - low < abs(self.objective) else None

    @property
    def why_unknown(self) -> str | None:
        """Why there is no bracket, with what would make it known; None if there is one."""
        if self.bracket is not None:
            return None
        if self.regret_low is None or self.regret_high is None:
            return self.why_no_comparator
        return SOLVE_LONGER if self.certified else SAMPLE_MORE

    @property
    def average_regret(self) -> float | None:
        """Regret per event."""
        return None if self.regret is None else self.regret / max(self.events, 1)
