"""Build sinks, and how their records are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.daemon.builders.decoders import schema_registry
from streamlearn.daemon.builders.sources import connection
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.kafka import Fencing
from streamlearn.stream.sinks.json_lines import FileSink

if TYPE_CHECKING:
    from streamlearn.stream.formats.writers import Writer
    from streamlearn.stream.sinks.sink import Sink


TRANSACTION_MARGIN_SECONDS = 30.0  # by which a transaction may outlast `max_age_seconds`


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
    if output.path is None:
        return None
    return BlockingSink(FileSink(output.path, binary=binary))


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


def fencing(settings: config.Config, role: str) -> Fencing | None:
    """Return how a Kafka output fences off earlier owners; None without transactions."""
    checkpoint = settings.checkpoint
    if checkpoint is None or not checkpoint.transactions:
        return None
    return Fencing(role, checkpoint.max_age_seconds + TRANSACTION_MARGIN_SECONDS)
