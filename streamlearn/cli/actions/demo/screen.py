"""The screens of the demo: live on a terminal, plain lines otherwise, or silent."""

from __future__ import annotations

import math
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


def percent(share: float) -> str:
    """Return an error rate as text; empty before the first event."""
    return "" if math.isnan(share) else f"{share:.1%}"


def bracket(row: Row) -> str:
    """Return the bracket of the regret as text."""
    if row.is_truth:
        return ""
    return "unknown" if row.regret is None else f"{row.regret[0]:.3f} .. {row.regret[1]:.3f}"


# name, minimum width and content of each column
COLUMNS = (
    ("learner", 9, lambda row: row.name),
    ("errors", 6, lambda row: percent(row.error)),
    ("recent", 6, lambda row: percent(row.recent)),
    ("weights kept", 12, lambda row: cell(row.kept)),
    ("real", 5, lambda row: cell(row.real)),
    ("regret per event", 16, bracket),
)
LEGEND = """\
Errors are of predictions made before the event was learned; recent ones in the last twentieth of
the stream. Nobody errs less than the truth: clicks are partly chance. Weights kept are not 0; real
ones are in the truth. Regret: loss above that of the best fixed weights, as a bracket.
"""


def headline(view: View) -> str:
    """Describe the stream."""
    return (
        f"Who clicks? {view.total:,} synthetic ad impressions. Each learner predicts one, is told "
        "what happened, learns it, and forgets it."
    )


def phase(view: View) -> str:
    """Describe where in the stream we are."""
    if view.half is None:
        return "What matters never changes (--no-drift)."
    if not view.changed:
        return f"After {view.half:,} of them, other users, ads, sites and campaigns will matter."
    return f"CHANGED after {view.half:,}: other users, ads, sites and campaigns matter now."


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
        text = wrapped(f"{headline(view)}\n{phase(view)}", MAX_WIDTH)
        self._write(view, text + (page + "\n" if page else ""))

    def learned(self, view: View) -> None:
        """Print a line, if due."""
        if view.seen >= self._next:
            self._next = max(2 * self._next, view.seen + 1)
            errors = "  ".join(f"{row.name} {row.error:.1%}" for row in view.rows())
            self._write(view, f"{progress(view)}  errors: {errors}\n")

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
        self._write(view, f"{table}\n{wrapped(summary, MAX_WIDTH)}{staying(view)}")

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
        sys.stdout.write("\n" + wrapped(summary, width) + staying(view))
        sys.stdout.flush()

    def _picture(self, view: View, activity: str = "") -> RenderableType:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, (title, width, _) in enumerate(COLUMNS):
            made.add_column(title, min_width=width, justify="right" if i else "left", no_wrap=True)
        for row in view.rows():
            style = "bold" if row.is_truth else None
            made.add_row(*(show(row) for _, _, show in COLUMNS), style=style)
        status = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=view.total, completed=view.seen, width=24)
        status.add_row(bar, Text(activity or progress(view), style="bold"))
        width = min(self.console.width, MAX_WIDTH)
        return Group(
            Text(wrapped(headline(view), width), end=""),
            Text(wrapped(phase(view), width), end="", style="bold yellow" if view.changed else ""),
            Text(page_line(view)),
            Text(""),
            status,
            Text(view.latest, style="dim", no_wrap=True, overflow="ellipsis"),
            Text(""),
            made,
            Text(""),
            Text(wrapped(LEGEND.replace("\n", " "), width), style="dim", end=""),
        )


def staying(view: View) -> str:
    """Return the line about the page that stays, if it does."""
    if not view.stays or view.page is None or view.stop_requested.is_set():
        return ""
    return f"\nThe page stays until you press Ctrl-C: {view.page}\n"
