"""What a worker reports of a round: changes of the models, scores, and counts for the observers."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.fleet.packed_batch import Sparse
from streamlearn.stream import Records

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.pipeline import Counts
    from streamlearn.daemon.scores import ProgressiveMean
    from streamlearn.estimators.merging import ModelMove
    from streamlearn.stream import Partition

RECENT = 1000  # scores of labeled events, for ROC area and calibration
SHOWN_INVALID = 50  # invalid records with their bytes, for the page


@dataclass
class LearnedPart:
    """The records of one partition in a round."""

    partition: Partition
    start: int
    end: int
    records: int = 0
    size: int = 0  # bytes of the values
    tombstones: int = 0
    last: int = -1  # offset of the last record, with its leader epoch
    epoch: int | None = None
    invalid: list[InvalidRecord] = field(default_factory=list)  # by number in the round
    offsets: dict[int, int] = field(default_factory=dict)  # of the invalid ones that are shown
    values: dict[int, bytes | None] = field(default_factory=dict)

    def as_records(self) -> Records:
        """Return the records as the observers see them: how many, and the invalid ones."""
        return Records(
            self.partition,
            Sparse(self.records, self.offsets, self.last),
            Sparse(self.records, self.values, None),
            self.end,
        )

    def position(self) -> Records:
        """Return the last record, from which reading continues."""
        if not self.records:
            return Records(self.partition, (), (), self.end)
        epochs = None if self.epoch is None else [self.epoch]
        return Records(self.partition, [self.last], [None], self.end, epochs=epochs)


@dataclass
class LearnerScores:
    """The scores of one learner in a round."""

    progress: dict[str, ProgressiveMean]
    learned: int
    diverged: int
    recent: Array  # scores of the last labeled events
    errors: Array  # which of them were errors; empty for regressions
    weights: Array  # of their events
    ledger: dict[str, Any] | None = None  # if its regret is tracked: see `round_regret`


@dataclass
class Learned:
    """What one worker has learned in a round."""

    moves: dict[str, ModelMove]  # of the base's models, by learner; {}: nothing was learned
    scores: dict[str, LearnerScores]
    parts: list[LearnedPart]
    counts: Counts
    unlabeled: int
    schemas: dict[int | str, int]
    marks: dict[Partition, int]  # the ends of the partitions
    seconds: float  # of the round
    busy: float  # the share of them in which it had records to learn
    positive_seen: list[Any] = field(default_factory=list)  # of the declared positive labels
    negative_values: list[Any] = field(default_factory=list)  # if some were not


class RoundSummary(Observer):
    """Sum up the batches of a round."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start a round."""
        self.parts: dict[Partition, LearnedPart] = {}
        self.unlabeled = 0
        self.schemas: Counter[int | str] = Counter()
        self.recent: dict[str, deque[tuple[Array, Array, Array]]] = {}

    def on_batch(self, batch: Batch) -> None:
        """Add a batch."""
        self.unlabeled += batch.unlabeled
        self.schemas.update(batch.schemas)
        for part in batch.parts:
            records, where = part.records, part.records.partition
            mine = self.parts.setdefault(where, LearnedPart(where, part.start, part.start))
            for bad in part.invalid:
                i, number = bad.number, mine.records + bad.number
                mine.invalid.append(bad.at(number))
                mine.offsets[number], mine.values[number] = records.offsets[i], records.values[i]
                if len(mine.offsets) > SHOWN_INVALID:
                    oldest = next(iter(mine.offsets))
                    del mine.offsets[oldest], mine.values[oldest]
            mine.records += len(records.offsets)
            mine.size += part.bytes
            mine.tombstones += part.tombstones
            mine.end = records.end
            if len(records.offsets):
                mine.last = records.offsets[-1]
                mine.epoch = None if records.epochs is None else records.epochs[-1]
        for name, result in batch.results.items():
            if "error" in result.measures and result.scores.ndim == 1:
                chosen = np.flatnonzero(result.learned)[-RECENT:]
                kept = self.recent.setdefault(name, deque())
                scores, errors = result.scores[chosen], result.measures["error"][chosen]
                kept.append((scores, errors, result.weights[-RECENT:]))
                while (
                    len(kept) > 1 and sum(len(one) for one, *_ in kept) - len(kept[0][0]) >= RECENT
                ):
                    kept.popleft()

    def learned(
        self,
        learners: Learners,
        counts: Counts,
        before: dict[str, tuple[int, int]],
        ledgers: dict[str, dict[str, Any]],
        **rest: Any,
    ) -> Learned:
        """Return the round; `before` has the events that each learner had learned, and skipped."""
        none = np.zeros(0)
        scores = {}
        for one in learners:
            recent = self.recent.get(one.name) or [(none, none, none)]
            values, errors, weights = map(np.concatenate, zip(*recent, strict=True))
            learned, diverged = before[one.name]
            scores[one.name] = LearnerScores(
                one.progress,
                one.learned - learned,
                one.diverged - diverged,
                values,
                errors,
                weights,
                ledgers.get(one.name),
            )
        return Learned(
            scores=scores,
            parts=list(self.parts.values()),
            counts=counts,
            unlabeled=self.unlabeled,
            schemas=dict(self.schemas),
            **rest,
        )
