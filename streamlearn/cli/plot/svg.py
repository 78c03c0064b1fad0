"""A drawing as SVG, and a page of HTML around drawings and tables that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from streamlearn.cli.plot.chart import INK, Band, Drawing, Shape, Stroke
from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem }
table { border-collapse: collapse } th, td { padding: .2rem .8rem; text-align: right }
th { border-bottom: 1px solid #999 } th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto }
""".strip()


def svg(drawing: Drawing) -> str:
    """The drawing as one element."""
    width, height = drawing.width, drawing.height
    shapes = "\n".join(element(shape) for shape in drawing.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif" '
        f'fill="{INK}">\n<rect width="100%" height="100%" fill="white"/>\n{shapes}\n</svg>'
    )


def element(shape: Shape) -> str:
    """One shape."""
    if isinstance(shape, Stroke):
        return (
            f'<polyline points="{points(shape.points)}" fill="none" stroke="{shape.color}" '
            f'stroke-width="{shape.width:g}" stroke-linejoin="round"/>'
        )
    if isinstance(shape, Band):
        around = [*zip(shape.x, shape.high, strict=True)]
        around += reversed([*zip(shape.x, shape.low, strict=True)])
        return f'<polygon points="{points(around)}" fill="{shape.color}" opacity="0.2"/>'
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" '
        f'text-anchor="{shape.at}">{escape(shape.text)}</text>'
    )


def points(places: Iterable[tuple[float, float]]) -> str:
    """Points as SVG writes them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def page(title: str, drawing: Drawing, rows: Sequence[Mapping[str, Any]], text: str) -> str:
    """A page with a drawing, a table and a sentence; it loads nothing from anywhere."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell(value))}</td>' for value in row.values())}</tr>"
        for row in rows
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n"
        f"<table>\n<tr>{head}</tr>\n{body}\n</table>\n{svg(drawing)}\n</html>\n"
    )
