"""Checks of formats whose records are rows of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.backfill import history_format
from streamlearn.config.checks.formats import format_name
from streamlearn.config.checks.values import installed
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    BackfillConfig,
    FileSourceConfig,
    FormatConfig,
    Source,
    StdinSourceConfig,
)
from streamlearn.core.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable

from streamlearn.config.checks.values import Problems


def columns(
    format: FormatConfig,  # noqa: A002 - the table's name
    source: Source,
    backfill: BackfillConfig | None,
) -> Problems:
    """Check that columns are read from files, with pyarrow."""
    if backfill is not None:
        history = history_format(backfill, format)
        if backfill.kind is not None:
            yield from format_name(history, "backfill")
        yield from installed("backfill.kind", history.kind)
    if not format_named(format.kind).has_columns:
        return
    if not isinstance(source, FileSourceConfig):
        stdin = isinstance(source, StdinSourceConfig)
        other = "standard input" if stdin else "this source"
        yield ConfigProblem("format.kind", f"{format.kind} is read from files, not from {other}")
    elif source.follow:
        yield ConfigProblem(
            "source.follow", f"files of {format.kind} are not followed; use follow = false"
        )


CHECKS: tuple[Callable[..., Problems], ...] = (columns,)
