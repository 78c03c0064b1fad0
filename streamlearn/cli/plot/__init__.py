"""Charts of curves, as SVG in a page or as PNG, without a plotting library.

chart    curves to shapes: axes, ticks, lines, bands, legend
svg      shapes as SVG, and a page around it
png      shapes as pixels
strokes  letters as pen strokes, which pixels need and SVG does not
"""

from streamlearn.cli.plot.chart import Panel, Series, draw
from streamlearn.cli.plot.png import png
from streamlearn.cli.plot.svg import page, svg

__all__ = ["Panel", "Series", "draw", "page", "png", "svg"]
