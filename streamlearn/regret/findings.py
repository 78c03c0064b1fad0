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

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.regret.comparator import ComparatorTask, Sample
    from streamlearn.regret.member import ComparedLearner
    from streamlearn.regret.nested import Nested

STDERRS = 2.0  # by which each end of a bracket is wider than its estimate
WIDEST = 0.1  # a bracket wider than this share of the objective says too little,
WIDEST_OF_REGRET = 0.25  # unless the regret is far larger
TYPICAL = 4.0  # standard errors by which a mean of losses may be off
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
        self.best_costs = costs(sample.part(0, best.rows), task, best.solution)
        self.half_costs: Array | None = None
        # costs at all rows of models that were fitted to the first `fitted` of them
        self.candidates: list[tuple[int, Array]] = []
        if sample.complete:
            return
        if nested.half is not None:
            found = costs(sample, task, nested.half.solution)
            self.half_costs = found[nested.half.rows : best.rows]
            self.candidates.append((nested.half.rows, found))
        if best.rows < len(sample):
            self.candidates.append((best.rows, costs(sample, task, best.solution)))
        fixed = [member.candidate for member in members if member.candidate is not None]
        self.candidates += [(0, costs(sample, task, u)) for u in fixed]
        zero = FixedModel(np.zeros_like(best.solution.w), 0.0 * np.asarray(best.solution.intercept))
        self.candidates.append((0, costs(sample, task, zero)))

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
        fixed = correction(nested.excess, nested.earlier, n, N)
        inside, stderr = self._optimum(member, n)
        # the excess is half a chi-square sum in units of twice the mean loss
        noise = N / n * math.sqrt(2.0 * max(nested.excess, 0.0) * abs(inside) / N)
        stderr = math.hypot(stderr, member.stderr, noise)
        slack = N / n * nested.minimum.slack
        high = member.objective - (inside - slack + fixed.least) + STDERRS * stderr
        low = self._low(member)
        regret = min(max(member.objective - inside - fixed.middle, low), high)
        size = abs(member.objective)
        allowed = max(WIDEST * size, WIDEST_OF_REGRET * abs(regret))
        if not (high - low <= allowed and fixed.doubt <= DOUBT * size):
            if not nested.last:
                return Findings(**common, why_unknown=MORE_TIME)
            chance = STDERRS * 2.0 * stderr
            excess = max((high - low - chance) / allowed, fixed.doubt / (DOUBT * size))
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

    def _optimum(self, member: ComparedLearner, n: int) -> tuple[float, float]:
        """Return the minimum over the first n rows, scaled to the stream, and its stderr.

        The chance in the fit is that of the costs at the best model of the whole stream: less than
        at rows that the model was not fitted to, more than at those it was fitted to.
        """
        losses = member.losses_of(self.sample)
        known = None if losses is None else losses[:n]
        paid, N = member.progressive_loss, self.sample.events
        mean, error = regression(self.best_costs, known, paid, N)
        if self.half_costs is not None:
            start = n - len(self.half_costs)
            other = None if known is None else known[start:]
            outside = regression(self.half_costs, other, paid, N)[1]
            outside *= math.sqrt(len(self.half_costs) / n)
            error = math.hypot(error, outside) / math.sqrt(2.0)
        middle = self.nested.minimum.value - self.nested.minimum.above
        left = math.sqrt(max(0.0, 1.0 - n / N))
        return N * (mean + middle / n), N * error * left

    def _low(self, member: ComparedLearner) -> float:
        """Return the largest regret against a fixed model that is certain up to chance."""
        z = -float(ndtri(0.5 * math.erfc(STDERRS / math.sqrt(2.0)) / len(self.candidates)))
        losses, N = member.losses_of(self.sample), self.sample.events
        lows = []
        for fitted, cost in self.candidates:
            fresh, rest = cost[fitted:], N - fitted
            known = None if losses is None else losses[fitted:]
            seen = 0.0 if losses is None else float(losses[:fitted].sum())
            mean, error = regression(fresh, known, member.progressive_loss - seen, rest)
            left = math.sqrt(max(0.0, 1.0 - len(fresh) / rest))
            total = float(cost[:fitted].sum()) + rest * mean
            chance = z * math.hypot(rest * error * left, member.stderr)
            lows.append(member.objective - total - chance)
        return max(lows)


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


def regression(
    costs: Array, losses: Array | None, total: float, events: float
) -> tuple[float, float]:
    """Estimate the mean cost over all events, of which these are a sample, and its error.

    The learner's losses at the same events, whose `total` over all events is known, explain part of
    the chance ([Cochran77] chapter 7). They are not used if their mean is far off, because a few
    huge losses, such as of the first events, are missing in the sample.
    """
    n = len(costs)
    mean, residuals = float(costs.mean()), costs - costs.mean()
    if losses is not None:
        centered = losses - losses.mean()
        square = float(np.einsum("i,i->", centered, centered))
        off = float(losses.mean()) - total / events
        if n * off * off < TYPICAL**2 * square / n:
            slope = float(np.einsum("i,i->", residuals, centered)) / square
            mean -= slope * off
            residuals = residuals - slope * centered
    variance = float(np.einsum("i,i->", residuals, residuals)) / max(n - 2, 1)
    return mean, math.sqrt(variance / n)


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
