"""Constraints of [fleet]."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from streamlearn.config.checks import is_installed
from streamlearn.config.learners import event_fields, feature_reader
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN_LABELS,
    BackfillConfig,
    FeaturesConfig,
    FleetConfig,
    FormatConfig,
    KafkaSourceConfig,
    Source,
)
from streamlearn.errors import TableMismatchError
from streamlearn.stream import CSVDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.config.checks import Problems


def readers(
    fleet: FleetConfig,
    source: Source,
    features: FeaturesConfig,
    format: FormatConfig,  # noqa: A002 - the table's name
    backfill: BackfillConfig | None,
) -> Problems:
    """Check what several readers require: that each decodes a record like all others."""
    if fleet.readers == 0:
        return
    path = "fleet.readers"
    if not is_installed("ray"):
        yield ConfigProblem(path, "requires Ray; run pip install 'streamlearn[ray]'")
    if not isinstance(source, KafkaSourceConfig):
        yield ConfigProblem(path, "requires a Kafka source, whose partitions the readers share")
    if backfill is not None:
        yield ConfigProblem(path, "requires that history was learned; remove [backfill] then")
    if features.kind != "hashing":
        yield ConfigProblem(
            "features.kind",
            'fleet.readers requires "hashing": a table of names would differ between readers',
        )
    if format.labels == OPEN_LABELS:
        yield ConfigProblem(
            "format.labels", "fleet.readers requires labels that close; declare them"
        )
    if format.kind == "csv" and infers_types(features, format):
        yield ConfigProblem(
            "format.columns",
            "fleet.readers requires `columns`, `labels` and a declaration of every column in "
            "[features.fields]: readers infer no types",
        )


def infers_types(features: FeaturesConfig, format: FormatConfig) -> bool:  # noqa: A002 - the table's name
    """Return whether the types of columns would be inferred from the first records."""
    fields = event_fields(format)
    with suppress(TableMismatchError):  # is reported by other checks
        decoder = CSVDecoder(feature_reader(features), fields, columns=format.columns)
        return not format.columns or decoder.sample > 0
    return False


CHECKS: tuple[Callable[..., Problems], ...] = (readers,)
