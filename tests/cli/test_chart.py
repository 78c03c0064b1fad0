"""Charts: the files open, and show the curves in their colors, whatever the values."""

from __future__ import annotations

import io
import math
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from streamlearn.cli.chart import LOG_RATIO, ChartPanel, Curve, draw, page, png, svg

X = [2.0**k for k in range(4, 20)]


def falling(name: str, end: float) -> Curve:
    return Curve(name, X, [end + 1.0 / math.sqrt(x) for x in X])


def test_a_name_has_one_color_in_all_panels() -> None:
    panels = [
        ChartPanel("a", [falling("one", 0.3), falling("two", 0.2)]),
        ChartPanel("b", [falling("two", 1)]),
    ]
    first, second = draw("title", panels).axes
    colors = [line.get_color() for line in (*first.lines, *second.lines)]
    assert colors[1] == colors[2] != colors[0]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), panels[0].curves[0].y)


def test_a_bracket_is_a_band_with_its_edges_and_gaps_where_unknown() -> None:
    curve = Curve("one", [1.0, 10.0, 100.0], low=[1.0, math.nan, 2.0], high=[3.0, math.nan, 5.0])
    (axes,) = draw("t", [ChartPanel("p", [curve])]).axes
    assert len(axes.collections) == 1
    edges = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
    assert [edge[::2] for edge in edges] == [[1.0, 2.0], [3.0, 5.0]]
    assert all(math.isnan(edge[1]) for edge in edges)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1.0, 2.0 * LOG_RATIO], "log"),
        ([math.nan, 1.0, math.inf, 2.0 * LOG_RATIO], "log"),
        ([1.0, 0.5 * LOG_RATIO], "linear"),
        ([0.0, 2.0 * LOG_RATIO], "linear"),
        ([-1.0, 2.0 * LOG_RATIO], "linear"),
        ([math.nan], "linear"),
    ],
)
def test_axes_are_logarithmic_where_values_differ_by_magnitudes(
    values: list[float], scale: str
) -> None:
    x = [10.0**k for k in range(len(values))]
    bracket = Curve("band", x, low=values, high=[1.0] * len(values))
    for curve in (Curve("line", x, values), bracket):
        (axes,) = draw("t", [ChartPanel("p", [curve])]).axes
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", scale)
    (axes,) = draw("t", [ChartPanel("p", [Curve("start", [0.0], [1.0])])]).axes
    assert axes.get_xscale() == "linear"


def test_a_page_is_escaped_and_loads_nothing() -> None:
    figure = draw("t $x", [ChartPanel("p", [falling("<script>", 0.1)])])
    text = page("a <b> & c", figure, [{"x": 1.5}], "")
    assert "<script" not in text
    root = ET.fromstring(svg(figure))  # noqa: S314
    links = [value for e in root.iter() for key, value in e.items() if key.endswith("href")]
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize(
    "curve",
    [
        Curve("empty", [], []),
        Curve("one", [5.0], [0.5]),
        Curve("none", [1.0, 2.0], [math.nan, math.inf]),
        Curve("flat", [1.0, 2.0], [0.0, 0.0]),
        Curve("huge", [1.0, 1e12], [1e300, -1e300]),
        Curve("tiny", [1.0, 2.0], [1e-300, 2e-300]),
        Curve("_$odd ☃ name\n" * 9, X, [-1.0] * len(X)),
        Curve("at zero", [0.0], [1.0]),
    ],
    ids=lambda curve: curve.name[:5],
)
def test_any_curve_can_be_drawn(curve: Curve) -> None:
    figure = draw("t", [ChartPanel("p", [curve]), ChartPanel("empty")])
    image = mpl.image.imread(io.BytesIO(png(figure)))
    assert image.shape[2] == 4
    ET.fromstring(svg(figure))  # noqa: S314


def test_files_are_the_same_each_time() -> None:
    one, two = (draw("t", [ChartPanel("p", [falling("one", 0.1)])]) for _ in range(2))
    assert svg(one) == svg(two)
    assert png(one) == png(two)
