"""Regret of a daemon's learners: their ledgers, kept in the checkpoint, solved in the background.

A learner's `tracker` is told of every event by the engine itself; what is here brings the two
together, and gives each its memory back. Nothing that is learned depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.regret import Tracker

if TYPE_CHECKING:
    from streamlearn import config
    from streamlearn.daemon.collectors.observer import Status
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.process.log import Log


def wanted(settings: config.RegretConfig, log: Log) -> list[Observer]:
    """What follows regret, if the configuration wants it."""
    if not settings.enabled:
        return []
    return [RegretTrackers(log, settings.memory, settings.seed, settings.cpu_share)]


class RegretTrackers(Observer):
    """Follows the regret of every learner for which one is defined."""

    name = "regret"

    def __init__(self, log: Log, memory: int, seed: int, cpu_share: float) -> None:
        self.log = log
        self.memory = memory
        self.seed = seed
        self.cpu_share = cpu_share
        self.trackers: dict[str, Tracker] = {}
        self._restored: dict[str, Any] = {}

    def restore(self, state: Any) -> None:
        """Remember what the ledgers were, until the learners are there."""
        self._restored = dict(state)

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the seam's
        """Watch the learners; one that had begun unwatched, from a file say, is left alone."""
        for learner in learners:
            kept = self._restored.get(learner.name) if learner.learned else None
            try:
                learner.tracker = Tracker(
                    learner.model, self.memory, self.seed, kept, cpu_share=self.cpu_share
                )
            except ValueError as error:
                self.log.info("regret is not followed", learner=learner.name, reason=str(error))
            else:
                self.trackers[learner.name] = learner.tracker

    def on_end(self) -> None:
        """Solve no more; a solve that sleeps for its share of the processor is not waited for."""
        for tracker in self.trackers.values():
            tracker.ledger.close(wait=False)

    def state(self) -> Any:
        """The ledgers."""
        return {name: tracker.ledger.state() for name, tracker in self.trackers.items()}
