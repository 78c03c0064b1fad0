"""Files that are there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from streamlearn.daemon.process.faults import fault_point
from streamlearn.estimators.model_file import fsync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

PART = ".part"


def write_whole(
    path: Path, pieces: Iterable[bytes | memoryview], before_rename: Callable[[], None]
) -> int:
    """Write, fsync, rename, fsync the directory; how many bytes."""
    temporary = path.with_name(path.name + PART)
    size = 0
    try:
        with temporary.open("wb") as file:
            for piece in pieces:
                size += file.write(piece)
                if size == len(piece):
                    file.flush()
                    fault_point("write")  # in the middle of it
            file.flush()
            fault_point("fsync")
            os.fsync(file.fileno())
        before_rename()
        fault_point("rename")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fault_point("fsync-directory")
    fsync_directory(path.parent)
    return size


def make_directory(directory: Path) -> None:
    """Make it, and those above it, if they are not there."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        fsync_directory(directory.parent)
