"""Constraints of [labels]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.checks.formats import declared_labels, format_name
from streamlearn.config.checks.schemas import schema_origin
from streamlearn.config.checks.values import Problems, matches, topic_name
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    CustomSourceConfig,
    DeadLettersConfig,
    FileSourceConfig,
    FormatConfig,
    KafkaSourceConfig,
    LabelsConfig,
    RegistryConfig,
    Source,
    StdinSourceConfig,
    SyntheticSourceConfig,
)
from streamlearn.core.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable


def delayed_labels(
    format: FormatConfig,  # noqa: A002 - the table's name
    labels: LabelsConfig | None,
    source: Source,
    dead_letters: DeadLettersConfig,
) -> Problems:
    """Check what joining delayed labels requires."""
    generated = isinstance(source, SyntheticSourceConfig)
    if labels is None:
        if isinstance(source, SyntheticSourceConfig) and source.stream == "delayed":
            yield ConfigProblem("labels", 'missing; stream = "delayed" requires this table')
        return
    has_ids = format_named(format.kind).names_fields
    if not has_ids or (format.kind == "csv" and labels.topic is not None):
        yield ConfigProblem("format.kind", 'delayed labels require an id field; use kind = "json"')
    if format.id is None and not generated and not format.cloudevents:
        yield ConfigProblem("format.id", "missing; delayed labels are joined to events by id")
    if format.kept < 1.0:
        yield ConfigProblem(
            "format.kept",
            "cannot be used with [labels]: a label may come after its event was left out; put the "
            "weight into a field (format.weight)",
        )
    has_times = generated or isinstance(source, KafkaSourceConfig | CustomSourceConfig)
    timed = has_times or format.time is not None or format.cloudevents
    if labels.hold_for is not None and not timed:
        yield ConfigProblem("labels.hold_for", "requires format.time, which it is measured by")
    known = declared_labels(format)
    if labels.on_timeout != "drop" and known and labels.on_timeout not in known:
        yield ConfigProblem("labels.on_timeout", "not in format.labels")
    if labels.orphans and dead_letters.topic is None and dead_letters.path is None:
        yield ConfigProblem("labels.orphans", "requires dead_letters.topic or dead_letters.path")


def label_format(
    labels: LabelsConfig | None, source: Source, registry: RegistryConfig | None
) -> Problems:
    """Check the format of labels that have their own."""
    if labels is None or labels.format is None:
        return
    if labels.topic is None:
        yield ConfigProblem("labels.format", "requires labels.topic")
    if not format_named(labels.format.kind).nests:
        yield ConfigProblem("labels.format.kind", "delayed labels require an id field")
    yield from format_name(labels.format, "labels.format")
    yield from schema_origin(labels.format, "labels.format", registry, source)


def label_topic(labels: LabelsConfig | None, source: Source) -> Problems:
    """Check where delayed labels are read from."""
    if labels is None:
        return
    if labels.topic is None:
        for name in ("id", "time"):
            if getattr(labels, name) is not None:
                yield ConfigProblem(
                    f"labels.{name}", f"requires labels.topic; use format.{name} otherwise"
                )
    elif isinstance(source, FileSourceConfig | StdinSourceConfig | SyntheticSourceConfig):
        if labels.topic not in getattr(source, "paths", ()):
            yield ConfigProblem("labels.topic", "requires a Kafka source or one of source.paths")
    elif isinstance(source, KafkaSourceConfig):
        yield from topic_name("labels.topic", labels.topic)
        if source.pattern is not None and not matches(source.pattern, labels.topic):
            yield ConfigProblem("labels.topic", "does not match source.pattern")
        if labels.hold_for is not None and source.order != "time":
            yield ConfigProblem(
                "source.order",
                'labels.hold_for requires order = "time": otherwise a backlog in one topic times '
                "out before the other is read",
            )


CHECKS: tuple[Callable[..., Problems], ...] = (
    delayed_labels,
    label_topic,
    label_format,
)
