"""Tell files apart when log rotation moves or copies them.

A file is identified by its first bytes and its inode. One that was renamed, or copied before it was
truncated, is found in the same directory under a name with the same beginning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChangedError
from streamlearn.stream.sources.compression import is_compressed

if TYPE_CHECKING:
    from collections.abc import Collection

HEAD = 4096  # bytes at a file's beginning that identify it
BLOCK = 1 << 20


def first_bytes(path: str, length: int = HEAD) -> tuple[os.stat_result, bytes]:
    """Return a file's status and first bytes.

    Nothing is read of what is not a regular file, such as a named pipe: it would be lost.
    """
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):
        return status, b""
    with Path(path).open("rb") as file:
        head = file.read(length)
        return os.fstat(file.fileno()), head


class Fingerprint:
    """Identify a file by its inode and its first bytes."""

    def __init__(self, path: str, length: int = HEAD) -> None:
        status, head = first_bytes(path, length)
        self.text = Fingerprint.of(status.st_ino, head)

    @staticmethod
    def of(inode: int, head: bytes) -> str:
        """Return the fingerprint of a file with this inode and these first bytes."""
        return f"{inode}:{Fingerprint.head_of(head)}"

    @staticmethod
    def head_of(head: bytes) -> str:
        """Return what fingerprints of files with these first bytes have in common."""
        return f"{len(head)}:{hashlib.sha256(head).hexdigest()[:24]}"

    @staticmethod
    def head(kept: str) -> str:
        """Return the part of a fingerprint that is made of the first bytes."""
        return kept.partition(":")[2]

    @staticmethod
    def differs(path: str, kept: str) -> bool:
        """Whether the file is a different one from the one with this fingerprint."""
        now = Fingerprint(path, Fingerprint.length(kept)).text
        if Fingerprint.is_empty(kept):
            return Fingerprint.inode(now) != Fingerprint.inode(kept)
        return Fingerprint.head(now) != Fingerprint.head(kept)

    @staticmethod
    def inode(kept: str) -> int:
        """Return the inode of a fingerprint."""
        return int(kept.partition(":")[0])

    @staticmethod
    def length(kept: str) -> int:
        """Return how many bytes a fingerprint is made of."""
        return int(kept.split(":")[1])

    @staticmethod
    def is_empty(kept: str) -> bool:
        """Whether a fingerprint is of an empty file, so that only its inode is known."""
        return Fingerprint.length(kept) == 0


def begins_with(path: str, other: str) -> bool:
    """Whether a file begins with all of another one, or was truncated during the comparison."""
    with Path(path).open("rb") as file, Path(other).open("rb") as copy:
        while block := copy.read(BLOCK):
            if file.read(len(block)) != block:
                return os.fstat(file.fileno()).st_size < copy.tell()
    return True


def siblings(path: str) -> list[tuple[Path, os.stat_result]]:
    """List the uncompressed files in a file's directory that can be accessed."""
    found = []
    with contextlib.suppress(OSError):
        for one in Path(path).parent.iterdir():
            with contextlib.suppress(OSError):
                status = one.stat()
                if stat.S_ISREG(status.st_mode) and not is_compressed(one.name):
                    found.append((one, status))
    return found


def candidates(path: str, kept: str, at: int) -> list[Path]:
    """List the sibling files that may be the one with this fingerprint, read up to byte `at`."""
    name = Path(path).name
    by_inode: dict[int, Path] = {}  # one file may have several links
    for one, status in siblings(path):
        alike = one.name.startswith(name.partition(".")[0]) and one.name != name
        if alike and status.st_size >= at:
            with contextlib.suppress(OSError):  # a file without read permission is no candidate
                if not Fingerprint.differs(str(one), kept):
                    by_inode[status.st_ino] = one
    inode = Fingerprint.inode(kept)
    return [by_inode[inode]] if inode in by_inode else list(by_inode.values())


def refuse_missed_rotations(
    path: str, mine: os.stat_result, at: int, known: Collection[str] = ()
) -> None:
    """Raise SourceChangedError if files were rotated after the one that was read.

    They may hold what was written between it and the file that has its name now. Files in `known`
    do not count: they are read under their own names.
    """
    name = Path(path)
    like = re.compile(
        rf"{re.escape(name.name)}.+|{re.escape(name.stem)}[\W\d_TZ]+{re.escape(name.suffix)}"
    )
    read_anyway = set(map(Path, known))
    there = {one.name: status for one, status in siblings(path)}
    rotated = {one: status for one, status in there.items() if like.fullmatch(one)}
    inodes = {mine.st_ino, there.get(name.name, mine).st_ino}
    later = [
        one
        for one, status in rotated.items()
        if status.st_mtime_ns > mine.st_mtime_ns and status.st_size
        if status.st_ino not in inodes and name.with_name(one) not in read_anyway
    ]
    if later:
        names = [one for one, status in rotated.items() if status.st_ino == mine.st_ino]
        raise SourceChangedError(
            f"{path} was rotated more than once since it was read up to byte {at}: that file is "
            f"now {min(names, default='deleted')}, and {', '.join(sorted(later))} came later; "
            "append them to it and restore it under this name, or start over without the checkpoint"
        )
