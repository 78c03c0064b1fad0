"""Curves to shapes on a canvas: panels below each other, over one logarithmic axis of events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDTH, HEIGHT = 900, 280  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 76, 230, 34, 36  # its margins; the legend is on the right
COLORS = (
    *("#1f5fa8", "#d4622a", "#2b8a4b", "#a8324a", "#6b4fa0"),
    *("#8a6d1b", "#c2519b", "#4a4a4a", "#1c8c9c", "#7fa02b"),
)
WIDE = 50.0  # where the highest is so many times the lowest, the axis is logarithmic
EDGE = 1.2  # the width of a band's edges
INK, FAINT = "#333333", "#dddddd"


@dataclass
class Series:
    """A line over the number of events, or a band with its edges, or both."""

    name: str
    x: Sequence[float]
    y: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass
class Panel:
    """Curves that share their axes."""

    title: str
    curves: list[Series] = field(default_factory=list)


@dataclass
class Stroke:
    """A line through points."""

    points: list[tuple[float, float]]
    color: str
    width: float = 1.0


@dataclass
class Band:
    """What lies between two lines over the same x."""

    x: list[float]
    low: list[float]
    high: list[float]
    color: str


@dataclass
class Text:
    """A text; `at` says which part of it is at x: start, middle or end."""

    x: float
    y: float  # of the baseline
    text: str
    at: str = "start"
    size: float = 12.0


Shape = Stroke | Band | Text


@dataclass
class Drawing:
    """Shapes on a canvas."""

    width: float
    height: float
    shapes: list[Shape]


def draw(title: str, panels: Sequence[Panel]) -> Drawing:
    """All panels, each curve in the color of its name."""
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
    shapes: list[Shape] = [Text(LEFT, 24, title, size=15)]
    top = 36.0
    for panel in panels:
        shapes += panel_shapes(panel, top, colors)
        top += HEIGHT
    return Drawing(WIDTH, top + 8, shapes)


def panel_shapes(panel: Panel, top: float, colors: dict[str, str]) -> Iterator[Shape]:
    """Title, axes, curves and legend of a panel."""
    left, right = float(LEFT), float(WIDTH - RIGHT)
    upper, lower = top + TOP, top + HEIGHT - BOTTOM
    yield Text(left, upper - 10, panel.title, size=13)
    curves = [finite(curve) for curve in panel.curves]
    # all that was looked at, known or not: the axis is that of the other panels
    xs = [x for curve in panel.curves for x in curve.x if math.isfinite(x)]
    ys = [y for curve in curves for y in (*curve.y, *curve.low, *curve.high)]
    if not ys:
        yield Text(left, (upper + lower) / 2, "nothing to show")
        return
    first, last = math.log10(max(min(xs), 1.0)), math.log10(max(*xs, 10.0))
    logarithmic = min(ys) > 0.0 and max(ys) > WIDE * min(ys)
    bottom, height = limits(*((math.log10(y) if logarithmic else y) for y in (min(ys), max(ys))))

    def across(x: float) -> float:
        place = (math.log10(max(x, 1.0)) - first) / max(last - first, 1e-9)
        return left + place * (right - left)

    def up(y: float) -> float:
        place = math.log10(y) if logarithmic else y
        return lower - (place - bottom) / (height - bottom) * (lower - upper)

    for y in powers(bottom, height) if logarithmic else ticks(bottom, height):
        yield Stroke([(left, up(y)), (right, up(y))], FAINT)
        yield Text(left - 8, up(y) + 4, short(y), "end", 11)
    for power in range(math.ceil(first), math.floor(last) + 1):
        x = across(10.0**power)
        yield Stroke([(x, lower), (x, lower + 5)], INK)
        yield Text(x, lower + 18, short(10.0**power), "middle", 11)
    yield Text((left + right) / 2, lower + 31, "events", "middle", 11)
    yield Stroke([(left, upper), (left, lower), (right, lower)], INK)
    for i, curve in enumerate(curves):
        color = colors[curve.name]
        yield from curve_shapes(curve, across, up, color)
        y = upper + 8 + 17 * i
        if y < lower:
            yield Stroke([(right + 14, y), (right + 34, y)], color, 3.0)
            yield Text(right + 40, y + 4, clipped(curve.name, 27), size=11)


def curve_shapes(
    curve: Series, across: Callable[[float], float], up: Callable[[float], float], color: str
) -> Iterator[Shape]:
    """A curve's band with its edges, and its line."""
    x = [across(x) for x in curve.x]
    low, high, y = ([up(y) for y in side] for side in (curve.low, curve.high, curve.y))
    if low:
        yield Band(x, low, high, color)
    for side, width in ((low, EDGE), (high, EDGE), (y, 2.0)):
        if side:
            points = list(zip(x, side, strict=True))
            yield Stroke(points if len(points) > 1 else points * 2, color, width)


def finite(curve: Series) -> Series:
    """The curve without points that are none."""
    sides = [side if len(side) else curve.x for side in (curve.y, curve.low, curve.high)]
    kept = [row for row in zip(curve.x, *sides, strict=True) if all(map(math.isfinite, row))]
    x, *columns = zip(*kept, strict=True) if kept else ((),)
    given = (curve.y, curve.low, curve.high) if kept else ()
    found = (new if len(old) else () for new, old in zip(columns, given, strict=True))
    return Series(curve.name, x, *found)


def limits(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis: a little more than what it shows, 0 where that is near."""
    if 0.0 < low < 0.35 * high:
        low = 0.0
    space = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (low if low == 0.0 else low - space), high + space


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between.

    >>> ticks(0.0, 1.05)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1.0, 2.0, 5.0, 10.0) if power * k >= rough)
    first = math.ceil(low / step)
    count = math.floor(high / step) - first + 1
    return [round((first + i) * step, 12) for i in range(count)]


def powers(low: float, high: float) -> list[float]:
    """Round numbers between two powers of 10: those and, where there are few, 2 and 5 times them.

    >>> powers(-1.1, 1.2)
    [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    factors = (1.0, 2.0, 5.0) if high - low < 3.0 else (1.0,)
    step = max(1, math.ceil((high - low) / 8.0))
    found = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1, step)
        for factor in factors
    ]
    return [y for y in found if low <= math.log10(y) <= high]


def short(value: float) -> str:
    """A number on an axis.

    >>> short(0.25), short(20000.0), short(1e6)
    ('0.25', '20k', '1M')
    """
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{name}"
    return f"{value:.6g}"


def clipped(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: most - 2] + ".."
