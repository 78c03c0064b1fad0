"""Charts as SVG, colored by the style sheet of the page, so that they follow its color scheme."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.cli.report.axes import Axis
    from streamlearn.core.arrays import Array

WIDTH, HEIGHT = 400, 274
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 26, 40  # margins, with ticks and titles
MOST_POINTS = 400  # of a curve; the eye sees no more


class Chart:
    """A picture with two axes, to which marks are added in their order."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x = x
        self.y = y
        self._marks: list[str] = []

    def line(self, x: Array, y: Array, kind: str) -> None:
        """Add a line; `kind` is its class in the style sheet."""
        points = self._points(*few(x, y))
        self._marks.append(f'<polyline class="line {kind}" points="{points}"/>')

    def area(self, x: Array, y: Array, kind: str) -> None:
        """Add an area between a line and the x axis."""
        x, y = few(x, y)
        base = np.full(2, self.y.low)
        points = f"{self._points(x, y)} {self._points(np.array([x[-1], x[0]]), base)}"
        self._marks.append(f'<polygon class="area {kind}" points="{points}"/>')

    def dots(self, x: Array, y: Array, texts: Sequence[str], kind: str) -> None:
        """Add dots, with a text for those who point at them."""
        for (across, down), text in zip(self._places(x, y), texts, strict=True):
            self._marks.append(
                f'<circle class="dot {kind}" cx="{across:.1f}" cy="{down:.1f}" r="3.6">'
                f"<title>{escape(text)}</title></circle>"
            )

    def whiskers(self, x: Array, low: Array, high: Array, kind: str) -> None:
        """Add vertical intervals."""
        ends = zip(self._places(x, low), self._places(x, high), strict=True)
        for (across, bottom), (_, top) in ends:
            self._marks.append(
                f'<line class="whisker {kind}" x1="{across:.1f}" x2="{across:.1f}" '
                f'y1="{bottom:.1f}" y2="{top:.1f}"/>'
            )

    def svg(self, label: str) -> str:
        """Return the picture; `label` describes it to those who cannot see it."""
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
        for place, text in self.y.ticks:
            down = bottom - (place - self.y.low) / (self.y.high - self.y.low) * (bottom - TOP)
            parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{down:.1f}" y2="{down:.1f}"/>'
                f'<text class="tick end" x="{LEFT - 7}" y="{down + 4:.1f}">{escape(text)}</text>'
            )
        for place, text in self.x.ticks:
            across = LEFT + (place - self.x.low) / (self.x.high - self.x.low) * (right - LEFT)
            parts.append(
                f'<text class="tick middle" x="{across:.1f}" y="{bottom + 16}">'
                f"{escape(text)}</text>"
            )
        parts += self._marks
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
        parts.append(
            f'<text x="4" y="12">{escape(self.y.title)}</text>'
            f'<text class="end" x="{right}" y="{HEIGHT - 6}">{escape(self.x.title)}</text></svg>'
        )
        return "".join(parts)

    def _places(self, x: Array, y: Array) -> list[tuple[float, float]]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        across = LEFT + self.x.share(x) * (right - LEFT)
        down = bottom - self.y.share(y) * (bottom - TOP)
        return list(zip(across.tolist(), down.tolist(), strict=True))

    def _points(self, x: Array, y: Array) -> str:
        return " ".join(f"{across:.1f},{down:.1f}" for across, down in self._places(x, y))


def few(x: Array, y: Array) -> tuple[Array, Array]:
    """Return at most MOST_POINTS of the points of a line, with both ends."""
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).astype(np.intp))
    return np.asarray(x)[keep], np.asarray(y)[keep]


def bars(rows: Sequence[tuple[str, float]]) -> str:
    """Return named shares as horizontal bars, in HTML."""
    most = max((share for _, share in rows), default=1.0) or 1.0
    items = "".join(
        f'<li><span class="what" title="{escape(name)}">{escape(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100.0 * share / most:.2f}%"></span>'
        f'</span><span class="much">{share:.1%}</span></li>'
        for name, share in rows
    )
    return f'<ol class="bars">{items}</ol>'


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Return the kinds of marks and their meaning."""
    return "".join(f'<span class="key {kind}">{escape(text)}</span>' for kind, text in entries)
