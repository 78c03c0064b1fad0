"""The regret of rounds: workers keep the losses of their events and a sample, the owner joins them.

Each worker numbers its events as no other does, so that the samples of all are one uniform sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.regret import Tracker
from streamlearn.regret.ledger import LEAST_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.learners import Learners
    from streamlearn.fleet.rounds import Task


@dataclass(frozen=True)
class LedgerStart:
    """Where the ledgers of workers begin."""

    group: int  # of learners that share a sample
    records: bool  # whether the sample is of its events
    memory_bytes: int
    seed: int
    threshold: int  # of the sample
    events: float  # that were learned
    place: int  # the position of the next one


def ledger_starts(learners: Learners) -> dict[str, LedgerStart]:
    """Return where workers begin, for each learner whose regret is tracked; recorders first."""
    groups: dict[int, int] = {}
    starts = {}
    for one in learners:
        if one.tracker is not None:
            sums, shared = one.tracker.ledger.sums, one.tracker.ledger.shared
            sample = shared.reservoir
            group = groups.setdefault(id(shared), len(groups))
            memory = sample.memory_bytes or 0
            starts[one.name] = LedgerStart(
                group,
                sums.records,
                memory,
                sample.seed,
                sample.threshold,
                sums.events,
                sums.place,
            )
    return dict(sorted(starts.items(), key=lambda item: not item[1].records))


def attach(learners: Learners, starts: Mapping[str, LedgerStart], workers: int) -> None:
    """Track the events of a worker, which is one of so many."""
    recorders: dict[int, Tracker] = {}
    for one in learners:
        one.tracker = None
    for name, start in starts.items():
        tracker = Tracker(
            learners[name].model,
            max(start.memory_bytes // workers, LEAST_MEMORY),
            start.seed,
            recorders.get(start.group),
            part=True,
        )
        recorders.setdefault(start.group, tracker)
        learners[name].tracker = tracker


def begin(learners: Learners, starts: Mapping[str, LedgerStart], task: Task) -> None:
    """Begin the ledgers of a round."""
    for name, start in starts.items():
        tracker = learners[name].tracker
        if tracker is not None:
            tracker.ledger.begin(
                start.place + task.rank, task.workers, start.events, start.threshold
            )


def parts(learners: Learners) -> dict[str, dict[str, Any]]:
    """Return what the ledgers have of a round."""
    return {one.name: one.tracker.ledger.part() for one in learners if one.tracker is not None}
