"""Build sources: where records come from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from streamlearn import config
from streamlearn.config.backfill import history_format, history_source
from streamlearn.core.imports import import_path
from streamlearn.core.times import timestamp
from streamlearn.kafka import Connection, KafkaSource, Security
from streamlearn.stream import (
    Clicks,
    DelayedClicks,
    Files,
    Partition,
    StandardInput,
    Synthetic,
)
from streamlearn.stream.formats.csv import SAMPLE as CSV_SAMPLE
from streamlearn.stream.sources.backfill import Backfill
from streamlearn.stream.sources.record_files import RecordFiles, counter_of, opener_of
from streamlearn.stream.sources.source import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.daemon.process.log import Log
    from streamlearn.stream import Source


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
        if table is not None and open_file is not None:
            count = counter_of(table.kind)
            return RecordFiles(settings.paths, open_file, batch=settings.batch, count=count)
        return Files(settings.paths, follow=settings.follow, report=report, **lines)
    return StandardInput(**lines)


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
        cut=cut_at(given),
        starts=starts,
        on_end=lambda: log.info("history ended", until=given.until),
    )


def cut_at(backfill: config.BackfillConfig) -> str:
    """Return where history ends, as checkpoints have it."""
    return datetime.fromtimestamp(timestamp(backfill.until), UTC).isoformat()


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
