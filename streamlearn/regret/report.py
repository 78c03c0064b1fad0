"""A report on the regret of a learner."""

from __future__ import annotations

from dataclasses import dataclass

STDERRS = 2.0  # standard errors by which a bracket from a sample is widened
SOLVE_LONGER = "the comparator is not solved precisely enough; allow more time"
SAMPLE_MORE = "the sample of events is too small; use a larger sample or allow more time"


@dataclass(frozen=True)
class Report:
    """How far a learner is from the best fixed model on the events it has learned.

    events, weight: the number of events and the sum of their weights; with classes learned one
        versus the rest, those before the third class.
    progressive_loss: the weighted sum of the losses, each before its event was learned.
    objective: that plus the sum of Psi(w_t). `penalty` is "exact", or "sampled" if Psi was read
        from time to time and interpolated linearly in between.
    comparator: the objective of the fixed model u on the same events.
    regret_low, regret_high: the regret against u, and an upper bound on the regret against any
        other model of norm at most `radius`; `regret` is the first.
    certified: whether u was solved and measured on all events and `penalty` is exact, so that the
        bracket contains the truth.
    stderr: the standard error of both ends of the bracket if they are estimates, because u was
        fitted on one sample and measured on another, or `penalty` is sampled. 0 if certified.
    average_regret: `regret` / `events`.
    bound: the paper's bound on the regret against u; if None, see `why_no_bound`.
    nonzero, comparator_nonzero: the numbers of non-zero weights.
    solved_at, method: after how many events u was solved, and by which method.
    why_no_comparator: the reason if there is no comparator.
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
        """The lower and upper end of the regret; None if unknown, see `why_unknown`.

        For estimates, both ends are two standard errors wider. A bracket as wide as the learner's
        own objective counts as unknown, because it says nothing.

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
        """The reason and remedy if there is no bracket; None if there is one."""
        if self.bracket is not None:
            return None
        if self.regret_low is None or self.regret_high is None:
            return self.why_no_comparator
        return SOLVE_LONGER if self.certified else SAMPLE_MORE

    @property
    def average_regret(self) -> float | None:
        """Regret per event."""
        return None if self.regret is None else self.regret / max(self.events, 1)
