"""Files as a source: a line is a record, and files are read once or followed as they grow.

Offsets are the bytes at which lines begin, in the decompressed data of a compressed file. Which
files there are, and what rotation does to them, is in `catalog`.
"""

from __future__ import annotations

import math
import os
import stat
import time
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from streamlearn.errors import SourceChangedError, SourceError
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.compression import decompressed, is_compressed, open_raw
from streamlearn.stream.sources.file_inventory import FileCatalog, status_of, unreadable
from streamlearn.stream.sources.lines import Lines
from streamlearn.stream.sources.rotation import HEAD, Fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedIOBase

BLOCK = 1 << 19  # bytes read at once: they and the events made of them stay in a core's cache
PAUSE = 0.05
SEARCH_SHARE = 0.05  # maximum share of the time that is spent on looking for files


class Files:
    r"""Lines of files, one file after the other.

    Parameters
    ----------
    paths
        Files or globs; `.gz` and `.zst` are decompressed.
    follow
        At the end of the last file, and of all files of globs, wait for more; globs also find new
        files. Compressed files are then left out of globs.
    batch
        Maximum lines of one poll.
    first
        The first poll that returns lines returns at least this many, or all lines of a shorter
        file, so that column types guessed from them depend neither on `batch` nor on when the lines
        were written. A followed file is waited for.
    delimiter
        For CSV: quoted values may contain line breaks.
    report
        Called with a message when a followed file was rotated or truncated, or when its first lines
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
        self._report = report or (lambda _: None)
        self._catalog = FileCatalog(self.paths, follow=follow, report=self._report)
        self._raw: BinaryIO | None = None  # the current file
        self._file: BinaryIO | None = None  # the same, decompressed
        self._lines: Lines | None = None
        self._head: bytes | None = None  # its first bytes; None: not followed, or not regular
        self._overwritten = False  # its first bytes have changed
        self._wait_reported = False
        self._next_search = 0.0
        self._switches = 0  # from file to file since the last line
        self._taken_bytes = self._taken_lines = 0  # since the start

    def identity(self) -> dict[str, str]:
        """Return the fingerprint of each file, by its partition."""
        return self._catalog.identity()

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Find the files, and resume those that were read in part."""
        self.close()
        # types are not guessed again after a resume
        self._missing = 0 if any(positions.values()) else self._first
        self._catalog.open(positions, identity or {})

    def poll(self, seconds: float) -> list[Records]:
        """Return the next lines; wait this long for a followed file to grow."""
        catalog, until = self._catalog, time.monotonic() + seconds
        going = True
        while going and not self.ended():
            if catalog.current >= len(catalog.files):
                going = self._pause(until)
            elif (lines := self._lines or self._begin()) is not None and not lines.waiting:
                going = self._refill(lines, until)
            elif lines is not None and len((records := self._take(lines)).offsets):
                self._switches = 0
                return [records]
        return []

    @property
    def _path(self) -> str:
        """The current file."""
        return self._catalog.files[self._catalog.current]

    def _is_followed(self) -> bool:
        return self._path in self._catalog.followed

    def _begin(self) -> Lines | None:
        """Open the current file at its position; None if it was removed before it was read."""
        catalog, path = self._catalog, self._path
        at = catalog.position(path)
        try:
            if path in catalog.kept_open:
                self._raw, self._head = catalog.kept_open.pop(path)
                self._file, self._overwritten = self._raw, False
                self._file.seek(at)
            else:
                self._open_current(path, at)
        except (OSError, EOFError) as error:
            if catalog.globs and not at and isinstance(error, FileNotFoundError):
                catalog.ignore(path, "it was removed before it was read")
                catalog.remove(path)
                return None
            raise unreadable(path, error) from error
        self._lines = Lines(path, at, first=self._missing, delimiter=self._delimiter)
        return self._lines

    def _open_current(self, path: str, at: int) -> None:
        catalog = self._catalog
        if self._is_followed() and path not in catalog.rotated:
            kept = catalog.fingerprint(path)
            if catalog.is_replaced(path, kept):  # since its fingerprint was taken
                if catalog.globs and not at and not catalog.candidates(path, kept, at):
                    # not read yet: the old file is read under another name, or gone
                    catalog.set_fingerprint(path, Fingerprint(path).text)
                else:
                    catalog.find_rotated(path, kept, at)
        self._raw = open_raw(catalog.rotated.get(path, path))
        self._head, self._overwritten = None, False
        status = os.fstat(self._raw.fileno())
        if self._is_followed() and stat.S_ISREG(status.st_mode):
            self._head = os.pread(self._raw.fileno(), HEAD, 0)
            catalog.set_inode(path, status.st_ino)  # it may have been copied elsewhere and back
        self._file = decompressed(self._raw, path)
        skip(self._file, path, at)

    def _refill(self, lines: Lines, until: float) -> bool:
        """Read on, or go to the next file; False: nothing came in this time."""
        if self._fill(lines):
            return True
        if self._is_followed():
            if self._was_replaced():
                return True
            self._report_wait(lines)
            return self._pause(until)
        lines.finish()
        if not lines.waiting:
            self._next()
        return True

    def _pause(self, until: float) -> bool:
        """Switch to another file, or wait a little; False: the time is over."""
        # switching more often than once for each file could go on forever
        if self._switches <= len(self._catalog.files) and self._switch():
            self._switches += 1
            return True
        self._switches = 0
        left = until - time.monotonic()
        if left > 0.0:
            time.sleep(min(PAUSE, left))
        return left > 0.0

    def _take(self, lines: Lines) -> Records:
        where = self._catalog.partition(self._path)
        offsets, values, end = lines.take(self.batch)
        self._taken_bytes += end - self._catalog.position(self._path)
        self._taken_lines += len(offsets)
        self._catalog.positions[where] = end
        self._missing = lines.first
        return Records(where, offsets, values, end)

    def _report_wait(self, lines: Lines) -> None:
        """Report once that lines are waited for."""
        if lines.first and not self._wait_reported:
            self._wait_reported = True
            self._report(
                f"waiting for {lines.name}: it has {lines.held} of the {lines.first} lines from "
                "which column types are guessed; name the text columns to begin immediately"
            )

    def _fill(self, lines: Lines) -> int:
        """Read a block and return its size."""
        if self._file is None:
            return 0
        # all of these files have it, though BinaryIO does not declare it
        read = cast("BufferedIOBase", self._file).readinto
        try:
            if self._head is None:
                return lines.fill(read, BLOCK)
            return lines.fill(lambda room: self._read(read, room, lines.read), BLOCK)
        except SourceError:
            raise
        except (OSError, EOFError, ValueError) as error:
            raise SourceError(f"{self._path} cannot be read further: {error}") from error
        except Exception as error:  # decompressors have errors of their own, not derived from those
            raise SourceError(f"{self._path} is damaged: {error}") from error

    def _read(self, read: Callable[[memoryview], int], room: memoryview, at: int) -> int:
        """Read more of the followed file, unless it was truncated and written anew meanwhile.

        A file is identified by its first bytes, and may have been short at first: as it grows, more
        of them are kept.
        """
        count, head = read(room), self._head or b""
        descriptor = cast("BinaryIO", self._raw).fileno()
        if os.pread(descriptor, len(head), 0) != head:
            self._overwritten = True
            return 0
        if count and len(head) < HEAD:
            self._head = head + bytes(room[len(head) - at : min(count, HEAD - at)])
            inode = os.fstat(descriptor).st_ino
            self._catalog.set_fingerprint(self._path, Fingerprint.of(inode, self._head))
        return count

    def _next(self) -> None:
        """Leave a file that was read to its end."""
        if self._lines is not None:
            self._catalog.last_seen[self._path] = (self._lines.read, 0)
        self._close_current()
        self._catalog.current += 1

    def _switch(self) -> bool:
        """Switch to another followed file that has more; False: there is none."""
        catalog = self._catalog
        if not catalog.globs:
            return False
        begun = time.monotonic()
        found = next((path for path in catalog.files if self._is_new(path)), None)
        if found is None:
            if begun < self._next_search:
                return False
            catalog.discover()
            found = next((path for path in list(catalog.files) if self._has_more(path)), None)
        if found is None:
            self._next_search = time.monotonic() + (time.monotonic() - begun) / SEARCH_SHARE
            return False
        lines = self._lines
        if lines is not None and lines.first and lines.held:
            lines.release()  # stop waiting for lines to guess types from: other files have lines
            return True
        self._leave()
        catalog.current = catalog.files.index(found)
        return True

    def _is_current(self, path: str) -> bool:
        return self._raw is not None and path == self._path

    def _open_file(self, path: str) -> BinaryIO | None:
        return self._raw if self._is_current(path) else None

    def _is_new(self, path: str) -> bool:
        """Whether no read of a file was tried yet."""
        return path not in self._catalog.last_seen and not self._is_current(path)

    def _has_more(self, path: str) -> bool:
        """Whether a file other than the current one has something to read."""
        if self._is_new(path):
            return True
        return not self._is_current(path) and self._catalog.has_more(path)

    def _leave(self) -> None:
        """Keep the current file open while another one is read."""
        if self._raw is None or self._lines is None:
            return
        path, catalog = self._path, self._catalog
        catalog.last_seen[path] = (self._lines.read, os.fstat(self._raw.fileno()).st_mtime_ns)
        if catalog.can_keep_open and self._head is not None:
            catalog.kept_open[path] = (self._raw, self._head)
            self._raw = self._file = self._lines = None
        else:
            self._close_current()

    def _was_replaced(self) -> bool:
        """Whether the followed file was rotated or truncated; then its replacement is next.

        What was written to the old file is read first.
        """
        catalog, path = self._catalog, self._path
        now = status_of(path)
        if now is None or self._file is None or self._lines is None:
            return False  # between the two steps of a rotation
        # after the new file's: a writer that has begun the new file writes no more to this one
        mine = os.fstat(self._file.fileno())
        rotated = (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)
        at, kept = self._lines.position, catalog.fingerprint(path)
        if self._overwritten or mine.st_size < self._lines.read:
            if catalog.candidates(path, kept, at):  # a copy has what was not read
                catalog.find_rotated(path, kept, at)
                self._close_current()
                return True
            self._lines.release()
        elif not rotated or mine.st_size > self._lines.read or now.st_size == 0:
            return False  # this file still has more, or may get more
        elif catalog.globs and catalog.is_renamed(path, catalog.partition(path)):
            return False  # the file with this name is read as another partition
        else:
            catalog.refuse_missed_rotations(path, mine, at)
            self._lines.finish()
        if not self._lines.waiting:
            self._begin_next_partition("rotated" if rotated else "truncated")
        return True

    def _begin_next_partition(self, what: str) -> None:
        catalog, path, lines = self._catalog, self._path, self._lines
        at = None if lines is None else lines.position
        catalog.begin_next_partition(path)
        if at is not None:
            self._report(f"{path} was {what} at byte {at}: resuming at its beginning")
        self._close_current()

    def header(self) -> bytes | None:
        """Return the first row of the first file that is resumed, None if none is."""
        for path in self._catalog.files:
            if self._catalog.position(path) > 0:
                return next((rows[0] for _, rows, _ in self._all_lines(path) if rows), None)
        return None

    def _all_lines(self, path: str) -> Iterator[tuple[list[int], Sequence[bytes], int]]:
        """Read a file from its beginning, in blocks."""
        with (
            open_raw(self._catalog.rotated.get(path, path)) as raw,
            decompressed(raw, path) as file,
        ):
            lines = Lines(path, delimiter=self._delimiter)
            # all of these files have it, though BinaryIO does not declare it
            read = cast("BufferedIOBase", file).readinto
            while lines.waiting or lines.fill(read, BLOCK):
                if lines.waiting:
                    yield lines.take(BLOCK)
            lines.finish()
            if lines.waiting:
                yield lines.take(BLOCK)

    def lag(self) -> dict[Partition, int | None]:
        """Return about how many lines are left in each file, by the mean size of those read.

        None for a compressed file, and before the first line of all. The last line of a followed
        file counts once it has ended.
        """
        return {
            where: None if left is None else self._lines_in(left, path)
            for path, (where, left) in zip(
                self._catalog.files, self.bytes_left().items(), strict=True
            )
        }

    def _lines_in(self, size: int, path: str) -> int | None:
        """Return about how many lines the rest of a file has."""
        if not size or (path in self._catalog.followed and size == self._begun_bytes(path)):
            return 0
        if not self._taken_lines:
            return None
        return math.ceil(size * self._taken_lines / self._taken_bytes)

    def _begun_bytes(self, path: str) -> int:
        """Return how many bytes were read of a line that has not ended."""
        lines = self._lines if self._is_current(path) else None
        if lines is not None:
            return 0 if lines.held else lines.read - lines.position
        return self._catalog.last_seen.get(path, (0, 0))[0] - self._catalog.position(path)

    def bytes_left(self) -> dict[Partition, int | None]:
        """Return how many bytes are left in each file, None for compressed ones."""
        catalog = self._catalog
        return {
            catalog.partition(path): catalog.bytes_left(path, self._open_file(path))
            for path in catalog.files
        }

    def progress(self) -> tuple[int, int]:
        """Return how many bytes of the files on the disk were read, and how many they have."""
        sizes = [Path(path).stat().st_size for path in self._catalog.files]
        here = 0 if self._raw is None or self._raw.closed else self._raw.tell()
        return sum(sizes[: self._catalog.current]) + here, sum(sizes)

    def begins_line(self, partition: Partition, offset: int) -> bool:
        """Whether a record begins at this offset, or the file ends."""
        path = partition.topic
        rest = self._catalog.rotated.get(path, path)
        if offset == 0 or not Path(rest).is_file():
            return True
        with open_raw(rest) as raw, decompressed(raw, path) as file:
            skip(file, path, offset - 1)
            before = file.read(1)
            # the first line may follow a byte order mark
            if before != b"\n":
                return not before or not file.read(1) or (offset, before) == (3, b"\xbf")
        return self._delimiter is None or not self._is_quoted(path, offset)

    def _is_quoted(self, path: str, offset: int) -> bool:
        """Whether the line break before this offset of a CSV file is inside quotes."""
        for offsets, rows, end in self._all_lines(path):
            if end >= offset:
                i = bisect_left(offsets, offset) - 1
                return i >= 0 and offset <= offsets[i] + len(rows[i])
        return False

    def place(self, partition: Partition, offset: int) -> str:
        """Describe where a record is: the file and its line."""
        return f"{partition.topic}:{self.line_number(partition, offset)}"

    def line_number(self, partition: Partition, offset: int) -> int:
        """Count the lines up to the one that begins at this offset, from 1."""
        number = 1
        with open_raw(partition.topic) as raw, decompressed(raw, partition.topic) as file:
            while offset > 0 and (block := file.read(min(BLOCK, offset))):
                number += block.count(b"\n")
                offset -= len(block)
        return number

    def lost(self) -> Mapping[Partition, int]:
        """Return an empty mapping: files lose no lines."""
        return {}

    def ended(self) -> bool:
        """Whether the last line of the last file was returned; never for followed globs."""
        return not self._catalog.globs and self._catalog.current >= len(self._catalog.files)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Do nothing: files have no place for positions."""

    def close(self) -> None:
        """Close all files."""
        self._close_current()
        self._catalog.close()

    def _close_current(self) -> None:
        for file in (self._file, self._raw):
            if file is not None:
                file.close()
        self._file = self._raw = self._lines = None


def skip(file: BinaryIO, path: str, position: int) -> None:
    """Move to a position; a compressed file is decompressed up to there."""
    if not is_compressed(path):
        if position > 0:  # a pipe cannot seek
            file.seek(position)
        return
    left = position
    while left > 0:
        block = file.read(min(BLOCK, left))
        if not block:
            raise SourceChangedError(f"{path} has fewer than the {position} bytes that were read")
        left -= len(block)
