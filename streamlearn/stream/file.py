"""Files as a source: a line a record, read once or followed as they grow.

A file is a partition named by its path; offsets are the bytes at which lines begin (of what is in
it, where it is packed). A file that is followed may be rotated (another file has its name) or cut:
what comes then is the path's next partition, number 1, 2, ..., so positions never fall.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import time
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from streamlearn.errors import SourceChanged, SourceDenied, SourceError, SourceNotFound
from streamlearn.stream.lines import Lines
from streamlearn.stream.packed import is_packed, opened, unpacked
from streamlearn.stream.rotation import HEAD, Fingerprint, holding, refuse_later
from streamlearn.stream.source import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedIOBase

BLOCK = 1 << 19  # bytes read at once: with what is made of them they stay in a core's cache
PAUSE = 0.05


def expanded(paths: Sequence[str]) -> list[str]:
    """The files that paths and globs name, each once, globs in the order of names."""
    found: list[str] = []
    for path in paths:
        names = [path] if Path(path).exists() or not glob.has_magic(path) else glob_of(path)
        found += [name for name in names if name not in found]
    return found


def glob_of(pattern: str) -> list[str]:
    """The files that a glob names."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path's take no absolute pattern
    names = sorted(name for name in found if Path(name).is_file())
    if not names:
        raise SourceNotFound(f"no file matches {pattern}")
    return names


def unreadable(path: str, error: Exception) -> SourceError:
    """What to raise for a file that the system does not let us read."""
    reason = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    if isinstance(error, PermissionError):
        return SourceDenied(reason)
    return (SourceNotFound if isinstance(error, FileNotFoundError) else SourceError)(reason)


class Files:
    r"""Lines of files, one file after the other.

    Parameters
    ----------
    paths
        Files or globs; `.gz` and `.zst` are unpacked.
    follow
        Wait at the end of the last file for more.
    batch
        Most lines that one poll gives.
    first
        So many lines come at once at first, or all of a file that has fewer: what is guessed of
        them does not depend on `batch`, nor on when they were written. Of a file that is followed
        they are waited for.
    delimiter
        Of CSV: values in quotes may have line breaks.
    report
        Called with a sentence when a file that is followed was rotated or cut, or its first lines
        are waited for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "clicks.txt"
    ...     size = path.write_bytes(b"one\ntwo\n")
    ...     source = Files([str(path)])
    ...     source.open({}, None)
    ...     [records] = source.poll(0.0)
    ...     source.close()
    >>> records.offsets, records.values, records.end
    ([0, 4], [b'one', b'two'], 8)
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        follow: bool = False,
        batch: int = 2000,
        first: int = 0,
        delimiter: str | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.paths = [os.fspath(path) for path in paths]
        self.follow, self.batch = follow, batch
        self._first = self._missing = first
        self._delimiter = delimiter
        self._told = False  # that lines are waited for
        self._report = report
        self._files: list[str] = []
        self._fingerprints: dict[str, str] = {}
        self._positions: dict[Partition, int] = {}
        self._rotated: dict[str, str] = {}  # where the rest of what was begun lies, by path
        self._head: bytes | None = None  # how the followed file begins; None: of no regular file
        self._overwritten = False  # it begins otherwise now
        self._current = 0
        self._raw: BinaryIO | None = None  # as it lies on the disk
        self._file: BinaryIO | None = None  # what is in it
        self._lines: Lines | None = None

    def identity(self) -> dict[str, str]:
        """The fingerprint of each file, by its partition."""
        return dict(self._fingerprints)

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Find the files, and go on in those that were begun."""
        self.close()
        self._files = expanded(self.paths)
        self._positions = dict(positions)
        self._rotated = {}
        # what is gone on with was guessed already
        self._missing = 0 if any(positions.values()) else self._first
        self._current = 0
        if self.follow and is_packed(self._files[-1]):
            raise SourceError(f"{self._files[-1]} is packed, so it cannot be followed")
        for path in self._files:
            where = self._partition(path)
            try:
                found = Fingerprint(path).text
                size = Path(path).stat().st_size
            except OSError as error:
                raise unreadable(path, error) from error
            kept = (identity or {}).get(key(where))
            at = self._positions.get(where, 0)
            if kept is not None and self._is_another(path, kept):
                self._find_rotated(path, kept, at)
                continue
            same = (one for name, one in (identity or {}).items() if topic_of(name) == path)
            if kept is None and not all(self._is_another(path, one) for one in same):
                raise SourceChanged(f"{path} was neither rotated nor cut: it has no such partition")
            self._fingerprints[key(where)] = found
            if not is_packed(path) and size < at:
                raise SourceChanged(
                    f"{path} has {size} bytes, and was read up to byte {at}: it was cut; put it "
                    "back, or begin afresh without the checkpoint"
                )

    def _is_another(self, path: str, kept: str) -> bool:
        """Whether the file is another than the one whose fingerprint was kept.

        Rotated files may begin alike, such as with the header of a table: of one that is followed
        it is looked whether the one that was read lies beside it. One that was copied elsewhere and
        back lies elsewhere, and is the same.
        """
        if Fingerprint.refuted(path, kept):
            return True
        inode = int(kept.partition(":")[0])
        return (
            self.follow
            and path == self._files[-1]
            and Path(path).stat().st_ino != inode
            and any(one.stat().st_ino == inode for one in holding(path, kept, 0))
        )

    def _find_rotated(self, path: str, kept: str, at: int) -> None:
        """Look for the file that was read, of which another has taken the place.

        It is one beside it whose name begins alike, if the file is followed.
        """
        followed = self.follow and path == self._files[-1]
        found = holding(path, kept, at) if followed else []
        if len(found) != 1:
            raise SourceChanged(
                f"{path} is another file than the one that was read up to byte {at}: put that "
                "one back, or begin afresh without the checkpoint"
            )
        (rest,) = found
        refuse_later(path, rest.stat(), at)
        self._rotated[path] = str(rest)
        self._fingerprints[key(self._partition(path))] = kept
        if self._report is not None:
            self._report(f"{path} was rotated: going on at byte {at} of {rest}")

    def _partition(self, path: str) -> Partition:
        """The newest partition of a path."""
        numbers = [where.number for where in self._positions if where.topic == path]
        return Partition(path, max(numbers, default=0))

    def _begin(self) -> Lines:
        """The file that is read now, at its position."""
        path = self._files[self._current]
        where = self._partition(path)
        at = self._positions.get(where, 0)
        try:
            if self._is_followed() and path not in self._rotated:
                kept = self._fingerprints[key(where)]
                if self._is_another(path, kept):  # since its fingerprint was taken
                    self._find_rotated(path, kept, at)
            self._raw = opened(self._rotated.get(path, path))
            self._head, self._overwritten = None, False
            if self._is_followed() and stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode):
                self._head = os.pread(self._raw.fileno(), HEAD, 0)
            self._file = unpacked(self._raw, path)
            skip(self._file, path, at)
        except (OSError, EOFError) as error:
            raise unreadable(path, error) from error
        self._lines = Lines(path, at, first=self._missing, delimiter=self._delimiter)
        return self._lines

    def poll(self, seconds: float) -> list[Records]:
        """The next lines; of a file that is followed, those that came in this time."""
        until = time.monotonic() + seconds
        while self._current < len(self._files):
            lines = self._lines or self._begin()
            if not lines.waiting:
                if self._fill(lines):
                    continue
                if self._is_followed():
                    if self._turned():
                        continue
                    self._tell(lines)
                    if time.monotonic() >= until:
                        return []
                    time.sleep(min(PAUSE, max(until - time.monotonic(), 0.0)))
                    continue
                lines.finish()
                if not lines.waiting:
                    self._next()
                    continue
            records = self._take(lines)
            if len(records.offsets):
                return [records]
        return []

    def _take(self, lines: Lines) -> Records:
        where = self._partition(self._files[self._current])
        offsets, values, end = lines.take(self.batch)
        self._positions[where] = end
        self._missing = lines.first
        return Records(where, offsets, values, end)

    def _tell(self, lines: Lines) -> None:
        """Say once that lines are waited for."""
        if lines.first and not self._told and self._report is not None:
            self._told = True
            self._report(
                f"{lines.name} has {lines.held} of the {lines.first} lines from which the types of "
                "its columns are guessed, and is waited for: name the columns of text to begin at "
                "once"
            )

    def _fill(self, lines: Lines) -> int:
        """Read a block; how many bytes."""
        if self._file is None:
            return 0
        # all of ours have it, though BinaryIO does not say so
        read = cast("BufferedIOBase", self._file).readinto
        try:
            if self._head is None:
                return lines.fill(read, BLOCK)
            return lines.fill(lambda room: self._read(read, room, lines.read), BLOCK)
        except SourceError:
            raise
        except (OSError, EOFError, ValueError) as error:
            raise SourceError(f"{self._files[self._current]} cannot be read on: {error}") from error
        except Exception as error:  # what unpacks has errors of its own, not derived from those
            raise SourceError(f"{self._files[self._current]} is damaged: {error}") from error

    def _read(self, read: Callable[[memoryview], int], room: memoryview, at: int) -> int:
        """Read more of the followed file, unless it was cut and written anew meanwhile.

        A file is known by its first bytes, and it may have been short when it was begun: as it
        grows, more of it is kept.
        """
        count, head = read(room), self._head or b""
        descriptor = cast("BinaryIO", self._raw).fileno()
        if os.pread(descriptor, len(head), 0) != head:
            self._overwritten = True
            return 0
        if count and len(head) < HEAD:
            self._head = head + bytes(room[len(head) - at : min(count, HEAD - at)])
            where = self._partition(self._files[self._current])
            inode = os.fstat(descriptor).st_ino
            self._fingerprints[key(where)] = Fingerprint.of(inode, self._head)
        return count

    def _is_followed(self) -> bool:
        return self.follow and self._current == len(self._files) - 1

    def _next(self) -> None:
        """The file is done."""
        self.close()
        self._current += 1

    def _turned(self) -> bool:
        """Whether the file that is followed was rotated or cut; then its next part is begun."""
        path = self._files[self._current]
        if self._file is None or self._lines is None:
            return False
        where = self._partition(path)
        try:
            now = Path(path).stat()
        except FileNotFoundError:
            return False  # between a rotation's two steps
        # after the new one: who has begun to write there writes here no more
        mine = os.fstat(self._file.fileno())
        rotated = (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)
        at, kept = self._lines.position, self._fingerprints[key(where)]
        if self._overwritten or mine.st_size < self._lines.read:
            if holding(path, kept, at):  # what was not read before it was cut is in a copy
                self._find_rotated(path, kept, at)
                self.close()
                return True
            self._lines.release()
        elif not rotated or mine.st_size > self._lines.read or now.st_size == 0:
            return False  # what came meanwhile is read first, and what may still come
        else:
            refuse_later(path, mine, at)
            self._lines.finish()
        if self._lines.waiting:
            return True  # what was held back is read first
        self._follow_on(path, "was rotated" if rotated else "was cut")
        return True

    def _follow_on(self, path: str, what: str) -> None:
        """Begin the next part of the file that is followed."""
        where, lines = self._partition(path), self._lines
        try:
            fresh = Fingerprint(path).text
        except OSError as error:
            raise unreadable(path, error) from error
        if self._report is not None and lines is not None:
            self._report(f"{path} {what} at byte {lines.position}: going on at its beginning")
        self._next()
        self._current -= 1
        self._rotated.pop(path, None)
        following = Partition(path, where.number + 1)
        self._positions[following] = 0
        self._fingerprints[key(following)] = fresh

    def header(self) -> bytes | None:
        """The first row of the first file that is gone on in; None: all are read from the start."""
        for path in self._files:
            if self._positions.get(self._partition(path), 0) > 0:
                return next((rows[0] for _, rows, _ in self._whole(path) if rows), None)
        return None

    def _whole(self, path: str) -> Iterator[tuple[list[int], Sequence[bytes], int]]:
        """All lines of a file, from its beginning."""
        with opened(self._rotated.get(path, path)) as raw, unpacked(raw, path) as file:
            lines = Lines(path, delimiter=self._delimiter)
            # all of ours have it, though BinaryIO does not say so
            read = cast("BufferedIOBase", file).readinto
            while lines.waiting or lines.fill(read, BLOCK):
                if lines.waiting:
                    yield lines.take(BLOCK)
            lines.finish()
            if lines.waiting:
                yield lines.take(BLOCK)

    def lag(self) -> dict[Partition, int | None]:
        """How many bytes are left in each file; None: not to be known of a packed one."""
        found: dict[Partition, int | None] = {}
        for path in self._files:
            where = self._partition(path)
            sizes: dict[int, int] = {}  # of what has the name now, and of what it was before
            for part in (path, self._rotated.get(path, path)):
                with contextlib.suppress(OSError):
                    status = Path(part).stat()
                    sizes[status.st_ino] = status.st_size
            if self._raw is not None and path == self._files[self._current]:
                status = os.fstat(self._raw.fileno())
                sizes[status.st_ino] = status.st_size
            left = max(sum(sizes.values()) - self._positions.get(where, 0), 0)
            found[where] = None if is_packed(path) else left
        return found

    def progress(self) -> tuple[int, int]:
        """How many bytes of the files, as they lie on the disk, were read; and all of them."""
        sizes = [Path(path).stat().st_size for path in self._files]
        here = 0 if self._raw is None or self._raw.closed else self._raw.tell()
        return sum(sizes[: self._current]) + here, sum(sizes)

    def begins_line(self, partition: Partition, offset: int) -> bool:
        """Whether a record begins there, or the file ends."""
        path = partition.topic
        rest = self._rotated.get(path, path)
        if offset == 0 or not Path(rest).is_file():
            return True
        with opened(rest) as raw, unpacked(raw, path) as file:
            skip(file, path, offset - 1)
            before = file.read(1)
            # the first line begins behind the mark of UTF-8
            if before != b"\n":
                return not before or not file.read(1) or (offset, before) == (3, b"\xbf")
        return self._delimiter is None or not self._inside(path, offset)

    def _inside(self, path: str, offset: int) -> bool:
        """Whether a row of CSV has the line break in front of this byte inside quotes."""
        for offsets, rows, end in self._whole(path):
            if end >= offset:
                i = bisect_left(offsets, offset) - 1
                return i >= 0 and offset <= offsets[i] + len(rows[i])
        return False

    def line_number(self, partition: Partition, offset: int) -> int:
        """The number of the line that begins at this offset, from 1; it is counted anew."""
        number = 1
        with opened(partition.topic) as raw, unpacked(raw, partition.topic) as file:
            while offset > 0 and (block := file.read(min(BLOCK, offset))):
                number += block.count(b"\n")
                offset -= len(block)
        return number

    def lost(self) -> Mapping[Partition, int]:
        """None: lines do not go."""
        return {}

    def ended(self) -> bool:
        """Whether the last line of the last file was given."""
        return self._current >= len(self._files)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nothing to do: nobody watches."""

    def close(self) -> None:
        """Close the file that is read."""
        for file in (self._file, self._raw):
            if file is not None:
                file.close()
        self._file = self._raw = self._lines = None


def key(where: Partition) -> str:
    """The name of a partition in an identity."""
    return where.topic if where.number == 0 else f"{where.topic}#{where.number}"


def topic_of(name: str) -> str:
    """The path of a partition by its name in an identity.

    >>> topic_of("x.log"), topic_of("x.log#2"), topic_of("#1.log")
    ('x.log', 'x.log', '#1.log')
    """
    path, sign, number = name.rpartition("#")
    return path if sign and number.isdigit() else name


def skip(file: BinaryIO, path: str, position: int) -> None:
    """Go to a position; what is packed is unpacked up to there."""
    if not is_packed(path):
        if position > 0:  # a pipe can be read, but not gone back in
            file.seek(position)
        return
    left = position
    while left > 0:
        block = file.read(min(BLOCK, left))
        if not block:
            raise SourceChanged(f"{path} holds fewer than the {position} bytes that were read")
        left -= len(block)
