"""Durable files: written whole or not at all, even if the power fails."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    WriteStep = Literal["write", "fsync", "rename", "fsync-directory"]

PART = ".part"  # the suffix of a file that is being written


def write_atomic(
    path: Path,
    pieces: Iterable[bytes | memoryview],
    *,
    temporary: Path | None = None,
    before: Callable[[WriteStep], None] = lambda _: None,
) -> int:
    """Write a temporary file, sync it, rename it, and sync its directory; return its bytes.

    `temporary` defaults to a random name, so that two processes can write the same file. `before`
    is called with the name of each step, "write" between the first piece and the second.
    """
    if temporary is None:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    size = 0
    try:
        with temporary.open("wb") as file:
            for piece in pieces:
                size += file.write(piece)
                if size == len(piece):
                    file.flush()
                    before("write")
            file.flush()
            before("fsync")
            os.fsync(file.fileno())
        before("rename")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    before("fsync-directory")
    fsync_directory(path.parent)
    return size


def make_directory(directory: Path) -> None:
    """Create a directory and its missing parents, and make them durable."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        fsync_directory(directory.parent)


def lock(handle: int) -> None:
    """Lock an open file or directory until it is closed; BlockingIOError if another process has."""
    import fcntl  # noqa: PLC0415 - not on Windows, where everything but the daemon works

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory durable, which syncing its files does not."""
    if os.name != "posix":  # Windows opens no directories
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
