"""Regret as an account: what a learner paid, beside what the best fixed model would have paid."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.estimators.linear import is_integer
from streamlearn.regret.account import Account
from streamlearn.regret.comparator import (
    Found,
    Sample,
    Task,
    bracket,
    measured,
    refusal,
    sample_of,
    solved,
)
from streamlearn.regret.report import Report

if TYPE_CHECKING:
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty

GROWTH = 1.25
FIRST = 1000  # events before the first solve in the background


class Ledger:
    """The progressive objective of a stream's learner, and its best fixed model in hindsight.

    Fed by a learner whose watcher is `account`, or with batches (`observe`). All of it but the
    comparator follows from the events alone, whenever solves end.

    Parameters
    ----------
    loss, penalty
        Those of the learner.
    intercept
        Where it is: "none", "free" (not penalised) or "inside" the penalty.
    memory
        How many events are kept. As long as these are all, the bracket is certified where the sum
        of Psi(w_t) is exact; after that one half of a uniform sample fits the comparator and the
        other half measures it.
    seed
        Of the sample.
    gap
        Per event, how exactly the comparator is solved.
    seconds
        How long a solve in the background may take.
    cpu_share
        The share of a core that it may use.
    """

    def __init__(
        self,
        loss: Loss | VectorLoss,
        penalty: Penalty,
        *,
        intercept: str = "none",
        memory: int = 100_000,
        seed: int = 0,
        targets: int = 1,
        gap: float = 1e-4,
        seconds: float = 30.0,
        cpu_share: float = 0.05,
    ) -> None:
        if not is_integer(memory) or not 10 <= memory < 2**31:
            raise ValueError(f"memory must be a whole number of at least 10 events, not {memory!r}")
        if not is_integer(seed) or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be a whole number of 0 to 2^64 - 1, not {seed!r}")
        self.loss = loss
        self.penalty = penalty
        self.intercept = intercept
        self.gap = number("Ledger", "gap", gap, above=0.0)
        self.seconds = number("Ledger", "seconds", seconds, low=0.0)
        self.cpu_share = number("Ledger", "cpu_share", cpu_share, above=0.0, high=1.0)
        free = penalty.simple and penalty.l1 == penalty.l2 == 0.0
        self.account = Account(loss, memory, seed, targets, penalised=not free)
        # Of the places of the sample, those of one half fit. The first events came in order, so
        # the halves are drawn.
        self._order = np.random.default_rng(seed).permutation(memory)
        self._found: Found | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self.account.wake = self._solve_if_idle
        self.account.wake_at(FIRST)

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
        """A batch of CSR rows with the scores that each had before it was learned.

        `labels` are codes, as the loss takes them; rows of weight 0 do not count. `penalty_value`
        is Psi(w) after the batch.
        """
        self.account.observe(starts, slots, values, labels, weights, scores)
        if penalty_value is not None:
            self.account.learned_penalty(penalty_value)

    @property
    def objective(self) -> float:
        """The sum over all events of their loss before learning and of Psi(w_t)."""
        return self.account.progressive_loss + self.account.penalty_estimate()[0]

    @property
    def task(self) -> Task:
        """What the comparator solves."""
        loss = self.account.loss
        return Task(loss, self.penalty, self.intercept, self.account.outputs)

    # -- the comparator ---------------------------------------------------------------------------

    def _solve_if_idle(self) -> float:
        """Solve in the background, unless it still does; after how many events to ask again."""
        events = self.account.events
        if self._closed:
            return math.inf
        if self._thread is not None and self._thread.is_alive():
            return events * (1.0 + 0.1 * (GROWTH - 1.0))
        rows = self.account.reservoir.snapshot()
        self._thread = threading.Thread(
            target=self._solve_behind, args=(rows, events, self.task), name="regret", daemon=True
        )
        self._thread.start()
        return events * GROWTH

    def _solve_behind(self, rows: dict[str, Any], events: float, task: Task) -> None:
        if refusal(task) is None:
            sample = self._fit(sample_of(rows, events, task))
            rows.clear()  # which was a copy: the reservoir may write where the rows are
            self._take(sample, task, self.seconds, self.cpu_share)

    def _take(self, sample: Sample, task: Task, seconds: float, share: float) -> None:
        found = solved(
            sample,
            task,
            self._found,
            gap=self.gap,
            seconds=seconds,
            share=share,
            cancelled=lambda: self._closed,
        )
        if self._found is None or found.events >= self._found.events:
            self._found = found

    def _fit(self, sample: Sample) -> Sample:
        return sample if sample.complete else sample.part(self._halves(sample)[0])

    def _halves(self, sample: Sample) -> tuple[Any, Any]:
        order = self._order[self._order < len(sample.y)]
        middle = len(order) // 2
        return np.sort(order[:middle]), np.sort(order[middle:])

    def wait(self) -> None:
        """Until no solve is running in the background."""
        if self._thread is not None:
            self._thread.join()

    def close(self, *, wait: bool = True) -> None:
        """Let a solve in the background end at its next step, and start no other."""
        self._closed = True
        if wait:
            self.wait()

    def report(self, seconds: float = 10.0) -> Report:
        """All that is known now, after up to so many seconds spent on a better comparator."""
        account, task = self.account, self.task
        penalties, stderr, exact = account.penalty_estimate()
        paid = Report(
            events=int(account.events),
            weight=account.weight,
            progressive_loss=account.progressive_loss,
            objective=account.progressive_loss + penalties,
            penalty="exact" if exact else "sampled",
            stderr=stderr,
        )
        why = "nothing was learned yet" if not account.events else refusal(task)
        if account.reservoir.failed:
            why = "there was no memory for the sample of events"
        if why is not None:
            return _with(paid, why_no_comparator=why)
        sample = sample_of(account.reservoir.snapshot(), account.events, task)
        fit = self._fit(sample)
        if seconds > 0.0:
            self._take(fit, task, seconds, 1.0)
        found = self._found
        if found is None:
            return _with(paid, why_no_comparator="the comparator is being solved")
        return _with(paid, **self._compared(paid, sample, fit, task, found))

    def _compared(
        self, paid: Report, sample: Sample, fit: Sample, task: Task, found: Found
    ) -> dict[str, Any]:
        objective, stderr = paid.objective, paid.stderr
        total, bound = bracket(fit, task, found)
        if not sample.complete:
            rows = self._halves(sample)[1]
            total, error = measured(sample.part(rows), task, found)
            stderr = math.hypot(stderr, error)
        return {
            "comparator": total,
            "regret": objective - total,
            "regret_low": objective - total,
            # on two samples the better one may come out worse
            "regret_high": objective - min(bound, total),
            "stderr": stderr,
            "certified": sample.complete and paid.penalty == "exact",
            "radius": found.radius,
            "comparator_nonzero": self._nonzero(found),
            "solved_at": int(found.events),
            "method": found.solution.method,
        }

    def _nonzero(self, found: Found) -> int:
        w = found.solution.w
        return int(np.count_nonzero(w[..., 1:] if self.intercept == "inside" else w))

    @property
    def found(self) -> Found | None:
        """The comparator that was found last."""
        return self._found

    def adopt(self, found: Found | None, *, same: bool = True) -> None:
        """Compare with a model that another ledger found.

        `same`: on the same events with the same weights. Of others its bound would say nothing.
        """
        if found is not None and not same:
            found = dataclasses.replace(found, lower_bound=-math.inf)
        self._found = found

    def follows(self, other: Ledger) -> bool:
        """Whether the events so far were as many as the other's, and of the same weight."""
        mine, its = self.account, other.account
        return (mine.events, mine.weight) == (its.events, its.weight)

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that follows from the events, as plain data and arrays, for a checkpoint."""
        return {"account": self.account.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; the comparator is solved again when it is due."""
        self.account.restore(state["account"])
        self.account.wake_at(max(self.account.events, FIRST))
        self._found = None


def _with(report: Report, **changes: Any) -> Report:
    return Report(**{**vars(report), **changes})
