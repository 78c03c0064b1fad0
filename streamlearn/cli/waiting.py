"""Say what a command waits for, if somebody watches it and standard input is silent."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options

PATIENCE = 1.0  # seconds


def announce(options: Options) -> None:
    """Say that standard input is read, if it is a terminal."""
    if options.files == ["-"] and sys.stdin.isatty():
        write(options, "reading standard input; end it with Ctrl-D")


@contextmanager
def first_rows(options: Options, count: int) -> Iterator[None]:
    """Say that so many rows are waited for, if they do not come soon from standard input."""
    if options.files != ["-"] or not options.guess or not sys.stderr.isatty():
        yield
        return
    text = (
        f"waiting for the first {count:,} rows of standard input, or its end, to guess what the "
        "fields are; --no-guess learns each row as it comes"
    )
    timer = Timer(PATIENCE, write, (options, text))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def write(options: Options, text: str) -> None:
    """Write a line for the person at the terminal."""
    sys.stderr.write(f"streamlearn {options.command}: {text}\n")
    sys.stderr.flush()
