"""Print rows: a table on a terminal, plain lines in a pipe, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE_WIDTH = 10_000  # no wrapping in a pipe


def show_json(value: Any) -> None:
    """Print plain data as JSON; NaN and infinity, which JSON lacks, become null."""
    sys.stdout.write(json.dumps(finite(value), ensure_ascii=False, indent=2, default=str) + "\n")


def finite(value: Any) -> Any:
    """Return plain data with None for NaN and infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def show_facts(facts: Mapping[str, Any], before: str = "") -> None:
    """Print names and values, one per line."""
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {cell(value)}\n" for name, value in facts.items()]
    sys.stdout.write(before + "".join(lines))


def show(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print rows, which map column names to values."""
    console().print(table(rows, title))


def show_rows(rows: Sequence[Mapping[str, Any]], nothing: str, *, as_json: bool) -> None:
    """Print rows, as JSON on demand; `nothing` is printed where a table would be empty."""
    if as_json:
        show_json(rows)
    elif rows:
        show(rows)
    else:
        sys.stdout.write(f"{nothing}\n")


def console() -> Console:
    """Return a console on standard output."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else PIPE_WIDTH, highlight=False)


def table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """Return rows as a table: numbers aligned right, text left."""
    terminal = sys.stdout.isatty()
    made = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD if terminal else None,
        pad_edge=False,
        show_edge=False,
    )
    for name in rows[0] if rows else ():
        numbers = all(isinstance(row[name], int | float | None) for row in rows)
        made.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell(value)) for value in row.values()))
    return made


def cell(value: Any) -> str:  # noqa: PLR0911 - one return per type
    """Return a value as the text of a table cell.

    >>> cell(0.123456), cell(1234567), cell(None), cell(1e-9), cell(35938.2)
    ('0.1235', '1,234,567', '-', '1e-09', '35,938')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{cell(key)}: {cell(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    # control characters in names from the data must not reach the terminal
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in str(value))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "feature"), counted(2_000, "row")
    ('1 feature', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
