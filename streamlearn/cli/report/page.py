"""The page: what the numbers say, the numbers, pictures, and where they come from."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlearn
from streamlearn.cli.report.panels import ReportPanel, panels
from streamlearn.cli.report.words import sentences
from streamlearn.cli.tables import cell
from streamlearn.config.expressions import unparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.cli.actions.test import Tested

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
BESIDE = {"constant's": "best constant", "mean's": "mean label"}


def page(title: str, tested: Tested, notes: Mapping[str, Any], command: Sequence[str]) -> str:
    """Return the page as HTML."""
    facts = tested.quality.facts()
    count = f"{tested.quality.events:,} labeled events"
    if tested.batches.invalid:
        count += f", {tested.batches.invalid:,} invalid"
    if tested.kept < 1.0:
        count += f", each negative with weight {1.0 / tested.kept:g} (kept = {tested.kept:g})"
    verdict = " ".join(escape(text) for text in sentences(facts))
    sections = "".join(section(panel) for panel in panels(tested, notes))
    origin = "".join(
        f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in about(tested, notes, command)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{STYLE}</style>\n"
        f"<header><h1>{escape(title)}</h1>"
        f'<p class="about">{count}, scored by the model as it is saved</p></header>\n'
        f'<p class="verdict">{verdict}</p>\n'
        f'<dl class="tiles">{"".join(tiles(facts))}</dl>\n'
        f"<main>{sections}</main>\n<footer><dl>{origin}</dl></footer>\n</html>\n"
    )


def section(panel: ReportPanel) -> str:
    """Return a panel as HTML."""
    kind = ' class="wide"' if panel.wide else ""
    return (
        f"<section{kind}><h2>{escape(panel.title)}</h2><p>{escape(panel.text)}</p>"
        f"{panel.body}</section>\n"
    )


def tiles(facts: Mapping[str, float | None]) -> Iterator[str]:
    """Yield each number, with that of the best constant beside it."""
    for name, value in facts.items():
        if name.startswith(tuple(BESIDE)):
            continue
        beside = "".join(
            f"<small>{text}: {cell(facts[f'{prefix} {name}'])}</small>"
            for prefix, text in BESIDE.items()
            if f"{prefix} {name}" in facts
        )
        yield f"<div><dt>{escape(name)}</dt><dd>{cell(value)}{beside}</dd></div>"


def about(
    tested: Tested, notes: Mapping[str, Any], command: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield what the model is and how the page was made, as HTML."""
    model = tested.model
    yield "model", f"<code>{escape(unparse(model))}</code>"
    yield "size", f"{model.nonzero:,} non-zero weights, {model.steps:,} steps"
    if "made by" in notes:
        yield "trained by", f"<code>{escape(str(notes['made by']))}</code>"
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    line = escape(shlex.join(["streamlearn", *command]))
    yield "tested by", f"<code>{line}</code> (streamlearn {streamlearn.__version__}, {when})"
