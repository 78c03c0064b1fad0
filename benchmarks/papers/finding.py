"""The result of an experiment: a table, a picture, and which of the paper's claims it confirms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from PIL import Image

from benchmarks.report import table

if TYPE_CHECKING:
    from matplotlib.axis import Axis

COLORS = 96  # enough for lines and gray pictures, at a third of the size


@dataclass(frozen=True)
class Finding:
    """The result of one experiment.

    `claims` maps each claim to whether these numbers confirm it; `draw` fills a figure.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Mapping[str, bool]
    draw: Callable[[Figure], None]
    size: tuple[float, float] = (10.0, 4.0)  # inches

    def text(self) -> str:
        """Format the table and the claims as Markdown."""
        claims = "\n".join(
            f"- {'yes' if true else 'NO'}: {claim}" for claim, true in self.claims.items()
        )
        return f"## {self.title}\n\n{table(self.head, self.rows)}\n\n{claims}\n"

    def save(self, path: Path) -> None:
        """Save the picture as a PNG with a small palette."""
        figure = Figure(figsize=self.size, layout="constrained")
        self.draw(figure)
        drawn = BytesIO()
        figure.savefig(drawn, format="png", dpi=100)
        with Image.open(drawn) as image:
            image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def plain(axis: "Axis") -> None:
    """Label a logarithmic axis of few decades with numbers, not powers of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.set_minor_formatter("{x:g}")
