"""Draw curves over the number of events with matplotlib: a PNG, or a page with table and SVG."""

from __future__ import annotations

import importlib.util
import io
import math
import re
import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOG_RATIO = 50.0  # the y axis is logarithmic where the highest value is this times the lowest
MAX_VALUE = 1e100  # matplotlib's axes overflow beyond
MAX_NAME = 40  # characters in the legend
# the same figure gives the same file
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "streamlearn"}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem }
table { border-collapse: collapse } th, td { padding: .2rem .8rem; text-align: right }
th { border-bottom: 1px solid #999 } th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto }
""".strip()


@dataclass
class Curve:
    """A line over the number of events, or a band with its edges."""

    name: str
    x: Sequence[float]
    y: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass
class ChartPanel:
    """Curves that share their axes."""

    title: str
    curves: Sequence[Curve] = ()


def require_matplotlib() -> None:
    """Raise ValueError if matplotlib, an extra, is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("charts need matplotlib; run pip install 'streamlearn[plot]'")


def draw(title: str, panels: Sequence[ChartPanel]) -> Figure:
    """Return a figure with the panels below each other; a name has one color in all of them."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    colors = {name: f"C{i % 10}" for i, name in enumerate(names)}
    figure = Figure(figsize=(9.0, 0.6 + 2.8 * len(panels)), layout="constrained")
    figure.suptitle(title, parse_math=False)
    rows = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axes, panel in zip(rows, panels, strict=True):
        draw_panel(axes, panel, colors)
    rows[-1].set_xlabel("events")
    return figure


def draw_panel(axes: Axes, panel: ChartPanel, colors: Mapping[str, str]) -> None:
    """Draw the curves of a panel."""
    axes.set_title(panel.title, loc="left", fontsize="medium", parse_math=False)
    for curve in panel.curves:
        draw_curve(axes, curve, colors[curve.name])
    if any(x > 0.0 for curve in panel.curves for x in curve.x):
        axes.set_xscale("log")
    values = [y for curve in panel.curves for y in bounded([*curve.y, *curve.low])]
    known = [y for y in values if not math.isnan(y)]
    if known and max(known) > LOG_RATIO * min(known) > 0.0:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        legend = axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)  # "$" is part of a name


def draw_curve(axes: Axes, curve: Curve, color: str) -> None:
    """Add a curve; unknown values (NaN) leave a gap."""
    label = re.sub(r"\s+", " ", curve.name)[:MAX_NAME].lstrip("_")
    if len(curve.y):
        axes.plot(curve.x, bounded(curve.y), color=color, label=label)
    if len(curve.low):
        low, high = bounded(curve.low), bounded(curve.high)
        axes.fill_between(curve.x, low, high, color=color, alpha=0.2)
        for edge in (low, high):
            axes.plot(curve.x, edge, color=color, linewidth=0.8)


def bounded(values: Sequence[float]) -> list[float]:
    """Return values with NaN for those that cannot be drawn."""
    return [value if abs(value) < MAX_VALUE else math.nan for value in values]


def png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    return saved(figure, "png")


def svg(figure: Figure) -> str:
    """Return a figure as an SVG element."""
    text = saved(figure, "svg").decode()
    return text[text.index("<svg") :]


def saved(figure: Figure, kind: str) -> bytes:
    """Return a figure in a format, the same bytes each time."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    file = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with warnings.catch_warnings(), mpl.rc_context(SETTINGS):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn instead
        figure.savefig(file, format=kind, dpi=120, metadata=metadata)
    return file.getvalue()


def page(title: str, figure: Figure, rows: Sequence[Mapping[str, Any]], text: str) -> str:
    """Return a page with a text, a table and a figure, which loads nothing."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell(value))}</td>' for value in row.values())}</tr>"
        for row in rows
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n"
        f"<table>\n<tr>{head}</tr>\n{body}\n</table>\n{svg(figure)}\n</html>\n"
    )
