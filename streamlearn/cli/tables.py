"""What commands show: a table on a terminal, plain lines in a pipe, JSON for programs."""

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

WIDE = 10_000  # a pipe has no width


def show_json(value: Any) -> None:
    """Print plain data; what JSON has not (NaN, infinity) is null."""
    sys.stdout.write(json.dumps(finite(value), ensure_ascii=False, indent=2, default=str) + "\n")


def finite(value: Any) -> Any:
    """Plain data with None for numbers that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def show_facts(facts: Mapping[str, Any], before: str = "") -> None:
    """Print names and values, one a line."""
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {cell(value)}\n" for name, value in facts.items()]
    sys.stdout.write(before + "".join(lines))


def show(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print rows, each of which maps the names of the columns to values."""
    console().print(table(rows, title))


def console() -> Console:
    """Standard output, as wide as it is."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else WIDE, highlight=False)


def table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """The rows as a table: numbers on the right, texts on the left."""
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


def cell(value: Any) -> str:  # noqa: PLR0911 - a case each
    """A value in a table.

    >>> cell(0.123456), cell(1234567), cell(None), cell(1e-9)
    ('0.1235', '1,234,567', '-', '1e-09')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{cell(key)}: {cell(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    # control characters of a stranger's names would reach the terminal
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in str(value))
