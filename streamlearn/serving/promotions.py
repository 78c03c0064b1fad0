"""Promotions: which learner serves everybody, with the history, in a file beside the snapshots.

    {"time": "2026-11-19T22:50:00+00:00", "action": "promote", "learner": "sparse", "by": "ann"}

Each line is a change. Servers read the file as they read new snapshots, so a promotion needs no
restart and reaches every machine that sees the directory.
"""

from __future__ import annotations

import datetime as dt
import getpass
import os
from typing import TYPE_CHECKING, Literal

import msgspec

from streamlearn.core.files import fsync_directory
from streamlearn.errors import ModelFileError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "promotions.jsonl"


class Promotion(msgspec.Struct):
    """A change of what is served."""

    time: str
    action: Literal["promote", "revert"]
    learner: str | None  # that serves from here on; None: as configured
    by: str


DECODER = msgspec.json.Decoder(Promotion)


def history(directory: Path) -> list[Promotion]:
    """Return all changes, oldest first; a line that is not whole yet is ignored."""
    path = directory / FILE
    try:
        return [DECODER.decode(line) for line in path.read_bytes().split(b"\n")[:-1] if line]
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}; correct or delete it") from error


def current(changes: list[Promotion]) -> str | None:
    """Return the learner that serves everybody; None if the configuration decides."""
    return changes[-1].learner if changes else None


def promote(directory: Path, learner: str) -> Promotion | None:
    """Let a learner serve everybody; return None, and change nothing, if it does already.

    >>> import tempfile; from pathlib import Path
    >>> directory = Path(tempfile.mkdtemp())
    >>> [promote(directory, name).learner for name in ("sparse", "robust")]
    ['sparse', 'robust']
    >>> [revert(directory).learner for _ in range(2)]
    ['sparse', None]
    >>> [change.action for change in history(directory)]
    ['promote', 'promote', 'revert', 'revert']
    >>> promote(directory, "sparse") is None, promote(directory, "sparse") is None
    (False, True)
    """
    if current(history(directory)) == learner:
        return None
    return append(directory, "promote", learner)


def revert(directory: Path) -> Promotion:
    """Undo the last promotion that is not undone yet."""
    before: list[str | None] = [None]
    for change in history(directory):
        if change.action == "promote":
            before.append(change.learner)
        else:
            before.pop()
    if len(before) < 2:
        raise ValueError("nothing is promoted: the configuration decides what is served")
    return append(directory, "revert", before[-2])


def append(directory: Path, action: Literal["promote", "revert"], learner: str | None) -> Promotion:
    """Append a change."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    change = Promotion(now, action, learner, user())
    with (directory / FILE).open("ab") as file:
        file.write(msgspec.json.encode(change) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    fsync_directory(directory)
    return change


def user() -> str:
    """Return the user's name, or the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
