"""Collect counts: buffer them for each batch, and update the board a few times a second.

Updating the board with every batch would cost several times as much, because between two batches
the processor's caches are full of weights.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.learners import Learners
    from streamlearn.stream import Partition
    from streamlearn.telemetry import Board

MAX_PARTITIONS = 50  # partitions with their own series; the others are summed
MAX_SCHEMAS = 100  # of them
OTHERS = ("other", "other")


class CountsCollector:
    """Collect the counts of records and events."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self.board = board
        self.clock = clock
        self.seen = 0  # events over the lifetime of the models
        self._schemas: set[int | str] = set()
        self._labels: dict[Partition, tuple[str, str]] = {}
        self._learned: dict[str, int] = {}  # by each learner, before this process
        self._batches: list[tuple[Partition, int, int, int, dict[str, float]]] = []
        self._polls: list[float] = []

    def start(self, learners: Learners) -> None:
        """Note what the learners had learned before this process."""
        self._learned = {learner.name: learner.learned for learner in learners}
        for name in self._learned:
            self.board.add("events_predicted_total", 0, name)
        self.flush(learners)

    def poll(self, seconds: float) -> None:
        """Add the duration of a poll."""
        self._polls.append(seconds)

    def add(self, batch: Batch) -> None:
        """Buffer the counts of a batch."""
        events, seconds = int(np.count_nonzero(batch.predicted)), batch.seconds
        self.seen += events
        for part in batch.parts:
            records = part.records
            counts = (records.partition, len(records.offsets), part.bytes, events, seconds)
            self._batches.append(counts)
            events, seconds = 0, {}
            if part.tombstones:
                self.board.add("events_deleted_total", part.tombstones)
        if batch.since_label is not None:
            self.board.set("events_since_label", batch.since_label)
        for schema, count in batch.schemas.items():
            if len(self._schemas) < MAX_SCHEMAS:
                self._schemas.add(schema)
            label = str(schema) if schema in self._schemas else "other"
            self.board.add("schema_records_total", count, label)
        if batch.unlabeled:
            self.board.add("events_unlabeled_total", batch.unlabeled)

    def flush(self, learners: Learners) -> None:
        """Update the board from the buffered counts."""
        board, batches, self._batches = self.board, self._batches, []
        polled: Counter[tuple[str, str]] = Counter()
        sizes: Counter[str] = Counter()
        stages = defaultdict(list, poll=self._polls)
        self._polls = []
        for where, records, size, _, seconds in batches:
            polled[self.labels_of(where)] += records
            sizes[where.topic] += size
            for stage, taken in seconds.items():
                stages[stage].append(taken)
        for labels, count in polled.items():
            board.add("events_polled_total", count, *labels)
        for topic, size in sizes.items():
            board.add("polled_bytes_total", size, topic)
        for stage, taken_by_each in stages.items():
            board.observe(stage, *taken_by_each)
        predicted = sum(events for _, _, _, events, _ in batches)
        for learner in learners:
            name, learned = learner.name, learner.learned
            board.add("events_predicted_total", predicted, name)
            board.set("events_learned_total", learned - self._learned[name], name)
            board.set("lifetime_events_learned", learned, name)
        if batches:
            board.set("last_batch_timestamp_seconds", self.clock())

    def labels_of(self, where: Partition) -> tuple[str, str]:
        """Return the labels of a partition: its own, or those of the summed partitions."""
        if where not in self._labels:
            own = len(self._labels) < MAX_PARTITIONS
            self._labels[where] = (where.topic, str(where.number)) if own else OTHERS
        return self._labels[where]

    def drop_unassigned(self, assigned: Collection[Partition]) -> None:
        """Drop the series of partitions that are no longer assigned."""
        for unassigned in self._labels.keys() - set(assigned):
            del self._labels[unassigned]
        self.board.keep("events_polled_total", set(self._labels.values()))
        self.board.keep("polled_bytes_total", {(where.topic,) for where in self._labels})
