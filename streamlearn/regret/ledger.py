"""The objective of a learner, and that of the best fixed model on the same events."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.integers import is_integer
from streamlearn.core.parameters import number
from streamlearn.regret.comparator import (
    Comparator,
    ComparatorTask,
    Sample,
    estimate_objective,
    objective_and_bound,
    sample_from_snapshot,
    solve_comparator,
    why_unsolvable,
)
from streamlearn.regret.progressive_sums import ProgressiveSums
from streamlearn.regret.report import Report

if TYPE_CHECKING:
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty

GROWTH = 1.25
FIRST_SOLVE = 1000  # events before the first background solve


class Ledger:
    """The progressive objective of a learner, and its best fixed model in hindsight.

    Fed by a learner whose watcher is `sums`, or with batches (`observe`). Everything except the
    comparator depends on the events alone, not on the timing of solves.

    Parameters
    ----------
    loss, penalty
        Those of the learner.
    intercept
        Its placement: "none", "free" (not penalized) or "inside" the penalty.
    sample_size
        How many events to keep. While these are all events, the bracket is certified if the sum of
        Psi(w_t) is exact. After that, one half of a uniform sample fits the comparator and the
        other half measures it.
    seed
        Of the sample.
    gap
        The precision of the comparator's objective, per event.
    seconds
        The time limit of a background solve.
    cpu_share
        The share of a core that a background solve may use.
    """

    def __init__(
        self,
        loss: Loss | VectorLoss,
        penalty: Penalty,
        *,
        intercept: str = "none",
        sample_size: int = 100_000,
        seed: int = 0,
        targets: int = 1,
        gap: float = 1e-4,
        seconds: float = 30.0,
        cpu_share: float = 0.05,
    ) -> None:
        if not is_integer(sample_size) or not 10 <= sample_size < 2**31:
            raise ValueError(f"sample_size must be an integer of at least 10, not {sample_size!r}")
        if not is_integer(seed) or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be an integer from 0 to 2^64 - 1, not {seed!r}")
        self.loss = loss
        self.penalty = penalty
        self.intercept = intercept
        self.gap = number("Ledger", "gap", gap, above=0.0)
        self.seconds = number("Ledger", "seconds", seconds, low=0.0)
        self.cpu_share = number("Ledger", "cpu_share", cpu_share, above=0.0, high=1.0)
        free = penalty.simple and penalty.l1 == penalty.l2 == 0.0
        self.sums = ProgressiveSums(loss, sample_size, seed, targets, penalized=not free)
        # The sample starts in the order of the events, so it is split into halves at random.
        self._order = np.random.default_rng(seed).permutation(sample_size)
        self._comparator: Comparator | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self.sums.wake = self._solve_if_idle
        self.sums.wake_at(FIRST_SOLVE)

    # -- events -----------------------------------------------------------------------------------

    def observe(
        self,
        starts: Any,
        slots: Any,
        values: Any,
        labels: Any,
        weights: Any,
        scores: Any,
        penalty_value: float | None = None,
    ) -> None:
        """Add a batch of CSR rows, with the score of each before it was learned.

        `labels` are the codes that the loss takes; rows of weight 0 do not count. `penalty_value`
        is Psi(w) after the batch.
        """
        self.sums.observe(starts, slots, values, labels, weights, scores)
        if penalty_value is not None:
            self.sums.record_penalty(penalty_value)

    @property
    def objective(self) -> float:
        """The sum over all events of the loss before learning and of Psi(w_t)."""
        return self.sums.progressive_loss + self.sums.penalty_estimate()[0]

    @property
    def task(self) -> ComparatorTask:
        """What the comparator minimizes."""
        loss = self.sums.loss
        return ComparatorTask(loss, self.penalty, self.intercept, self.sums.outputs)

    # -- the comparator ---------------------------------------------------------------------------

    def _solve_if_idle(self) -> float:
        """Start a background solve unless one runs; return after how many events to retry."""
        events = self.sums.events
        if self._closed:
            return math.inf
        if self._thread is not None and self._thread.is_alive():
            return events * (1.0 + 0.1 * (GROWTH - 1.0))
        rows = self.sums.reservoir.snapshot()
        self._thread = threading.Thread(
            target=self._solve_in_background,
            args=(rows, events, self.task),
            name="regret",
            daemon=True,
        )
        self._thread.start()
        return events * GROWTH

    def _solve_in_background(
        self, rows: dict[str, Any], events: float, task: ComparatorTask
    ) -> None:
        if why_unsolvable(task) is None:
            sample = self._fitting_part(sample_from_snapshot(rows, events, task))
            rows.clear()  # copied: the reservoir may reuse their memory
            self._solve(sample, task, self.seconds, self.cpu_share)

    def _solve(self, sample: Sample, task: ComparatorTask, seconds: float, share: float) -> None:
        comparator = solve_comparator(
            sample,
            task,
            self._comparator,
            gap=self.gap,
            seconds=seconds,
            share=share,
            cancelled=lambda: self._closed,
        )
        if self._comparator is None or comparator.events >= self._comparator.events:
            self._comparator = comparator

    def _fitting_part(self, sample: Sample) -> Sample:
        return sample if sample.complete else sample.part(self._halves(sample)[0])

    def _halves(self, sample: Sample) -> tuple[Any, Any]:
        order = self._order[self._order < len(sample.y)]
        middle = len(order) // 2
        return np.sort(order[:middle]), np.sort(order[middle:])

    def wait(self) -> None:
        """Wait for a running background solve."""
        if self._thread is not None:
            self._thread.join()

    def close(self, *, wait: bool = True) -> None:
        """Stop a background solve at its next step, and start no other."""
        self._closed = True
        if wait:
            self.wait()

    def report(self, seconds: float = 10.0) -> Report:
        """Return the current report, after solving the comparator for up to `seconds`."""
        sums, task = self.sums, self.task
        penalties, stderr, exact = sums.penalty_estimate()
        paid = Report(
            events=int(sums.events),
            weight=sums.weight,
            progressive_loss=sums.progressive_loss,
            objective=sums.progressive_loss + penalties,
            penalty="exact" if exact else "sampled",
            stderr=stderr,
        )
        why = "no event was learned yet" if not sums.events else why_unsolvable(task)
        if sums.reservoir.failed:
            why = "there was not enough memory for the sample of events"
        if why is not None:
            return dataclasses.replace(paid, why_no_comparator=why)
        sample = sample_from_snapshot(sums.reservoir.snapshot(), sums.events, task)
        fit = self._fitting_part(sample)
        if seconds > 0.0:
            self._solve(fit, task, seconds, 1.0)
        comparator = self._comparator
        if comparator is None:
            return dataclasses.replace(paid, why_no_comparator="the comparator is not solved yet")
        return dataclasses.replace(paid, **self._compared(paid, sample, fit, task, comparator))

    def _compared(
        self,
        paid: Report,
        sample: Sample,
        fit: Sample,
        task: ComparatorTask,
        comparator: Comparator,
    ) -> dict[str, Any]:
        objective, stderr = paid.objective, paid.stderr
        total, bound = objective_and_bound(fit, task, comparator)
        if not sample.complete:
            rows = self._halves(sample)[1]
            total, error = estimate_objective(sample.part(rows), task, comparator)
            stderr = math.hypot(stderr, error)
        return {
            "comparator": total,
            "regret": objective - total,
            "regret_low": objective - total,
            # Estimates from two samples may be out of order.
            "regret_high": objective - min(bound, total),
            "stderr": stderr,
            "certified": sample.complete and paid.penalty == "exact",
            "radius": comparator.radius,
            "comparator_nonzero": self._nonzero(comparator),
            "solved_at": int(comparator.events),
            "method": comparator.solution.method,
        }

    def _nonzero(self, comparator: Comparator) -> int:
        w = comparator.solution.w
        return int(np.count_nonzero(w[..., 1:] if self.intercept == "inside" else w))

    @property
    def comparator(self) -> Comparator | None:
        """The latest comparator."""
        return self._comparator

    def use_comparator(self, comparator: Comparator | None, *, same_events: bool = True) -> None:
        """Use the comparator of another ledger.

        Its lower bound is valid only for the `same_events` with the same weights.
        """
        if comparator is not None and not same_events:
            comparator = dataclasses.replace(comparator, lower_bound=-math.inf)
        self._comparator = comparator

    def same_events_as(self, other: Ledger) -> bool:
        """Return whether the other ledger has as many events, of the same total weight."""
        own, others = self.sums, other.sums
        return (own.events, own.weight) == (others.events, others.weight)

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that depends on the events as plain data and arrays."""
        return {"sums": self.sums.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`; the comparator is solved again when it is due."""
        self.sums.restore(state["sums"])
        self.sums.wake_at(max(self.sums.events, FIRST_SOLVE))
        self._comparator = None
