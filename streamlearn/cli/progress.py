"""A progress bar with rate and remaining time, if standard error is a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from streamlearn.stream import Files
from streamlearn.stream.sources.parts import whole
from streamlearn.stream.sources.record_files import RecordFiles

if TYPE_CHECKING:
    from types import TracebackType

    from streamlearn.stream import Source


class Amount(ProgressColumn):
    """How much has been read, and how fast: in bytes, or in rows."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = (DownloadColumn(), TransferSpeedColumn())

    def render(self, task: Task) -> Text:
        """Return the text."""
        if task.fields.get("unit", "bytes") == "bytes":
            return Text(" ").join(column.render(task) for column in self._bytes)
        total = "?" if task.total is None else f"{task.total:,.0f}"
        speed = task.finished_speed or task.speed
        rate = "" if speed is None else f" {speed:,.0f}/s"
        return Text(f"{task.completed:,.0f}/{total} rows{rate}", style="progress.download")


class Bar:
    """Shows how much of a source has been read."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.shown = sys.stderr.isatty() and not quiet
        self.total = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            Amount(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not self.shown,
        )
        self._task = self._progress.add_task(title, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def restart(self, title: str) -> None:
        """Start over with a new title."""
        self.total = 0
        self._progress.reset(self._task, description=title)

    def update(self, source: Source) -> None:
        """Move the bar to the position of the source."""
        if not self.shown:
            return
        source = whole(source)
        if isinstance(source, Files | RecordFiles):
            done, total = source.progress()
            unit = source.unit if isinstance(source, RecordFiles) else "bytes"
            self._progress.update(self._task, total=total, completed=done, unit=unit)
            return
        left = [n for n in source.lag().values() if n is not None]
        if left:
            self.total = max(self.total, sum(left))
            self._progress.update(self._task, total=self.total, completed=self.total - sum(left))

    def print(self, line: str) -> None:
        """Print a line above the bar, on standard output."""
        if self.shown and sys.stdout.isatty():
            # bar and line share a terminal: rich moves the bar down
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
