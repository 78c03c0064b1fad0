"""How the demonstration is shown: live on a terminal, as lines elsewhere, or not at all."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from rich.console import RenderableType

    from streamlearn.cli.actions.demo.view import Row, View

WIDEST = 100  # columns of text


def band(row: Row) -> str:
    """At least and at most, if that says anything."""
    return "unknown" if row.regret is None else f"{row.regret[0]:.3f} .. {row.regret[1]:.3f}"


# each column's name, least width, and what is in it
COLUMNS = (
    ("learner", 9, lambda row: row.learner),
    ("errors", 6, lambda row: f"{row.error:.1%}"),
    ("of late", 7, lambda row: f"{row.late:.1%}"),
    ("loss", 6, lambda row: f"{row.loss:.4f}"),
    ("regret an event", 16, band),
    ("non-zeros", 9, lambda row: cell(row.nonzero)),
)
LEGEND = """\
Each event is predicted before it is learned: errors are of events not seen before, of late those
of the last sixth. The loss is each learner's own. Its regret is against the best fixed weights in
hindsight, at least and at most: less than 0 where the truth moved and the learner followed. It is
unknown while those weights are not known closely enough, which takes more memory or more time.
"""


def headline(view: View) -> str:
    """What is being watched."""
    turn = f" that changes after {view.total // 2:,}" if view.drift else ""
    return f"{view.total:,} clicks or none, made up by a sparse truth{turn}."


def place(view: View) -> str:
    """Where the live page is."""
    if view.page is None:
        return ""
    taken = "" if view.page.endswith(f":{view.wish}/") and view.wish else "  (9464 is taken)"
    return f"live page: {view.page}{taken}"


def progress(view: View) -> str:
    """How far it is, and how fast."""
    return f"{view.seen:,} of {view.total:,} events, {view.rate:,.0f} events/s"


def wrapped(text: str, width: int) -> str:
    """Paragraphs filled to a width; lines that are indented stay as they are."""
    lines = [
        line if line.startswith(" ") else textwrap.fill(line, width) for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


class Silent:
    """Nothing is shown."""

    live = False

    def begin(self, view: View) -> None:
        """The learners are there."""

    def learned(self, view: View) -> None:
        """A batch was learned."""

    def draw(self, view: View, doing: str = "") -> None:
        """A few times a second."""

    def end(self, view: View, story: str) -> None:
        """It is over."""


class PlainScreen(Silent):
    """A line at growing intervals, without control codes."""

    def __init__(self) -> None:
        self._next = 1000  # events at which the next line is due

    def begin(self, view: View) -> None:
        """Say what is going on."""
        page = place(view)
        self._say(view, headline(view) + "\n" + (page + "\n" if page else ""))

    def learned(self, view: View) -> None:
        """A line, if it is due."""
        if view.seen >= self._next:
            self._next = max(2 * self._next, view.seen + 1)
            told = "  ".join(
                f"{row.learner} {row.error:.4f}/{row.nonzero:,}" for row in view.rows()
            )
            self._say(view, f"{progress(view)}  errors/non-zeros: {told}\n")

    def end(self, view: View, story: str) -> None:
        """The table, and the story."""
        rows = [[title for title, _, _ in COLUMNS]]
        rows += [[show(row) for _, _, show in COLUMNS] for row in view.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = "".join(
            f"{row[0]:<{widths[0]}}"
            + "".join(f"  {text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
            + "\n"
            for row in rows
        )
        table = f"\n{progress(view)}\n{table}\n{LEGEND}" if view.seen else ""
        self._say(view, f"{table}\n{wrapped(story, WIDEST)}")

    @staticmethod
    def _say(view: View, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader (head, less) has seen enough; what is still buffered goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            view.wanted.set()


class Screen(Silent):
    """A table that is redrawn in place."""

    live = True

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._live: Live | None = None

    def begin(self, view: View) -> None:
        """Begin to draw; the cursor stays visible, whatever ends the process."""
        self._live = Live(self._picture(view), console=self.console, auto_refresh=False)
        self._live.start()
        self.console.show_cursor(show=True)

    def draw(self, view: View, doing: str = "") -> None:
        """Draw it anew."""
        if self._live is not None:
            self._live.update(self._picture(view, doing), refresh=True)

    def end(self, view: View, story: str) -> None:
        """Leave the table as it is, and tell the story."""
        if self._live is not None:
            self._live.update(self._picture(view), refresh=True)
            self._live.stop()
            self._live = None
        width = min(self.console.width, WIDEST)
        sys.stdout.write("\n" + wrapped(story, width))
        if view.stays:
            sys.stdout.write(f"\nThe page stays while you look at it: {view.page}  Ctrl-C ends.\n")
        sys.stdout.flush()

    def _picture(self, view: View, doing: str = "") -> RenderableType:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, (title, width, _) in enumerate(COLUMNS):
            made.add_column(title, min_width=width, justify="right" if i else "left", no_wrap=True)
        for row in view.rows():
            made.add_row(*(show(row) for _, _, show in COLUMNS))
        status = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=view.total, completed=view.seen, width=24)
        status.add_row(bar, Text(doing or progress(view), style="bold"))
        width = min(self.console.width, WIDEST)
        return Group(
            Text(headline(view)),
            Text(place(view)),
            Text(""),
            status,
            Text(""),
            made,
            Text(""),
            Text(wrapped(LEGEND.replace("\n", " "), width), style="dim"),
        )
