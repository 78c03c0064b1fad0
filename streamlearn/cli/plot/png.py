"""A drawing as PNG: lines are drawn by the distance of each pixel from them, letters as lines."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.cli.plot.chart import INK, Band, Drawing, Stroke, Text
from streamlearn.cli.plot.strokes import ADVANCE, EM, strokes

if TYPE_CHECKING:
    from streamlearn.estimators.frames import Array

SCALE = 2  # pixels for a unit of the drawing, so that it is sharp on fine screens


def png(drawing: Drawing) -> bytes:
    """The drawing as the bytes of a file."""
    return encoded(pixels(drawing))


def pixels(drawing: Drawing) -> Array:
    """The drawing as rows of RGB in 0 .. 255."""
    canvas = np.full((round(drawing.height * SCALE), round(drawing.width * SCALE), 3), 255.0)
    for shape in drawing.shapes:
        if isinstance(shape, Stroke):
            line(canvas, np.array(shape.points) * SCALE, shape.width * SCALE, rgb(shape.color))
        elif isinstance(shape, Band):
            band(canvas, shape)
        else:
            write(canvas, shape)
    return np.asarray(canvas.round().astype(np.uint8))


def line(canvas: Array, points: Array, width: float, color: Array) -> None:
    """Blend a line through points into the canvas."""
    for a, b in pairwise(points):
        low = np.floor(np.minimum(a, b) - width).astype(int).clip(0)
        high = np.ceil(np.maximum(a, b) + width).astype(int) + 1
        part = canvas[low[1] : high[1], low[0] : high[0]]
        if not part.size:
            continue
        y, x = np.mgrid[low[1] : low[1] + part.shape[0], low[0] : low[0] + part.shape[1]] + 0.5
        along = b - a
        length = float(along @ along)
        place = ((x - a[0]) * along[0] + (y - a[1]) * along[1]) / length if length else 0.0
        place = np.clip(place, 0.0, 1.0)
        distance = np.hypot(x - a[0] - place * along[0], y - a[1] - place * along[1])
        blend(part, np.clip(0.5 * width + 0.5 - distance, 0.0, 1.0), color)


def band(canvas: Array, shape: Band) -> None:
    """Tint what lies between two lines, column by column."""
    if not shape.x:
        return
    first, last = round(shape.x[0] * SCALE), round(shape.x[-1] * SCALE)
    columns = np.arange(first, max(last, first + 1)).clip(0, canvas.shape[1] - 1)
    at = (columns + 0.5) / SCALE
    upper, lower = (np.interp(at, shape.x, side) * SCALE for side in (shape.high, shape.low))
    rows = np.arange(canvas.shape[0])[:, None] + 0.5
    inside = (rows >= upper) & (rows <= lower)
    part = canvas[:, columns[0] : columns[-1] + 1]
    blend(part, 0.2 * inside, rgb(shape.color))


def write(canvas: Array, text: Text) -> None:
    """Write a text with a pen."""
    unit = text.size * SCALE / EM
    width = len(text.text) * ADVANCE * unit
    x = text.x * SCALE - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.at] * width
    for sign in text.text:
        for stroke in strokes(sign):
            points = np.array(stroke, dtype=float) * unit
            points += (x, text.y * SCALE - 6.0 * unit)
            line(canvas, points, 0.11 * text.size * SCALE, rgb(INK))
        x += ADVANCE * unit


def blend(part: Array, share: Array, color: Array) -> None:
    """Mix a color into a part of the canvas."""
    part += share[..., None] * (color - part)


def rgb(color: str) -> Array:
    """The parts of a color such as #1f5fa8."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)], dtype=float)


def encoded(image: Array) -> bytes:
    """Rows of RGB as PNG has them: each row with a filter of its own, none here."""
    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = image.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
