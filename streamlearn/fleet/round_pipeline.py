"""The owner's pipeline: learn records as ever, or merge a round that workers have learned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.batch import Batch, PartitionBatch
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.learners import LearnerResult
from streamlearn.daemon.pipeline import Counts, Pipeline
from streamlearn.engine.events import Events
from streamlearn.estimators.merging import merge
from streamlearn.fleet.round_regret import ledger_starts
from streamlearn.rules.copy_buffer import CopyBuffer
from streamlearn.stream import Records
from streamlearn.stream.polled import Polled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.daemon.learners import Learner
    from streamlearn.estimators.merging import ModelMove
    from streamlearn.fleet.learned import Learned, LearnerScores
    from streamlearn.fleet.rounds import Delta


class Round(list[Records]):
    """The positions after a round, with what the workers have learned in it.

    `moved` is how the models have moved, once the pipeline has processed the round.
    """

    def __init__(self, deltas: Sequence[Delta]) -> None:
        super().__init__(
            Records(where, (), (), end) for delta in deltas for where, end in delta.ends.items()
        )
        self.deltas = deltas
        self.moved: dict[str, Any] = {}
        self.seconds = 0.0  # that merging took

    @property
    def learned(self) -> list[Learned]:
        """What each worker has learned, in their order."""
        return [delta.learned for delta in self.deltas]


class RoundPipeline(Pipeline):
    """A pipeline that merges rounds, too.

    While workers learn, its models are the base that they have started from.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._copies = CopyBuffer()  # of how the models moved, which the next round overwrites

    def process(self, records: Sequence[Records]) -> None:
        """Learn records, or merge a round: models, scores, counts and positions together."""
        if not isinstance(records, Round):
            super().process(records)
            return
        self.consistent = False
        began = time.perf_counter()
        self._copies.reserve()
        with self._copies:
            models = {one.name: self._merge(one, records.learned) for one in self.learners}
        self._count_round(records.learned)
        self.positions.update((one.partition, one.end) for one in records)
        self.revision += 1
        self.consistent = True
        learned = {one.name: one.learned for one in self.learners}
        ledgers = ledger_starts(self.learners)
        records.moved = {"models": models, "learned": learned, "regret": ledgers}
        records.seconds = time.perf_counter() - began
        self.notify(Observer.on_batch, self._batch(records))
        self.report_diverged()
        self.label_monitor.check_run(self.counts.since_label, self.event_reader.decoder)
        self.label_monitor.check_spelling(self.event_reader.labels)

    def _merge(self, learner: Learner, learned: Sequence[Learned]) -> ModelMove:
        """Merge what was learned, and add the scores; return how the model moved."""
        moved = merge(learner.model, [one.moves[learner.name] for one in learned if one.moves])
        scores = [one.scores[learner.name] for one in learned]
        for name, progress in learner.progress.items():
            progress.join([one.progress[name] for one in scores])
        learner.learned += sum(one.learned for one in scores)
        learner.diverged += sum(one.diverged for one in scores)
        if learner.tracker is not None:
            learner.tracker.ledger.join([one.ledger for one in scores if one.ledger is not None])
        return moved

    def _count_round(self, learned: Sequence[Learned]) -> None:
        """Add the counts of the workers."""
        counts = self.counts
        since = counts.since_label
        for one in learned:
            for name in Counts.__slots__:
                setattr(counts, name, getattr(counts, name) + getattr(one.counts, name))
        if any(one.counts.learned for one in learned):
            counts.since_label -= since  # all of them have passed the last label
        for one in learned:
            self.event_reader.labels.count(
                one.counts.learned, one.positive_seen, one.negative_values
            )

    def _batch(self, records: Round) -> Batch:
        """Return the round as the observers see it."""
        learned = records.learned
        parts = [
            PartitionBatch(part.as_records(), part.start, part.invalid, part.tombstones, part.size)
            for one in learned
            for part in one.parts
        ]
        schemas: dict[int | str, int] = {}
        for one in learned:
            for name, count in one.schemas.items():
                schemas[name] = schemas.get(name, 0) + count
        events = sum(one.counts.events for one in learned)
        return Batch(
            parts,
            Polled([part.records for part in parts]),
            Events(),
            {
                one.name: recent_result([each.scores[one.name] for each in learned], one)
                for one in self.learners
            },
            np.broadcast_to(np.True_, events),
            sum(one.unlabeled for one in learned),
            self.counts.since_label,
            schemas,
        )


def recent_result(scores: Sequence[LearnerScores], learner: Learner) -> LearnerResult:
    """Return the scores of the last events of each worker as a result."""
    recent = np.concatenate([one.recent for one in scores])
    errors = np.concatenate([one.errors for one in scores])
    weights = np.concatenate([one.weights for one in scores])
    size = len(recent)
    measures = {"error": errors} if len(errors) == size else {}
    return LearnerResult(
        recent,
        measures,
        np.ones(size, dtype=bool),
        learner.learned - size,
        weights,
        np.full(size, 2),
    )


def base_state(pipeline: Pipeline) -> dict[str, Any]:
    """Return the state that workers start from: models, and how records are decoded."""
    learners = pipeline.learners
    return {
        "models": {one.name: one.model.state(features=False) for one in learners},
        "learned": {one.name: one.learned for one in learners},
        "regret": ledger_starts(learners),
        "features": learners.reader.state(),
        "decoders": [one.state() for one in pipeline.event_reader.decoders],
    }
