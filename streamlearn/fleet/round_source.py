"""The source of a daemon with workers: records while it learns alone, then rounds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from streamlearn.fleet.round_pipeline import Round, base_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.fleet.worker_pool import WorkerPool
    from streamlearn.kafka import KafkaSource
    from streamlearn.stream import Partition, Records


class RoundSource:
    """A Kafka source whose records workers learn, once the daemon has learned enough alone.

    Parameters
    ----------
    kafka
        The source: topics, positions, lag, and the records until the workers learn.
    pool
        The workers.
    pipeline
        That merges what they have learned.
    may_begin
        Whether they may learn: the state of the pipeline is one that can be handed out.
    whole
        Whether the run ends with the records that were there at its start.
    """

    def __init__(
        self,
        kafka: KafkaSource,
        pool: Callable[[], WorkerPool],
        pipeline: Pipeline,
        may_begin: Callable[[Pipeline], bool],
        *,
        whole: bool,
    ) -> None:
        self._kafka = kafka
        self._pool_of = pool
        self._pipeline = pipeline
        self._may_begin = may_begin
        self._whole = whole
        self._last: Round | None = None  # merged by the pipeline meanwhile
        self.merge_seconds: float | None = None  # of the last round

    @property
    def _pool(self) -> WorkerPool:
        return self._pool_of()

    def identity(self) -> dict[str, str]:
        """Return the ids of the cluster and of the topics."""
        return self._kafka.identity()

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Connect to Kafka and Ray, and seek to the positions."""
        self._kafka.open(positions, identity)

    def poll(self, seconds: float) -> list[Records]:
        """Return records, or a round."""
        pool = self._pool
        if pool.rounds is None:
            self._begin_if_ready(pool)
        elif self._last is not None:
            pool.hand_out(self._last.moved, self._pipeline.counts.learned)
            self.merge_seconds, self._last = self._last.seconds, None
        polled = self._kafka.poll(seconds)
        if polled or not pool.finished():
            return polled
        if not self._kafka.confirm(pool.topics_read()):
            return []
        deltas = pool.take()
        if not deltas:
            return []
        self._kafka.advance(part.position() for delta in deltas for part in delta.learned.parts)
        self._last = Round(deltas)
        self._kafka.advance(self._last)
        return self._last

    def _begin_if_ready(self, pool: WorkerPool) -> None:
        """Let the workers learn, if the daemon has learned enough alone."""
        pipeline = self._pipeline
        ready = pool.ready and self._kafka.checked and bool(pipeline.positions)
        if not ready or not self._may_begin(pipeline):
            return
        known = pipeline.event_reader.labels.labels
        for learner in pipeline.learners:
            learner.model.know_labels(known)
        positions = self._kafka.hand_over()
        pool.goals = self._kafka.goals() if self._whole else {}
        pool.begin(pipeline.dead_letters.epoch, positions, partial(base_state, pipeline))

    def lag(self) -> dict[Partition, int | None]:
        """Return the lag of each partition as of the last round."""
        return self._kafka.lag()

    def lost(self) -> Mapping[Partition, int]:
        """Return how many records were deleted before they were read."""
        return self._kafka.lost()

    def ended(self) -> bool:
        """Whether all records that existed when the source was opened were learned."""
        return self._kafka.ended()

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit these positions for lag tools."""
        self._kafka.commit(positions)

    def close(self) -> None:
        """Close the connections, and end the workers."""
        self._kafka.close()
