"""The regret of learners, from a sample of their events and the best fixed models of it.

docs/concepts/regret.md derives the estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from streamlearn.regret.comparator import Minimum, costs
from streamlearn.regret.extrapolation import correction
from streamlearn.regret.member import FixedModel
from streamlearn.regret.strata import Strata

if TYPE_CHECKING:
    from streamlearn.regret.comparator import ComparatorTask, FixedCosts, Sample
    from streamlearn.regret.member import ComparedLearner
    from streamlearn.regret.nested import Nested

STDERRS = 2.0  # by which each end of a bracket is wider than its estimate
WIDEST = 0.1  # a bracket wider than this share of the objective says too little,
WIDEST_OF_REGRET = 0.25  # unless the regret is far larger
DOUBT = 0.02  # the largest doubt about the estimate, as a share of the objective
SPARE = 1.25  # by which the memory that would do is larger than the estimate
FEW = 2_000  # rows, when nothing better is known
OTHER_EVENTS = "it skipped events that other learners of the same sample learned"
MORE_TIME = "the best fixed model is not solved precisely enough; allow more time"


@dataclass(frozen=True)
class Findings:
    """The regret of a learner at the moment of a solve; see `Report` for the fields."""

    solved_at: int
    sampled: int
    minimum: Minimum
    settled: bool  # whether more time would change nothing
    regret: float | None = None
    regret_low: float | None = None
    regret_high: float | None = None
    stderr: float = 0.0
    certified: bool = False
    comparator: float | None = None
    why_unknown: str | None = None


class SampledCosts:
    """The sampled rows with the costs of fixed models there, for all members of a comparison."""

    def __init__(
        self,
        sample: Sample,
        task: ComparatorTask,
        nested: Nested,
        members: list[ComparedLearner],
        weight: float,
        memory_bytes: int | None,
    ) -> None:
        self.sample = sample
        self.nested = nested
        self.weight = weight  # of all events
        self.memory_bytes = memory_bytes
        best = nested.minimum
        if sample.strata is None:
            return
        self.strata = sample.strata
        solved = sample.part(0, best.rows)
        self.best_losses = costs(solved, task, best.solution).losses
        # models with the rows that they were fitted to
        self.halves: list[tuple[slice, FixedCosts]] = []
        self.candidates: list[tuple[slice, FixedCosts]] = []
        if nested.halves is not None:
            middle = nested.halves[0].rows
            parts = slice(middle), slice(middle, best.rows)
            for own, half in zip(parts, nested.halves, strict=True):
                self.halves.append((own, costs(solved, task, half.solution)))
        if best.rows < len(sample):
            own = slice(0, best.rows)
            self.candidates.append((own, costs(sample, task, best.solution)))
        fixed = [member.candidate for member in members if member.candidate is not None]
        zero = FixedModel(np.zeros_like(best.solution.w), 0.0 * np.asarray(best.solution.intercept))
        self.candidates += [(slice(0), costs(sample, task, u)) for u in (*fixed, zero)]

    def findings(self, member: ComparedLearner) -> Findings:
        """Return the regret of a member."""
        best = self.nested.minimum
        common: dict[str, Any] = {
            "solved_at": int(self.sample.events),
            "sampled": best.rows,
            "minimum": best,
        }
        common["settled"] = best.finished and self.nested.last
        if (member.events, member.weight) != (self.sample.events, self.weight):
            return Findings(**common, why_unknown=OTHER_EVENTS)
        if self.sample.complete:
            return certified(member, best, common)
        return self._estimated(member, common)

    def _estimated(self, member: ComparedLearner, common: dict[str, Any]) -> Findings:
        nested, N = self.nested, self.sample.events
        if nested.excess is None or nested.earlier is None:
            reason = MORE_TIME
            if nested.last:
                reason = too_small(member, FEW, len(self.sample), self.memory_bytes)
            return Findings(**common, why_unknown=reason)
        n = nested.minimum.rows
        size = abs(member.objective)
        if N / n * nested.excess < -0.5 * DOUBT * size:  # a minimum that falls with more events
            reason = too_small(member, 2 * n, n, self.memory_bytes) if nested.last else MORE_TIME
            return Findings(**common, why_unknown=reason)
        fixed = correction(nested.excess, nested.earlier, n, N)
        inside = N / n * nested.minimum.value
        stderr = math.hypot(self._error_inside(), member.stderr)
        noise = self._noise() / nested.excess if nested.excess > 0.0 else 0.0
        slack, seen = N / n * nested.minimum.slack, member.objective - inside
        low = seen - fixed.most - STDERRS * math.hypot(stderr, noise * fixed.most) - slack
        low = max(low, self._low(member))
        high = seen - fixed.least + STDERRS * math.hypot(stderr, noise * fixed.least) + slack
        high = max(low, high)
        regret = min(max(seen - fixed.middle, low), high)
        stderr = math.hypot(stderr, noise * fixed.middle)
        doubt = 0.5 * (fixed.most - fixed.least)
        allowed = max(WIDEST * size, WIDEST_OF_REGRET * abs(regret))
        if not (high - low <= allowed and doubt <= DOUBT * size):
            if not nested.last:
                return Findings(**common, why_unknown=MORE_TIME)
            chance = 2.0 * STDERRS * stderr
            excess = max((high - low - chance) / allowed, doubt / (DOUBT * size))
            rows = enough(n, N, max(excess, 0.0), chance / allowed)
            return Findings(**common, why_unknown=too_small(member, rows, n, self.memory_bytes))
        return Findings(
            **common,
            regret=regret,
            regret_low=low,
            regret_high=high,
            stderr=stderr,
            comparator=member.objective - regret,
        )

    def _error_inside(self) -> float:
        """Return the standard error of the minimum over the solved rows, scaled to the stream.

        It is that of the losses of the models of both halves, each at the rows of the other.
        """
        rows, N = self.nested.minimum.rows, self.sample.events
        strata = self.strata.part(slice(rows))
        if rows < len(self.sample):  # whose weights are those of the whole sample
            strata = Strata.single(strata.weights, self.weight)
        (first, paid_by_first), (second, paid_by_second) = self.halves
        losses = np.concatenate([paid_by_second.losses[first], paid_by_first.losses[second]])
        return strata.error(losses) * math.sqrt(max(0.0, 1.0 - rows / N))

    def _noise(self) -> float:
        """Return the standard error of the excess, half a sum of weighted chi-squares.

        The weights are the eigenvalues of H^-1 C. The loss at a row differs between the fits to
        half of the rows and to all of them, and the squares add up to those of the weights.
        """
        squares = 0.0
        for own, paid in self.halves:
            change = self.sample.weights[own] * (paid.losses[own] - self.best_losses[own])
            squares += float(np.einsum("i,i->", change, change))
        return math.sqrt(0.5 * squares)

    def _low(self, member: ComparedLearner) -> float:
        """Return the largest regret against a fixed model that is certain up to chance."""
        found = [outside(self.strata, self.sample.events, *one) for one in self.candidates]
        # the mean of two models, each at the rows of the other: all rows lower the chance
        rows = self.strata.part(slice(self.nested.minimum.rows))
        totals, errors = zip(
            *(outside(rows, self.sample.events, *one) for one in self.halves), strict=True
        )
        found.append((0.5 * sum(totals), 0.5 * math.hypot(*errors)))
        z = -float(ndtri(0.5 * math.erfc(STDERRS / math.sqrt(2.0)) / len(found)))
        return max(
            member.objective - total - z * math.hypot(error, member.stderr)
            for total, error in found
        )


def outside(strata: Strata, events: float, own: slice, paid: FixedCosts) -> tuple[float, float]:
    """Return the objective of a model that was fitted to its own rows, and its standard error."""
    others, losses = strata.without(own), np.delete(paid.losses, own)
    seen = float(strata.weights[own] @ paid.losses[own])
    total = seen + float(others.calibrated() @ losses) + events * paid.charge
    left = 1.0 - len(losses) / (events - len(strata.cells[own]))
    return total, others.error(losses) * math.sqrt(max(0.0, left))


def findings_of_all(
    member: ComparedLearner, best: Minimum, events: float, weight: float
) -> Findings:
    """Return the regret of a member against the best fixed model of all events."""
    common: dict[str, Any] = {
        "solved_at": int(events),
        "sampled": best.rows,
        "minimum": best,
        "settled": best.finished,
    }
    if (member.events, member.weight) != (events, weight):
        return Findings(**common, why_unknown=OTHER_EVENTS)
    return certified(member, best, common)


def certified(member: ComparedLearner, best: Minimum, common: dict[str, Any]) -> Findings:
    """Return the regret against the best fixed model of all events, within its gap."""
    error = STDERRS * member.stderr
    low, high = member.objective - best.above - error, member.objective - best.below + error
    if high > low and not high - low < abs(member.objective):
        return Findings(**common, why_unknown=MORE_TIME)
    return Findings(
        **common,
        regret=member.objective - best.above,
        regret_low=low,
        regret_high=high,
        stderr=member.stderr,
        certified=member.exact,
        comparator=best.above,
    )


def enough(rows: int, events: float, systematic: float, chance: float) -> int:
    """Return how many of the events would make a bracket narrow enough.

    `systematic` and `chance` are parts of its width now, in units of the widest. The first falls
    with the number of rows, the second with its root, and both vanish with all events.

    >>> enough(1000, 1e6, 0.0, 2.0), enough(1000, 1e6, 2.0, 0.0), enough(1000, 1500, 50.0, 0.0)
    (3989, 1999, 1486)
    """
    low, high = float(rows), float(events)
    now = 1.0 - rows / events
    for _ in range(60):
        n = math.sqrt(low * high)
        left = rows / n * (1.0 - n / events) / now if now > 0.0 else 0.0
        if systematic * left + chance * math.sqrt(left) > 1.0:
            low = n
        else:
            high = n
    return min(math.ceil(high), int(events))


def too_small(member: ComparedLearner, rows: int, now: int | None, memory_bytes: int | None) -> str:
    """Say how much memory would do."""
    rows = int(float(f"{min(SPARE * rows, member.events):.2g}"))
    needed = ""
    if now and memory_bytes:
        needed = f" (memory_bytes={float(f'{memory_bytes * rows / now:.2g}'):.0f})"
    return f"the sample of events is too small: memory for about {rows:,} events would do{needed}"
