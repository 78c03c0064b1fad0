"""Build the daemon from a configuration: the loop over its `builders`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from streamlearn import config
from streamlearn.core.times import timestamp
from streamlearn.daemon.backfill_reader import BackfillReader
from streamlearn.daemon.builders.decoders import decoder, event_reader, history_decoder
from streamlearn.daemon.builders.outputs import fencing, sink, writer
from streamlearn.daemon.builders.settings import input_settings
from streamlearn.daemon.builders.sources import backfill, connection, source, stream_source
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.collectors import audit, regret_trackers, served_scores, telemetry
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.loop import Loop, Policy
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
from streamlearn.daemon.outputs.predictions import PredictionPublisher
from streamlearn.daemon.pipeline import Pipeline
from streamlearn.daemon.until import UntilCount, parse_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from streamlearn.daemon.collectors.observer import Observer
    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.daemon.process.log import Log
    from streamlearn.kafka import Connection
    from streamlearn.stream import (
        Partition,
        Source,
    )
    from streamlearn.stream.sinks.sink import Sink

    Connect = Callable[[EventReader, Learners, Connection], Connection]

__all__ = [
    "connection",
    "decoder",
    "event_reader",
    "input_settings",
    "loop",
    "pipeline",
    "sink",
    "source",
]


class Team(Protocol):
    """Other processes that learn for the daemon, once they may."""

    @property
    def pipeline(self) -> type[Pipeline]:
        """The kind of pipeline that merges what they have learned."""

    def connection(self, own: Connection) -> Connection:
        """Return the connection to the brokers that knows of them."""

    def source(self, source: Source, pipeline: Pipeline) -> Source:
        """Return the source of what they learn, around the daemon's own."""


def loop(
    settings: config.Config,
    log: Log,
    *,
    reset: Collection[str] = (),
    skip_to: Mapping[Partition, int] | None = None,
    reset_offsets: bool = False,
    begin: bool = False,
    observers: Sequence[Observer] = (),
    connect: Connect | None = None,
    team: Team | None = None,
) -> Loop:
    """Build the daemon, not yet running.

    With `connect`, other processes read and decode; with a `team`, they learn, too.
    """
    from streamlearn.daemon.process.watchdog import Watchdog  # noqa: PLC0415 - not on Windows

    shared = config.feature_reader(settings.features)
    best = settings.predictions.best
    learners = Learners(
        config.estimators(settings),
        shared,
        best=None if best is None else (best.by, best.window, best.hysteresis),
    )
    reader = event_reader(settings, shared, list(learners), packed=connect is not None)
    feed: Source = source(
        stream_source(settings),
        settings.format,
        sample=reader.decoder.sample,
        reset_offsets=reset_offsets,
        report=log.warning,
        connect=team.connection
        if team is not None
        else None
        if connect is None
        else partial(connect, reader, learners),
    )
    published = sink(settings.predictions, settings.source, fencing(settings, "predictions"))
    refused = sink(
        settings.dead_letters, settings.source, fencing(settings, "dead-letters"), binary=True
    )
    if settings.backfill is not None:
        history = history_decoder(settings, settings.backfill, shared, list(learners))
        past = backfill(settings, settings.backfill, feed, history.sample, log)
        reader = BackfillReader(past, history, reader.decoder, timestamp(settings.backfill.until))
        feed = past
    shown = pipeline(
        settings,
        reader,
        learners,
        (published, refused),
        log,
        [
            *audit.observers(),
            *regret_trackers.observers(settings.regret, log),
            *served_scores.observers(settings.serve),
            *telemetry.observers(settings, log),
            *observers,
        ],
        Pipeline if team is None else team.pipeline,
    )
    if team is not None:
        feed = team.source(feed, shown)
    checkpoint = settings.checkpoint
    return Loop(
        feed,
        shown,
        None if checkpoint is None else ownership(checkpoint, log),
        policy(settings, reset, skip_to or {}, begin=begin),
        log,
        Watchdog(settings.run.watchdog_seconds, log),
        [one for one in (published, refused) if one is not None],
    )


def pipeline(
    settings: config.Config,
    reader: EventReader,
    learners: Learners,
    sinks: tuple[Sink | None, Sink | None],
    log: Log,
    observers: list[Observer],
    kind: type[Pipeline] = Pipeline,
) -> Pipeline:
    """Build the stages that records pass through; the sinks are of predictions and dead letters."""
    letters = settings.dead_letters
    published, refused = sinks
    return kind(
        reader,
        learners,
        InvalidRecordLimit(letters.max_invalid_ratio, letters.window, letters.min_count),
        DeadLetterPublisher(refused, writer=writer(settings, letters, "DeadLetter")),
        log,
        predictions=None
        if published is None
        else PredictionPublisher(
            published, writer=writer(settings, settings.predictions, "Prediction")
        ),
        predictor=settings.predictions.learner or settings.learners[0].name,
        observers=observers,
    )


def ownership(checkpoint: config.CheckpointConfig, log: Log) -> Ownership:
    """Build the ownership of the checkpoints."""
    return Ownership(
        checkpoint.path,
        lease_seconds=checkpoint.lease_seconds,
        report=lambda stop: log.error("stopped", reason=stop.reason, exit=int(stop.code)),
    )


def is_finite(source: object) -> bool:
    """Tell whether a source ends for good; a topic goes on after its present end."""
    if isinstance(source, config.FileSourceConfig):
        return not source.follow
    return isinstance(source, config.SyntheticSourceConfig)  # it may have a last event


def policy(
    settings: config.Config,
    reset: Collection[str],
    skip_to: Mapping[Partition, int],
    *,
    begin: bool,
) -> Policy:
    """Build the policy of the run."""
    run = settings.run
    piped = isinstance(settings.source, config.StdinSourceConfig)
    until = "end" if piped and run.until is None else run.until
    return Policy(
        checkpoint=settings.checkpoint or config.CheckpointConfig(path=""),
        shutdown_seconds=run.shutdown_seconds,
        begin=begin,
        until=UntilCount(0) if begin else parse_until(until),
        finite=is_finite(settings.source),
        skip_to=skip_to,
        reset=reset,
        input_settings=input_settings(settings),
    )
