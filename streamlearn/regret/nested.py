"""The best fixed models of nested samples, each twice as large as the one before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamlearn.regret.comparator import minimize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.regret.comparator import Budget, ComparatorTask, Minimum, Sample


@dataclass(frozen=True)
class Nested:
    """The comparators of nested samples: of the largest one that was solved, and of its halves."""

    minimum: Minimum
    halves: tuple[Minimum, Minimum] | None = None  # the first and the second
    excess: float | None = None
    earlier: float | None = None  # the excess of the half, scaled to the whole
    last: bool = True  # whether this is the whole sample


def solved(
    sample: Sample, task: ComparatorTask, before: Minimum | None, *, gap: float, budget: Budget
) -> Iterator[Nested]:
    """Solve on the nested samples, the smallest first, as far as the budget allows."""
    start = None if before is None else before.solution
    result: Nested | None = None
    for end in sorted({end for end in sample.ends if end}):
        began = time.monotonic()
        whole = minimize(sample.part(0, end), task, start, gap=gap, budget=budget)
        if result is None:
            result = Nested(whole, last=end == len(sample))
        else:
            half = result.minimum
            rest = minimize(
                sample.part(half.rows, end), task, half.solution, gap=gap, budget=budget
            )
            if not (whole.finished and rest.finished):
                return
            excess = whole.value - half.value - rest.value
            earlier = None if result.excess is None else result.excess * end / half.rows
            result = Nested(whole, (half, rest), excess, earlier, last=end == len(sample))
        yield result
        if budget.stopped or 2.0 * (time.monotonic() - began) > budget.left:
            return
        start = result.minimum.solution
        if before is not None and before.rows >= 2 * end:
            start = before.solution
