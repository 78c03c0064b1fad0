"""The objective of a learner, and that of the best fixed model on the same events."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.integers import is_integer
from streamlearn.core.parameters import number
from streamlearn.regret.comparator import ComparatorTask, why_unsolvable
from streamlearn.regret.comparison import SharedSample
from streamlearn.regret.findings import MORE_TIME
from streamlearn.regret.member import ComparedLearner, FixedModel
from streamlearn.regret.progressive_sums import ProgressiveSums
from streamlearn.regret.report import Report
from streamlearn.regret.reservoir import Reservoir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.hindsight.sharded import Host, ShardSource
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty
    from streamlearn.regret.findings import Findings

MEMORY_BYTES = 64_000_000
LEAST_MEMORY = 10_000


class Ledger:
    """The progressive objective of a learner, and its best fixed model in hindsight.

    Fed by a learner whose watcher is `sums`, or with batches (`observe`).

    Parameters
    ----------
    loss, penalty
        Those of the learner.
    intercept
        Its placement: "none", "free" (not penalized) or "inside" the penalty.
    memory_bytes
        The memory for events; None: keep all. While all events are kept, the bracket is certified
        if the sum of Psi(w_t) is exact. After that, the regret is estimated from a uniform sample.
    seed
        Of the sample.
    beside
        A ledger of the same events: both share its sample, and the comparator if their objectives
        are the same.
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
        memory_bytes: int | None = MEMORY_BYTES,
        seed: int = 0,
        beside: Ledger | None = None,
        targets: int = 1,
        gap: float = 1e-4,
        seconds: float = 300.0,
        cpu_share: float = 0.1,
    ) -> None:
        if memory_bytes is not None and (
            not is_integer(memory_bytes) or not LEAST_MEMORY <= memory_bytes < 2**62
        ):
            raise ValueError(
                f"memory_bytes must be an integer of at least {LEAST_MEMORY} or None, "
                f"not {memory_bytes!r}"
            )
        if not is_integer(seed) or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be an integer from 0 to 2^64 - 1, not {seed!r}")
        self.loss = loss
        self.penalty = penalty
        self.intercept = intercept
        self.gap = number("Ledger", "gap", gap, above=0.0)
        self.seconds = number("Ledger", "seconds", seconds, low=0.0)
        self.cpu_share = number("Ledger", "cpu_share", cpu_share, above=0.0, high=1.0)
        if beside is None:
            self.shared = SharedSample(Reservoir(memory_bytes, seed, targets))
        else:
            self.shared = beside.shared
            self.shared.reservoir.learners += 1
        free = penalty.simple and penalty.l1 == penalty.l2 == 0.0
        self.sums = ProgressiveSums(
            loss, self.shared.reservoir, penalized=not free, records=beside is None
        )
        if beside is None:
            self.shared.recorder = self.sums
        self.read_weights: Callable[[], FixedModel | None] = lambda: None
        self.comparison = self.shared.comparison_of(self.task)
        self._number = self.comparison.join(self._member, lambda: self.task)

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
        return ComparatorTask(self.sums.loss, self.penalty, self.intercept, self.sums.outputs)

    def _member(self) -> ComparedLearner:
        """Return what a solve needs to know now."""
        sums = self.sums
        penalties, stderr, exact = sums.penalty_estimate()
        positions, cells, slopes = sums.cells.samples()
        full = self.shared.reservoir.full
        return ComparedLearner(
            objective=sums.progressive_loss + penalties,
            progressive_loss=sums.progressive_loss,
            stderr=stderr,
            exact=exact,
            events=sums.events,
            weight=sums.weight,
            positions=positions,
            cells=cells,
            slopes=slopes,
            cell_weights=sums.cell_weights(),
            gradient=sums.gradient_sum() if full else None,
            candidate=self.read_weights() if full else None,
        )

    # -- the comparator ---------------------------------------------------------------------------

    @property
    def findings(self) -> Findings | None:
        """What the latest solve found."""
        return self.comparison.findings[self._number]

    def solve_if_due(self) -> None:
        """Start a solve in the background if it is due; call when no learner learns."""
        if self.sums.events:
            self.comparison.solve_if_due(
                self.sums.events, gap=self._gap(), seconds=self.seconds, share=self.cpu_share
            )

    def solve_all(self, shards: Sequence[ShardSource], host: Host, seconds: float) -> None:
        """Solve the comparator on all events, unless it is solved, or they fit into the memory."""
        is_complete = not self.shared.reservoir.full
        if is_complete or self._is_certified() or why_unsolvable(self.task) is not None:
            return
        self.comparison.solve_all(shards, host=host, gap=self._gap(), seconds=seconds)

    def _is_certified(self) -> bool:
        """Return whether the comparator is solved on all events."""
        found = self.findings
        return found is not None and found.sampled == found.solved_at == self.sums.events

    def _is_solved(self) -> bool:
        """Return whether the comparator is solved, with the latest events."""
        found = self.findings
        return found is not None and found.solved_at == self.sums.events and found.settled

    def _gap(self) -> float:
        """Return a gap that is small compared with the losses."""
        mean = abs(self.sums.progressive_loss) / max(self.sums.weight, 1.0)
        return self.gap * min(1.0, max(mean, 1e-3))

    def close(self, *, wait: bool = True) -> None:
        """Stop a background solve at its next step, and start no other."""
        self.comparison.closed = True
        if wait:
            self.comparison.wait()

    def paid(self) -> Report:
        """Return a report without a comparator."""
        sums = self.sums
        penalties, _, exact = sums.penalty_estimate()
        return Report(
            events=int(sums.events),
            weight=sums.weight,
            progressive_loss=sums.progressive_loss,
            objective=sums.progressive_loss + penalties,
            penalty="exact" if exact else "sampled",
        )

    def report(self, seconds: float = 10.0) -> Report:
        """Return the current report, after solving the comparator for up to `seconds`.

        With 0 seconds it is solved in the background if due, and the report has the latest result.
        """
        paid = self.paid()
        why = "no event was learned yet" if not paid.events else why_unsolvable(self.task)
        if self.shared.reservoir.failed:
            why = "there was not enough memory for the sample of events; use a smaller memory_bytes"
        if why is not None:
            return dataclasses.replace(paid, why_unknown=why)
        if seconds > 0.0 and not self._is_solved():
            self.comparison.solve(gap=self._gap(), seconds=seconds)
        elif seconds == 0.0:
            self.solve_if_due()
        found = self.findings
        if found is None:
            return dataclasses.replace(paid, why_unknown=MORE_TIME)
        known = {item.name: getattr(found, item.name) for item in dataclasses.fields(found)}
        known.pop("settled")
        solution = known.pop("minimum").solution
        w = solution.w[..., 1:] if self.intercept == "inside" else solution.w
        return dataclasses.replace(
            paid,
            **known,
            comparator_nonzero=int(np.count_nonzero(w)),
            method=solution.method,
        )

    # -- several processes ------------------------------------------------------------------------

    def begin(self, place: int, stride: int, before: float, threshold: int) -> None:
        """Forget all events: the next ones are a part of those of another process's ledger.

        Their positions are place, place + stride, ..; `before` is how many events that has, and
        `threshold` that of its sample.
        """
        if self.sums.records:
            self.shared.reservoir.begin(threshold)
        self.sums.begin(place, stride, before)

    def part(self) -> dict[str, Any]:
        """Return what was learned since `begin`, for `join`; before the weights are changed."""
        return {
            "sums": self.sums.part(),
            "sample": self.shared.reservoir.snapshot() if self.sums.records else None,
        }

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        """Add the events of other processes; call after the weights were merged."""
        if self.sums.records:
            self.shared.reservoir.join([part["sample"] for part in parts])
        self.sums.join([part["sums"] for part in parts])

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that depends on the events as plain data and arrays.

        The sample is in the state of the ledger that records it.
        """
        state = {"sums": self.sums.state()}
        if self.sums.records:
            state["sample"] = self.shared.reservoir.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`; the comparator is solved again when it is due."""
        if self.sums.records:
            self.shared.reservoir.restore(state["sample"])
        self.sums.restore(state["sums"])
        self.comparison.forget()
