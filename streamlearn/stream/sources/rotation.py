"""Which file is which, where rotation gives names to others.

A file is known by how it begins and by its place on the disk (its inode). One that was renamed, or
copied before it was cut, lies beside the one that has its name now, under a name that begins alike.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChanged
from streamlearn.stream.sources.packed import is_packed

if TYPE_CHECKING:
    from collections.abc import Collection

HEAD = 4096  # bytes at a file's beginning that tell it from others
BLOCK = 1 << 20


class Fingerprint:
    """What tells a file from another of its name: its first bytes, and where it lies.

    Of what is not a regular file, such as a named pipe, nothing is read: it would be lost.
    """

    def __init__(self, path: str, length: int = HEAD) -> None:
        status, head = Path(path).stat(), b""
        if stat.S_ISREG(status.st_mode):
            with Path(path).open("rb") as file:
                head = file.read(length)
                status = os.fstat(file.fileno())
        self.text = Fingerprint.of(status.st_ino, head)

    @staticmethod
    def of(inode: int, head: bytes) -> str:
        """The text of a file that lies there and begins so."""
        return f"{inode}:{len(head)}:{hashlib.sha256(head).hexdigest()[:24]}"

    @staticmethod
    def refuted(path: str, kept: str) -> bool:
        """Whether the file is another than the one whose fingerprint was kept."""
        inode, length, _ = kept.split(":")
        now = Fingerprint(path, int(length)).text
        if length == "0":  # it was empty: only its place is known
            return now.split(":")[0] != inode
        return now.split(":")[1:] != kept.split(":")[1:]


def begins_with(path: str, other: str) -> bool:
    """Whether a file begins with all that another holds, or was cut while it was compared."""
    with Path(path).open("rb") as file, Path(other).open("rb") as copy:
        while block := copy.read(BLOCK):
            if file.read(len(block)) != block:
                return os.fstat(file.fileno()).st_size < copy.tell()
    return True


def beside(path: str) -> list[tuple[Path, os.stat_result]]:
    """What lies beside a file and is not packed; not what is gone, or not ours to look at."""
    found = []
    with contextlib.suppress(OSError):
        for one in Path(path).parent.iterdir():
            with contextlib.suppress(OSError):
                status = one.stat()
                if stat.S_ISREG(status.st_mode) and not is_packed(one.name):
                    found.append((one, status))
    return found


def holding(path: str, kept: str, at: int) -> list[Path]:
    """The files beside it that may be the one that was read up to there."""
    name = Path(path).name
    places: dict[int, Path] = {}  # one file may have several links
    for one, status in beside(path):
        alike = one.name.startswith(name.partition(".")[0]) and one.name != name
        if alike and status.st_size >= at:
            with contextlib.suppress(OSError):  # who may not read it cannot go on in it
                if not Fingerprint.refuted(str(one), kept):
                    places[status.st_ino] = one
    inode = int(kept.partition(":")[0])
    return [places[inode]] if inode in places else list(places.values())


def refuse_later(path: str, mine: os.stat_result, at: int, besides: Collection[str] = ()) -> None:
    """SourceChanged if others were rotated after the one that was read.

    They might be what was between it and the one that has its name now; not those `besides`, which
    are read on their own.
    """
    name = Path(path)
    like = re.compile(
        rf"{re.escape(name.name)}.+|{re.escape(name.stem)}[\W\d_TZ]+{re.escape(name.suffix)}"
    )
    apart = set(map(Path, besides))
    there = {one.name: status for one, status in beside(path)}
    plain = {one: status for one, status in there.items() if like.fullmatch(one)}
    places = {mine.st_ino, there.get(name.name, mine).st_ino}
    later = [
        one
        for one, status in plain.items()
        if status.st_mtime_ns > mine.st_mtime_ns and status.st_size
        if status.st_ino not in places and name.with_name(one) not in apart
    ]
    if later:
        names = [one for one, status in plain.items() if status.st_ino == mine.st_ino]
        raise SourceChanged(
            f"{path} was rotated more than once since byte {at} of it was read: that is "
            f"{min(names, default='gone')} now, and {', '.join(sorted(later))} came later; put it "
            "back, with them behind it, or begin afresh without the checkpoint"
        )
