"""Build the daemon from a configuration: source, decoder, outputs, and the loop over them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from streamlearn import config
from streamlearn.config import plan
from streamlearn.config.history import history_format, history_source
from streamlearn.core.imports import import_path
from streamlearn.core.times import timestamp
from streamlearn.daemon.backfill_reader import BackfillReader
from streamlearn.daemon.checkpointing.field_changes import FIELDS
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.collectors import audit, regret_trackers, served_scores, telemetry
from streamlearn.daemon.delayed_event_reader import DelayedEventReader
from streamlearn.daemon.event_reader import EventReader
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.loop import Loop, Policy
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
from streamlearn.daemon.outputs.predictions import PredictionPublisher
from streamlearn.daemon.pipeline import Pipeline
from streamlearn.daemon.until import UntilCount, parse_until
from streamlearn.features import Names
from streamlearn.features.fields import Ignore
from streamlearn.features.fields.spec import OTHERS
from streamlearn.kafka import Connection, Fencing, KafkaSource, Security
from streamlearn.late.join import DROP, Join
from streamlearn.stream import (
    Clicks,
    DelayedClicks,
    Files,
    Partition,
    StandardInput,
    Synthetic,
    decoder_of,
)
from streamlearn.stream.formats.csv import SAMPLE as CSV_SAMPLE
from streamlearn.stream.formats.packed import PackedDecoder
from streamlearn.stream.formats.registry import WITH_SCHEMAS
from streamlearn.stream.schema_registry import SchemaRegistry
from streamlearn.stream.sinks.json_lines import FileSink
from streamlearn.stream.sources.backfill import Backfill
from streamlearn.stream.sources.record_files import RecordFiles, opener_of
from streamlearn.stream.sources.source import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from streamlearn.daemon.collectors.observer import Observer
    from streamlearn.daemon.process.log import Log
    from streamlearn.features import Reader
    from streamlearn.stream import Decoder, Fields, Source
    from streamlearn.stream.formats.schemas import Schemas
    from streamlearn.stream.formats.writers import Writer
    from streamlearn.stream.sinks.sink import Sink

    Connect = Callable[[EventReader, Learners, Connection], Connection]

TRANSACTION_MARGIN_SECONDS = 30.0  # by which a transaction may outlast `max_age_seconds`


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
) -> Loop:
    """Build the daemon, not yet running; with `connect`, other processes read and decode."""
    from streamlearn.daemon.process.watchdog import Watchdog  # noqa: PLC0415 - not on Windows

    shared = config.feature_reader(settings.features)
    best = settings.predictions.best
    learners = Learners(
        config.estimators(settings),
        shared,
        best=None if best is None else (best.by, best.window, best.hysteresis),
    )
    letters = settings.dead_letters
    reader = event_reader(settings, shared, list(learners), packed=connect is not None)
    feed: Source = source(
        stream_source(settings),
        settings.format,
        sample=reader.decoder.sample,
        reset_offsets=reset_offsets,
        report=log.warning,
        connect=None if connect is None else partial(connect, reader, learners),
    )
    fence = partial(fencing, settings, feed)
    published = sink(settings.predictions, settings.source, fence("predictions"))
    refused = sink(letters, settings.source, fence("dead-letters"), binary=True)
    if settings.backfill is not None:
        history = history_decoder(settings, settings.backfill, shared, list(learners))
        past = backfill(settings, settings.backfill, feed, history.sample, log)
        reader = BackfillReader(past, history, reader.decoder, timestamp(settings.backfill.until))
        feed = past
    pipeline = Pipeline(
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
        observers=[
            *audit.observers(),
            *regret_trackers.observers(settings.regret, log),
            *served_scores.observers(settings.serve),
            *telemetry.observers(settings, log),
            *observers,
        ],
    )
    checkpoint = settings.checkpoint
    return Loop(
        feed,
        pipeline,
        None if checkpoint is None else ownership(checkpoint, log),
        policy(settings, reset, skip_to or {}, begin=begin),
        log,
        Watchdog(settings.run.watchdog_seconds, log),
        [one for one in (published, refused) if one is not None],
    )


def fencing(settings: config.Config, feed: Source, role: str) -> Fencing | None:
    """Return how a Kafka output fences off earlier owners; None without transactions."""
    checkpoint = settings.checkpoint
    if checkpoint is None or not checkpoint.transactions or not isinstance(feed, KafkaSource):
        return None
    seconds = checkpoint.max_age_seconds + TRANSACTION_MARGIN_SECONDS
    return Fencing(role, seconds, feed.topic_id)


def ownership(checkpoint: config.CheckpointConfig, log: Log) -> Ownership:
    """Build the ownership of the checkpoints."""
    return Ownership(
        checkpoint.path,
        lease_seconds=checkpoint.lease_seconds,
        report=lambda stop: log.error("stopped", reason=stop.reason, exit=int(stop.code)),
    )


def policy(
    settings: config.Config,
    reset: Collection[str],
    skip_to: Mapping[Partition, int],
    *,
    begin: bool,
) -> Policy:
    """Build the policy of the run."""
    checkpoint, run = settings.checkpoint, settings.run
    given: dict[str, Any] = {}
    if checkpoint is not None:
        names = ("every_events", "every_seconds", "keep", "max_age_seconds", "standby", "required")
        given = {name: getattr(checkpoint, name) for name in names}
    piped = isinstance(settings.source, config.StdinSourceConfig)
    until = "end" if piped and run.until is None else run.until
    return Policy(
        **given,
        begin=begin,
        shutdown_seconds=run.shutdown_seconds,
        until=UntilCount(0) if begin else parse_until(until),
        skip_to=skip_to,
        reset=reset,
        input_settings=input_settings(settings),
    )


def stream_source(settings: config.Config) -> config.Source:
    """Return the source with the topic of the labels, or from shortly before a backfill's end."""
    found, labels, past = settings.source, settings.labels, settings.backfill
    if past is not None and isinstance(found, config.KafkaSourceConfig):
        start = datetime.fromtimestamp(timestamp(past.until) - past.overlap_seconds, UTC)
        return msgspec.structs.replace(found, start=start.isoformat())
    if labels is None or labels.topic is None or not isinstance(found, config.KafkaSourceConfig):
        return found
    if found.pattern is not None or labels.topic in found.topics:
        return found
    return msgspec.structs.replace(found, topics=(*found.topics, labels.topic))


def backfill(
    settings: config.Config, given: config.BackfillConfig, stream: Source, sample: int, log: Log
) -> Backfill:
    """Put history, of which `sample` first records come together, before the stream."""
    history = history_source(given)
    starts = {}
    for name, offset in given.offsets.items():
        topic, _, number = name.rpartition(":")
        starts[Partition(topic, int(number))] = offset
    return Backfill(
        source(history, history_format(given, settings.format), sample=sample, report=log.warning),
        stream,
        cut=datetime.fromtimestamp(timestamp(given.until), UTC).isoformat(),
        starts=starts,
        on_end=lambda: log.info("history ended", until=given.until),
    )


def history_decoder(
    settings: config.Config, given: config.BackfillConfig, shared: Reader, learners: Sequence[Any]
) -> Decoder:
    """Build the decoder of the records of history."""
    table = msgspec.structs.replace(
        settings, source=history_source(given), format=history_format(given, settings.format)
    )
    return decoder(table, shared, learners)


def event_reader(
    settings: config.Config, shared: Reader, learners: Sequence[Any], *, packed: bool = False
) -> EventReader:
    """Build what turns records into rows; `packed`: other processes have decoded them."""
    labels, table = settings.labels, settings.format
    if labels is None and packed:
        return EventReader(PackedDecoder(shared, config.event_fields(table), learners))
    if labels is None:
        return EventReader(decoder(settings, shared, learners))
    of_events, of_labels = config.label_fields(table, labels)
    maker: Callable[..., Decoder] = PackedDecoder if packed else decoder_maker(settings, table)
    events = maker(shared, of_events, learners, grow_always=True)
    label_decoder = None
    if of_labels is not None:
        if labels.format is not None and not packed:
            maker = decoder_maker(settings, labels.format)
        label_decoder = maker(Names({OTHERS: "ignore"}), of_labels, learners)
    guess = labels.on_timeout
    if guess != DROP:
        guess = (events if label_decoder is None else label_decoder).resolve_label(guess)
    join = Join(
        labels.hold_events,
        labels.hold_for,
        guess,
        labels.corrections,
        labels.orphans,
        labels.hold_bytes,
    )
    return DelayedEventReader(join, events, label_decoder, labels.topic)


def decoder_maker(
    settings: config.Config, table: config.RecordFormatConfig
) -> Callable[..., Decoder]:
    """Return what makes the decoders of a format."""
    return partial(decoder_of, table.kind, schemas=schemas(settings, table))


def input_settings(settings: config.Config) -> dict[str, str]:
    """Return the settings that turn bytes into rows, as text; models do not survive a change.

    The id and time fields count only as ignored features. `LabelSet.restore` checks the labels.
    """
    format_ = plan.plain(settings.format)
    aside = {format_.pop(name) for name in ("id", "time")} - {None}
    others = ("time_unit", "labels", "label_warmup", "max_classes")
    for name in (*others, "schema", "descriptors", "message"):  # schemas may evolve
        del format_[name]
    features = plan.plain(settings.features)
    del features["max_bytes"]  # may be raised before the table is full
    spec = config.feature_reader(settings.features).fields
    fields = features.pop("fields") | {
        name: "ignore" for name in sorted(aside) if not isinstance(spec.of(name), Ignore)
    }
    tables = {"features": features, "format": format_, FIELDS: fields}
    return {
        f"{name}.{key}": str(value)
        for name, table in tables.items()
        for key, value in table.items()
    } | label_settings(settings.labels)


def label_settings(labels: config.LabelsConfig | None) -> dict[str, str]:
    """Return the settings of delayed labels that must not change."""
    if labels is None or labels.label is None:
        return {}
    return {"labels.label": labels.label}


def decoder(
    settings: config.Config,
    shared: Reader,
    learners: Sequence[Any] = (),
    fields: Fields | None = None,
) -> Decoder:
    """Build the decoder of the source's records; `fields`: other roles than the settings say."""
    table = settings.format
    return decoder_of(
        table.kind,
        shared,
        config.event_fields(table) if fields is None else fields,
        learners,
        delimiter=table.delimiter,
        columns=table.columns,
        schemas=schemas(settings, table),
    )


def schemas(settings: config.Config, table: config.RecordFormatConfig) -> Schemas | None:
    """Build the schemas of records; None for formats without."""
    given = settings.registry
    if table.kind not in WITH_SCHEMAS:
        return None
    from streamlearn.stream.formats.schemas import schemas_of  # noqa: PLC0415 - optional

    return schemas_of(
        table.kind,
        schema=table.schema,
        descriptors=table.descriptors,
        message=table.message,
        registry=None if given is None else schema_registry(given),
        in_files=isinstance(settings.source, config.FileSourceConfig),
    )


def schema_registry(given: config.RegistryConfig) -> SchemaRegistry:
    """Build the client of the schema registry."""
    return SchemaRegistry(
        given.url,
        username=given.username,
        password=None if given.password is None else given.password.reveal(),
        token=None if given.token is None else given.token.reveal(),
        cafile=given.cafile,
        certfile=given.certfile,
        keyfile=given.keyfile,
        timeout_seconds=given.timeout_seconds,
        wait_seconds=given.wait_seconds,
    )


def source(
    settings: config.Source,
    table: config.FormatConfig | None = None,
    *,
    sample: int | None = None,
    reset_offsets: bool = False,
    report: Callable[[str], None] | None = None,
    connect: Callable[[Connection], Connection] | None = None,
) -> Source:
    """Build the source; `sample`: of its decoder, if known; `report` logs rotations."""
    if isinstance(settings, config.KafkaSourceConfig):
        own = connection(settings)
        return KafkaSource(
            own if connect is None else connect(own),
            topics=settings.topics,
            pattern=settings.pattern,
            group_id=settings.group_id,
            start=settings.start,
            isolation=settings.isolation,
            order=settings.order,
            fetch_bytes=settings.fetch_bytes,
            on_gap=settings.on_gap,
            reset_offsets=reset_offsets,
            batch=settings.batch,
        )
    if isinstance(settings, config.SyntheticSourceConfig):
        return synthetic_source(settings)
    if isinstance(settings, config.CustomSourceConfig):
        return custom_source(settings)
    lines: dict[str, Any] = {"batch": settings.batch}
    if table is not None and table.kind == "csv":
        lines["delimiter"] = table.delimiter
        lines["first"] = CSV_SAMPLE if sample is None else sample
    if isinstance(settings, config.FileSourceConfig):
        open_file = None if table is None else opener_of(table.kind)
        if open_file is not None:
            return RecordFiles(settings.paths, open_file, batch=settings.batch)
        return Files(settings.paths, follow=settings.follow, report=report, **lines)
    return StandardInput(**lines)


def synthetic_source(settings: config.SyntheticSourceConfig) -> Source:
    """Build a synthetic stream."""
    half = None if settings.events is None or not settings.drift else settings.events // 2
    if settings.stream == "delayed":
        late = DelayedClicks(settings.events or 0, settings.seed, half)
        return Synthetic(late, events=len(late), rate=settings.rate, batch=settings.batch)
    stream = Clicks(settings.stream, settings.seed, half)
    return Synthetic(stream, events=settings.events, rate=settings.rate, batch=settings.batch)


def custom_source(settings: config.CustomSourceConfig) -> Source:
    """Build a source of the user."""
    try:
        found = import_path(settings.kind)(**config.revealed(settings.options))
    except (TypeError, ValueError) as error:
        raise ValueError(f"source.kind = {settings.kind!r}: {error}") from error
    missing = [name for name in METHODS if not callable(getattr(found, name, None))]
    if missing:
        raise ValueError(
            f"source.kind = {settings.kind!r} returns {type(found).__name__}, which is no source: "
            f"it has no {', '.join(missing)}"
        )
    return cast("Source", found)


def connection(settings: config.KafkaSourceConfig) -> Connection:
    """Build the connection to the brokers."""
    given = settings.security
    return Connection(
        bootstrap=settings.bootstrap,
        client=settings.client,
        security=Security(
            protocol=given.protocol or "",
            mechanism=given.mechanism,
            username=given.username,
            password=None if given.password is None else given.password.reveal(),
            cafile=given.cafile,
            certfile=given.certfile,
            keyfile=given.keyfile,
            token_provider=given.token_provider,
        ),
        client_id=settings.group_id,
    )


def writer(
    settings: config.Config, output: config.PredictionsConfig | config.DeadLettersConfig, name: str
) -> Writer | None:
    """Build what writes an output's records with a schema, which is registered; None for others."""
    given = settings.registry
    if output.topic is None or given is None or output.format in {"json", "raw"}:
        return None
    from streamlearn.daemon.outputs.written import register, writer_of  # noqa: PLC0415 - optional

    found = writer_of("avro" if output.format == "avro" else "protobuf", name)
    registry = schema_registry(given)
    register(found, registry, output.topic, given.subjects, allowed=given.register)
    return found


def sink(
    output: config.PredictionsConfig | config.DeadLettersConfig,
    settings: config.Source,
    fencing: Fencing | None = None,
    *,
    binary: bool = False,
) -> Sink | None:
    """Build the sink of an output; None if it has no destination."""
    if output.topic is not None and isinstance(settings, config.KafkaSourceConfig):
        return BlockingSink(connection(settings).sink(output.topic, fencing=fencing))
    return None if output.path is None else FileSink(output.path, binary=binary)
