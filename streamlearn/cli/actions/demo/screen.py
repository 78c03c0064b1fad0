"""The screens of the demo: live on a terminal, plain lines elsewhere, or silent."""

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

MAX_WIDTH = 100  # of text


def bracket(row: Row) -> str:
    """Return the bracket of the regret as text."""
    return "unknown" if row.regret is None else f"{row.regret[0]:.3f} .. {row.regret[1]:.3f}"


# name, minimum width and content of each column
COLUMNS = (
    ("learner", 9, lambda row: row.learner),
    ("error rate", 10, lambda row: f"{row.error:.1%}"),
    ("recent", 6, lambda row: f"{row.recent:.1%}"),
    ("loss", 6, lambda row: f"{row.loss:.4f}"),
    ("regret per event", 16, bracket),
    ("non-zeros", 9, lambda row: cell(row.nonzero)),
)
LEGEND = """\
Each event is predicted before it is learned, so errors are those on unseen events; recent ones are
of the last tenth of the stream. Losses differ by learner. Regret is relative to the best fixed
weights in hindsight, as a bracket; it is negative where the truth changed and the learner followed,
and unknown until those weights are known closely enough, which takes a larger sample or more time.
"""


def headline(view: View) -> str:
    """Describe the stream."""
    drift = f"; they change after {view.total // 2:,} events" if view.drift else ""
    return f"{view.total:,} synthetic click events with sparse true weights{drift}."


def page_line(view: View) -> str:
    """Return the address of the live page."""
    if view.page is None:
        return ""
    taken = "" if view.page.endswith(f":{view.port}/") and view.port else "  (9464 is taken)"
    return f"live page: {view.page}{taken}"


def progress(view: View) -> str:
    """Return the progress and the rate."""
    return f"{view.seen:,} of {view.total:,} events, {view.rate:,.0f} events/s"


def wrapped(text: str, width: int) -> str:
    """Fill paragraphs to a width; indented lines are kept."""
    lines = [
        line if line.startswith(" ") else textwrap.fill(line, width) for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


class Silent:
    """Shows nothing."""

    live = False

    def begin(self, view: View) -> None:
        """Show the start."""

    def learned(self, view: View) -> None:
        """Show a batch that was learned."""

    def draw(self, view: View, activity: str = "") -> None:
        """Redraw; called a few times per second."""

    def end(self, view: View, summary: str) -> None:
        """Show the end."""


class PlainScreen(Silent):
    """Prints a line at growing intervals, without control codes."""

    def __init__(self) -> None:
        self._next = 1000  # events at the next line

    def begin(self, view: View) -> None:
        """Print what is running."""
        page = page_line(view)
        self._write(view, headline(view) + "\n" + (page + "\n" if page else ""))

    def learned(self, view: View) -> None:
        """Print a line, if due."""
        if view.seen >= self._next:
            self._next = max(2 * self._next, view.seen + 1)
            errors = "  ".join(
                f"{row.learner} {row.error:.4f}/{row.nonzero:,}" for row in view.rows()
            )
            self._write(view, f"{progress(view)}  errors/non-zeros: {errors}\n")

    def end(self, view: View, summary: str) -> None:
        """Print the table and the summary."""
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
        self._write(view, f"{table}\n{wrapped(summary, MAX_WIDTH)}")

    @staticmethod
    def _write(view: View, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader (head, less) has closed the pipe; discard what is buffered
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            view.stop_requested.set()


class Screen(Silent):
    """Redraws a table in place."""

    live = True

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._live: Live | None = None

    def begin(self, view: View) -> None:
        """Start drawing; the cursor stays visible, however the process ends."""
        self._live = Live(self._picture(view), console=self.console, auto_refresh=False)
        self._live.start()
        self.console.show_cursor(show=True)

    def draw(self, view: View, activity: str = "") -> None:
        """Redraw."""
        if self._live is not None:
            self._live.update(self._picture(view, activity), refresh=True)

    def end(self, view: View, summary: str) -> None:
        """Leave the table in place, and print the summary."""
        if self._live is not None:
            self._live.update(self._picture(view), refresh=True)
            self._live.stop()
            self._live = None
        width = min(self.console.width, MAX_WIDTH)
        sys.stdout.write("\n" + wrapped(summary, width))
        if view.stays:
            sys.stdout.write(
                f"\nThe page is served while you watch it: {view.page} (Ctrl-C to stop)\n"
            )
        sys.stdout.flush()

    def _picture(self, view: View, activity: str = "") -> RenderableType:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, (title, width, _) in enumerate(COLUMNS):
            made.add_column(title, min_width=width, justify="right" if i else "left", no_wrap=True)
        for row in view.rows():
            made.add_row(*(show(row) for _, _, show in COLUMNS))
        status = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=view.total, completed=view.seen, width=24)
        status.add_row(bar, Text(activity or progress(view), style="bold"))
        width = min(self.console.width, MAX_WIDTH)
        return Group(
            Text(headline(view)),
            Text(page_line(view)),
            Text(""),
            status,
            Text(""),
            made,
            Text(""),
            Text(wrapped(LEGEND.replace("\n", " "), width), style="dim"),
        )
