"""Build the fleet from a configuration."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.features.fields import Buckets
from streamlearn.fleet.collector import collectors
from streamlearn.fleet.instructions import Instructions, settings_of_process
from streamlearn.fleet.packed_batch import Wanted
from streamlearn.fleet.reader_pool import ReaderPool
from streamlearn.fleet.remote_worker import WorkerInstructions
from streamlearn.fleet.round_pipeline import RoundPipeline
from streamlearn.fleet.round_source import RoundSource
from streamlearn.fleet.worker_pool import WorkerPool
from streamlearn.kafka import Connection, KafkaSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn import config
    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.pipeline import Pipeline
    from streamlearn.daemon.process.log import Log
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream import Source

LEAST_FETCH_BYTES = 1 << 16


def connect(
    settings: config.Config, log: Log
) -> Callable[[EventReader, Learners, Connection], Connection] | None:
    """Return how the daemon connects if other processes read; None without them."""
    if settings.fleet.readers == 0:
        return None

    def through_readers(
        events: EventReader, learners: Learners, connection: Connection
    ) -> Connection:
        own = parts(connection)
        return ReaderConnection(**own, settings=settings, events=events, learners=learners, log=log)

    return through_readers


def team(settings: config.Config, log: Log) -> WorkerTeam | None:
    """Return the workers that learn for the daemon; None without them."""
    return None if settings.fleet.workers == 1 else WorkerTeam(settings, log)


def parts(connection: Connection) -> dict[str, Any]:
    """Return the parameters of a connection."""
    return {one.name: getattr(connection, one.name) for one in fields(Connection)}


@dataclass(frozen=True, kw_only=True)
class ReaderConnection(Connection):
    """A connection whose readers are other processes."""

    settings: config.Config
    events: EventReader
    learners: Learners
    log: Log

    def reader(self, *, isolation: str, fetch_bytes: int, group: str | None) -> KafkaReader:
        """Start the readers, with the decoders' state of the checkpoint."""
        settings, fleet = self.settings, self.settings.fleet
        reason = why_not_fixed(self.events, self.learners)
        if reason is not None:
            raise Stop(Exit.USAGE, f"fleet.readers requires {reason}")
        orphans = settings.labels is not None and settings.labels.orphans
        predictions = settings.predictions
        return ReaderPool(
            super().reader(isolation=isolation, fetch_bytes=fetch_bytes, group=group),
            Instructions(
                settings_of_process(settings),
                max(fetch_bytes // fleet.readers, LEAST_FETCH_BYTES),
                self.learners.reader.state(),
                [decoder.state() for decoder in self.events.decoders],
                Wanted(
                    keys=predictions.topic is not None or predictions.path is not None,
                    everything=orphans,
                ),
            ),
            fleet.readers,
            address=fleet.ray,
            deadline_seconds=fleet.deadline_seconds,
            log=self.log,
        )


class WorkerTeam:
    """Workers that learn for the daemon, once it has learned enough alone."""

    pipeline = RoundPipeline

    def __init__(self, settings: config.Config, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.pool: WorkerPool | None = None  # once the source is open

    def connection(self, own: Connection) -> Connection:
        """Return a connection whose reader knows of the workers."""
        return WorkerConnection(**parts(own), team=self)

    def source(self, source: Source, pipeline: Pipeline) -> Source:
        """Return the source of rounds around the daemon's own."""
        assert isinstance(source, KafkaSource)  # noqa: S101 - checked with the configuration
        whole = self.settings.run.until == "end"
        rounds = RoundSource(source, self.started_pool, pipeline, self.may_begin, whole=whole)
        pipeline.observers += collectors(pipeline.observers, self.started_pool, rounds)
        return rounds

    def start(self, local: KafkaReader, fetch_bytes: int) -> WorkerPool:
        """Start the workers."""
        fleet = self.settings.fleet
        told = WorkerInstructions(
            settings_of_process(self.settings),
            max(fetch_bytes // fleet.workers, LEAST_FETCH_BYTES),
            flush_seconds=fleet.deadline_seconds,
        )
        self.pool = WorkerPool(
            local,
            told,
            fleet.workers,
            address=fleet.ray,
            round_seconds=fleet.round_seconds,
            deadline_seconds=fleet.deadline_seconds,
            least=fleet.min_workers or fleet.workers,
            log=self.log,
        )
        return self.pool

    def started_pool(self) -> WorkerPool:
        """Return the workers; the source is open."""
        if self.pool is None:
            raise ValueError("this source is not open: call open first")
        return self.pool

    def may_begin(self, pipeline: Pipeline) -> bool:
        """Whether the daemon has learned enough alone."""
        enough = pipeline.counts.learned >= self.settings.fleet.warm_events
        return enough and why_not_fixed(pipeline.event_reader, pipeline.learners) is None


@dataclass(frozen=True, kw_only=True)
class WorkerConnection(Connection):
    """A connection whose reader knows of the workers."""

    team: WorkerTeam

    def reader(self, *, isolation: str, fetch_bytes: int, group: str | None) -> KafkaReader:
        """Connect for reading, and start the workers."""
        local = super().reader(isolation=isolation, fetch_bytes=fetch_bytes, group=group)
        return self.team.start(local, fetch_bytes)


def why_not_fixed(events: EventReader, learners: Learners) -> str | None:
    """Return why decoding still depends on the order of events, which no other process knows."""
    if not events.labels.closed and any(learner.learns == "classes" for learner in learners):
        return (
            "labels that are declared, or closed by an earlier run; set format.labels, or run once "
            "with fleet.readers = 0"
        )
    reader = learners.reader
    known = reader.frozen()
    warming = [
        name
        for name, field in reader.fields.items()
        if isinstance(field, Buckets)
        and isinstance(field.edges, int)
        and "edges" not in known.get(name, {})
    ]
    if not warming:
        return None
    return (
        f"the edges of buckets, but those of {', '.join(warming)} are not learned yet; declare "
        "them, or run with fleet.readers = 0 until they are"
    )
