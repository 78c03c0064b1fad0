"""Track the regret of a daemon's learners; the checkpoint keeps the sample and the ledgers.

The engine passes every event to a learner's `tracker`. This observer attaches the trackers and
restores their state; learning does not depend on it. Learners of the same events share one sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.regret import Tracker
from streamlearn.regret.tracker import sample_key

if TYPE_CHECKING:
    from streamlearn import config
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.process.log import Log
    from streamlearn.daemon.status import Status


def observers(settings: config.RegretConfig, log: Log) -> list[Observer]:
    """Return the observer of regret, if the configuration enables it."""
    if not settings.enabled:
        return []
    return [RegretTrackers(log, settings.memory_bytes, settings.seed, settings.cpu_share)]


class RegretTrackers(Observer):
    """Track the regret of every learner for which it is defined."""

    name = "regret"

    def __init__(self, log: Log, memory_bytes: int, seed: int, cpu_share: float) -> None:
        self.log = log
        self.memory_bytes = memory_bytes
        self.seed = seed
        self.cpu_share = cpu_share
        self.trackers: dict[str, Tracker] = {}
        self._restored: dict[str, Any] = {"samples": [], "learners": {}}

    def restore(self, state: Any) -> None:
        """Keep the state of the ledgers until the learners are loaded."""
        self._restored = dict(state)

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the interface's
        """Attach trackers, except to learners that started without one, such as from a file."""
        groups: dict[str, list[Learner]] = {}
        for learner in learners:
            groups.setdefault(self._sample_key(learner), []).append(learner)
        for group in groups.values():
            first: Tracker | None = None
            # The one with the most events records them, because it skipped none.
            for learner in sorted(group, key=lambda one: -self._events(one)):
                first = self._attach(learner, first, self.memory_bytes // len(groups)) or first
        self._restored = {"samples": [], "learners": {}}

    def _attach(
        self, learner: Learner, beside: Tracker | None, memory_bytes: int
    ) -> Tracker | None:
        state = self._state_of(learner)
        if state is not None and beside is None:
            state = {**state, "sample": self._restored["samples"][state["sample"]]}
        try:
            learner.tracker = Tracker(
                learner.model,
                memory_bytes,
                self.seed,
                beside,
                state,
                cpu_share=self.cpu_share,
            )
        except ValueError as error:
            self.log.info("regret not tracked", learner=learner.name, reason=str(error))
            return None
        self.trackers[learner.name] = learner.tracker
        return learner.tracker

    def _state_of(self, learner: Learner) -> dict[str, Any] | None:
        """Return the restored state of a learner that resumes."""
        known: dict[str, Any] = self._restored["learners"]
        return known.get(learner.name) if learner.learned else None

    def _events(self, learner: Learner) -> float:
        state = self._state_of(learner)
        return 0.0 if state is None else float(state["sums"]["events"])

    def _sample_key(self, learner: Learner) -> str:
        """Return a key that is equal for learners that can share a sample: of the same events."""
        state = self._state_of(learner)
        resumed = learner.learned > 0, None if state is None else state["sample"]
        return repr((sample_key(learner.model), resumed))

    def on_end(self) -> None:
        """Stop solving, without waiting for a solve that sleeps to respect its CPU share."""
        for tracker in self.trackers.values():
            tracker.ledger.close(wait=False)

    def state(self) -> Any:
        """Return the samples and the ledgers; only the end of a sample is copied."""
        samples: list[Any] = []
        ledgers: dict[str, Any] = {}
        for name, tracker in self.trackers.items():
            shared = tracker.ledger.shared
            number = next((k for k, one in enumerate(samples) if one is shared), len(samples))
            samples[number:] = [shared] if number == len(samples) else samples[number:]
            ledgers[name] = {"sample": number, "sums": tracker.ledger.sums.state()}
        return {"samples": [one.reservoir.state() for one in samples], "learners": ledgers}
