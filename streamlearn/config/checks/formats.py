"""Constraints of [format]: roles of fields, and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.checks.values import CALLABLE, Problems, installed
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    OPEN_LABELS,
    FormatConfig,
    Label,
    LabelsConfig,
    RecordFormatConfig,
    Source,
    SyntheticSourceConfig,
)
from streamlearn.core import formats
from streamlearn.core.formats import FORMATS, format_named
from streamlearn.core.labels import label_text
from streamlearn.core.nearest import nearest
from streamlearn.stream.sources.rows import checked

if TYPE_CHECKING:
    from collections.abc import Callable


def delimiter(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the separator of CSV."""
    try:
        checked(format.delimiter)
    except ValueError as error:
        yield ConfigProblem("format.delimiter", str(error))
    if format.kind == "csv" and format.delimiter == format.decimal == ",":
        yield ConfigProblem(
            "format.decimal",
            "is also the delimiter: set another one (format.delimiter, --delimiter)",
        )


def format_kind(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the kind of format and the keys that depend on it."""
    yield from format_name(format, "format")
    yield from installed("format.kind", format.kind)
    if format.kind != "csv":
        for name, default in (("delimiter", ","), ("decimal", "."), ("columns", ())):
            if getattr(format, name) != default:
                yield ConfigProblem(f"format.{name}", 'requires kind = "csv"')
    if len(set(format.columns)) < len(format.columns):
        yield ConfigProblem("format.columns", "duplicate name")


def event_root(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check where events are in records."""
    for name in ("root", "cloudevents"):
        if getattr(format, name) and not format_named(format.kind).nests:
            what = "row" if format_named(format.kind).has_columns else "line"
            yield ConfigProblem(f"format.{name}", f"a {what} of {format.kind} is the event")
    if format.root is not None and format.cloudevents:
        yield ConfigProblem("format.root", "the event of a CloudEvent is its `data`")
    if format.root is not None and not all(format.root.split(".")):
        yield ConfigProblem("format.root", "expected names, with dots between them")


def format_name(table: RecordFormatConfig, path: str) -> Problems:
    """Check the name of a format."""
    if table.kind not in FORMATS and not CALLABLE.fullmatch(table.kind):
        choices, hint = ", ".join(FORMATS), nearest(table.kind, list(FORMATS))
        yield ConfigProblem(f"{path}.kind", f"expected {choices} or module:callable; {hint}")


def field_roles(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check that each field has one role, and one that the format supports."""
    seen: dict[str, str] = {}
    for role in ("label", "weight", "id", "time"):
        name = getattr(format, role)
        if name is None:
            continue
        if not format_named(format.kind).names_fields:
            yield ConfigProblem(
                f"format.{role}", f"{format.kind} defines where the {role} is; remove this key"
            )
        elif name in seen:
            yield ConfigProblem(f"format.{role}", f"{name!r} is already the {seen[name]}")
        seen[name] = role


def label_field(
    format: FormatConfig,  # noqa: A002 - the table's name
    source: Source,
    labels: LabelsConfig | None,
) -> Problems:
    """Check that labels can be found."""
    if isinstance(source, SyntheticSourceConfig):
        if format.kind != "json":
            yield ConfigProblem(
                "format.kind", 'a synthetic source generates JSON; use kind = "json"'
            )
    elif labels is not None and labels.label is not None:
        return
    elif format.label is None and format.kind in formats.names(names_fields=True):
        yield ConfigProblem("format.label", "missing; nothing is learned without labels")


def label_values(format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the declared labels."""
    known = declared_labels(format)
    if known and any(value not in known for value in positive_labels(format)):
        yield ConfigProblem("format.positive", "not in `labels`")
    if known and min(len(set(known)), len(set(map(label_text, known)))) < max(2, len(known)):
        yield ConfigProblem("format.labels", "expected at least two labels, each with its own text")


def positive_labels(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """Return the label values that mean true."""
    if isinstance(format.positive, tuple):
        return format.positive
    return () if format.positive is None else (format.positive,)


def declared_labels(format: FormatConfig) -> tuple[Label, ...]:  # noqa: A002 - the table's name
    """Return the labels that are declared, if any."""
    return () if format.labels == OPEN_LABELS else tuple(format.labels)


CHECKS: tuple[Callable[..., Problems], ...] = (
    delimiter,
    format_kind,
    event_root,
    label_values,
    field_roles,
    label_field,
)
