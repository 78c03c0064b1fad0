"""Build decoders: how records become events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn import config
from streamlearn.config.backfill import history_format, history_source
from streamlearn.core.formats import format_named
from streamlearn.daemon.delayed_event_reader import DelayedEventReader
from streamlearn.daemon.event_reader import EventReader
from streamlearn.features import Names
from streamlearn.features.fields.spec import OTHERS
from streamlearn.late.join import DROP, Join
from streamlearn.stream import (
    decoder_of,
)
from streamlearn.stream.formats.packed import PackedDecoder
from streamlearn.stream.schema_registry import SchemaRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.features import Reader
    from streamlearn.stream import Decoder, Fields
    from streamlearn.stream.formats.schemas import Schemas


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
        decimal=table.decimal,
        schemas=schemas(settings, table),
    )


def history_decoder(
    settings: config.Config, given: config.BackfillConfig, shared: Reader, learners: Sequence[Any]
) -> Decoder:
    """Build the decoder of the records of history."""
    table = msgspec.structs.replace(
        settings, source=history_source(given), format=history_format(given, settings.format)
    )
    return decoder(table, shared, learners)


def decoder_maker(
    settings: config.Config, table: config.RecordFormatConfig
) -> Callable[..., Decoder]:
    """Return what makes the decoders of a format."""
    return partial(decoder_of, table.kind, schemas=schemas(settings, table))


def schemas(settings: config.Config, table: config.RecordFormatConfig) -> Schemas | None:
    """Build the schemas of records; None for formats without."""
    given = settings.registry
    if not format_named(table.kind).has_schemas:
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
        cache=given.cache,
    )
