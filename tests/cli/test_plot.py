"""Charts: the files are what they say they are, and show the curves where they are."""

from __future__ import annotations

import math
import struct
import zlib
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from streamlearn.cli.plot import Panel, Series, draw, page, png, svg
from streamlearn.cli.plot.chart import EDGE, Band, Stroke, limits, ticks
from streamlearn.cli.plot.strokes import LETTERS
from streamlearn.cli.progressive import ProgressiveCurve

X = [2.0**k for k in range(4, 20)]


def falling(name: str, end: float) -> Series:
    y = [end + 1.0 / math.sqrt(x) for x in X]
    return Series(name, X, y, [v - 0.05 for v in y], [v + 0.05 for v in y])


def unpacked(data: bytes) -> np.ndarray:
    """The pixels of a PNG, by the book."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name = data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", data[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(name + body)
        chunks[name] = body
        place += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_png_has_a_curve_in_its_color_and_its_band() -> None:
    image = unpacked(png(draw("title", [Panel("loss", [falling("one", 0.3)])])))
    blue = (image == (0x1F, 0x5F, 0xA8)).all(axis=2)
    # the line goes from the upper left to the lower right; the legend is right of the axes
    inside = np.argwhere(blue & (np.arange(image.shape[1]) < 1200))
    first, last = inside[inside[:, 1].argmin()], inside[inside[:, 1].argmax()]
    assert first[0] < last[0] - 100
    tint = 255.0 + 0.2 * (np.array([0x1F, 0x5F, 0xA8]) - 255.0)
    assert (np.abs(image - tint) < 1.0).all(axis=2).sum() > 1000


def test_a_bracket_is_a_band_with_its_edges_and_nothing_between() -> None:
    curve = Series("one", [1.0, 10.0, 100.0], low=[1.0, math.nan, 2.0], high=[3.0, 4.0, 5.0])
    shapes = draw("t", [Panel("p", [curve])]).shapes
    (band,) = (shape for shape in shapes if isinstance(shape, Band))
    edges = [shape for shape in shapes if isinstance(shape, Stroke) and shape.width == EDGE]
    assert [[y for _, y in edge.points] for edge in edges] == [band.low, band.high]
    assert len(band.x) == 2  # what is unknown is left out
    assert not [shape for shape in shapes if isinstance(shape, Stroke) and shape.width == 2.0]


def test_an_svg_is_xml_that_loads_nothing() -> None:
    text = page("a <b> & c", draw("t", [Panel("p", [falling("<script>", 0.1)])]), [{"x": 1.5}], "")
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    root = ET.fromstring(svg(draw("t", [Panel("p", [falling("one", 0.1)])])))  # noqa: S314
    kinds = [child.tag.rpartition("}")[2] for child in root]
    assert {"polyline", "polygon", "text"} <= set(kinds)


@pytest.mark.parametrize(
    "curve",
    [
        Series("empty", [], []),
        Series("one", [5.0], [0.5]),
        Series("none", [1.0, 2.0], [math.nan, math.inf]),
        Series("flat", [1.0, 2.0], [0.0, 0.0]),
        Series("huge", [1.0, 1e12], [1e300, -1e300]),
        Series("tiny", [1.0, 2.0], [1e-300, 2e-300]),
        Series("odd ☃ name\n" * 9, X, [-1.0] * len(X)),
    ],
    ids=lambda curve: curve.name[:5],
)
def test_whatever_the_curve_there_is_a_picture(curve: Series) -> None:
    drawing = draw("t", [Panel("p", [curve]), Panel("empty")])
    unpacked(png(drawing))
    ET.fromstring(svg(drawing))  # noqa: S314


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 7e6), (0.1, 0.11), (5.0, 5.0)])
def test_axes(low: float, high: float) -> None:
    bottom, top = limits(low, high)
    assert bottom <= low <= high <= top
    marks = ticks(bottom, top)
    assert 2 <= len(marks) <= 8
    assert all(bottom - 1e-9 <= mark <= top + 1e-9 for mark in marks)


def test_letters() -> None:
    assert set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") <= set(LETTERS)
    assert all(len(part) % 2 == 0 for text in LETTERS.values() for part in text.split())


def test_points_do_not_depend_on_batches() -> None:
    draws = np.random.default_rng(0)
    losses, weights = draws.random(1000), draws.integers(1, 4, 1000).astype(float)
    losses[draws.random(1000) < 0.1] = np.nan
    want = [(p.events, p.weight, p.loss, p.since) for p in ProgressiveCurve().add(losses, weights)]
    learned = ~np.isnan(losses)
    for events, weight, loss, _ in want:
        places = np.flatnonzero(learned)[:events]
        assert weight == weights[places].sum()
        assert loss == pytest.approx(np.average(losses[places], weights=weights[places]))
    for size in (1, 7, 64):
        curve = ProgressiveCurve()
        got = [
            (p.events, p.weight, p.loss, p.since)
            for start in range(0, 1000, size)
            for p in curve.add(losses[start : start + size], weights[start : start + size])
        ]
        assert [point[:2] for point in got] == [point[:2] for point in want]
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert [p.events for p in ProgressiveCurve(300).add(losses, weights)] == [300, 600]
