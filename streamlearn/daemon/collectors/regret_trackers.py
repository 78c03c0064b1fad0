"""Track the regret of a daemon's learners; the checkpoint keeps the trackers' ledgers.

The engine passes every event to a learner's `tracker`. This observer attaches the trackers and
restores their state; learning does not depend on it.
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


def observers(settings: config.RegretConfig, log: Log) -> list[Observer]:
    """Return the observer of regret, if the configuration enables it."""
    if not settings.enabled:
        return []
    return [RegretTrackers(log, settings.sample_size, settings.seed, settings.cpu_share)]


class RegretTrackers(Observer):
    """Track the regret of every learner for which it is defined."""

    name = "regret"

    def __init__(self, log: Log, sample_size: int, seed: int, cpu_share: float) -> None:
        self.log = log
        self.sample_size = sample_size
        self.seed = seed
        self.cpu_share = cpu_share
        self.trackers: dict[str, Tracker] = {}
        self._restored: dict[str, Any] = {}

    def restore(self, state: Any) -> None:
        """Keep the state of the ledgers until the learners are loaded."""
        self._restored = dict(state)

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the interface's
        """Attach trackers, except to learners that started without one, such as from a file."""
        for learner in learners:
            state = self._restored.get(learner.name) if learner.learned else None
            try:
                learner.tracker = Tracker(
                    learner.model, self.sample_size, self.seed, state, cpu_share=self.cpu_share
                )
            except ValueError as error:
                self.log.info("regret not tracked", learner=learner.name, reason=str(error))
            else:
                self.trackers[learner.name] = learner.tracker

    def on_end(self) -> None:
        """Stop solving, without waiting for a solve that sleeps to respect its CPU share."""
        for tracker in self.trackers.values():
            tracker.ledger.close(wait=False)

    def state(self) -> Any:
        """Return the ledgers."""
        return {name: tracker.ledger.state() for name, tracker in self.trackers.items()}
