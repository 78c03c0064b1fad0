"""Files as a source: a line a record, read once or followed as they grow.

A file is a partition named by its path; offsets are the bytes at which lines begin (of what is in
it, where it is packed). A file that is followed may be rotated (another file has its name) or cut:
what comes then is the path's next partition, number 1, 2, ..., so positions never fall.

Of globs that are followed all files are, one at a time: each to its end, then the first in the
order of the files that has more. Files that are new come after those known, in the order of their
names. They are kept open, so that what was written before a rotation or a removal is not lost. A
file that was read under another name is known by its inode and its first bytes.
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
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.lines import Lines
from streamlearn.stream.sources.packed import is_packed, opened, unpacked
from streamlearn.stream.sources.rotation import (
    HEAD,
    Fingerprint,
    begins_with,
    holding,
    refuse_later,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedIOBase

BLOCK = 1 << 19  # bytes read at once: with what is made of them they stay in a core's cache
PAUSE = 0.05
GONE = "0:0:"  # in place of the fingerprint of a file that was removed
OPEN = 256  # files that are kept open, of followed globs
LOOKS = 0.05  # of the time, at most, is spent on looking for files


def expanded(paths: Sequence[str]) -> list[str]:
    """The files that paths and globs name, each once, globs in the order of names."""
    found: dict[str, None] = {}
    for path in paths:
        names = matching(path) if is_glob(path) else [path]
        if not names:
            raise SourceNotFound(f"no file matches {path}")
        found |= dict.fromkeys(names)
    return list(found)


def is_glob(path: str) -> bool:
    """Whether the path is a pattern, and not the name of a file that is there."""
    return glob.has_magic(path) and not Path(path).exists()


def matching(pattern: str) -> list[str]:
    """The files that a glob names, in the order of their names."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path's take no absolute pattern
    return sorted(name for name in found if Path(name).is_file())


def unreadable(path: str, error: Exception) -> SourceError:
    """What to raise for a file that the system does not let us read."""
    reason = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    if isinstance(error, PermissionError):
        return SourceDenied(reason)
    return (SourceNotFound if isinstance(error, FileNotFoundError) else SourceError)(reason)


def fingerprint_of(path: str) -> tuple[str, int]:
    """What tells a file from others, and its size."""
    try:
        return Fingerprint(path).text, Path(path).stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


class Files:
    r"""Lines of files, one file after the other.

    Parameters
    ----------
    paths
        Files or globs; `.gz` and `.zst` are unpacked.
    follow
        Wait at the end of the last file for more, and of all files of globs; these find files that
        are new. What is packed is then left out of globs.
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
        self._globs: list[str] = []  # that are followed
        self._followed: set[str] = set()
        self._seen: dict[str, tuple[int, int]] = {}  # bytes read, and when it had been written to
        self._left: dict[str, tuple[BinaryIO, bytes]] = {}  # open files, and how they begin
        self._gone: set[str] = set()  # partitions whose file was removed
        self._left_out: set[str] = set()  # what matches, and is not read
        self._next_look = 0.0
        self._switches = 0  # from file to file since the last line
        self._raw: BinaryIO | None = None  # as it lies on the disk
        self._file: BinaryIO | None = None  # what is in it
        self._lines: Lines | None = None

    def identity(self) -> dict[str, str]:
        """The fingerprint of each file, by its partition."""
        return self._fingerprints | dict.fromkeys(self._gone, GONE)

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Find the files, and go on in those that were begun."""
        self.close()
        self._positions = dict(positions)
        self._rotated, self._seen = {}, {}
        self._followed, self._gone = set(), set()
        # what is gone on with was guessed already
        self._missing = 0 if any(positions.values()) else self._first
        self._current = 0
        self._globs = [path for path in self.paths if self.follow and is_glob(path)]
        if self._globs:
            self._open_globs(identity or {})
            return
        self._files = expanded(self.paths)
        self._followed = set(self._files[-1:]) if self.follow else set()
        if self.follow and is_packed(self._files[-1]):
            raise SourceError(f"{self._files[-1]} is packed, so it cannot be followed")
        for path in self._files:
            self._admit(path, identity or {})

    def _admit(self, path: str, identity: Mapping[str, str]) -> None:
        """Look whether a file is the one that was read."""
        where = self._partition(path)
        found, size = fingerprint_of(path)
        kept = identity.get(key(where))
        at = self._positions.get(where, 0)
        if kept is not None and self._is_another(path, kept):
            self._find_rotated(path, kept, at)
            return
        same = (one for name, one in identity.items() if topic_of(name) == path)
        if kept is None and not all(self._is_another(path, one) for one in same):
            raise SourceChanged(f"{path} was neither rotated nor cut: it has no such partition")
        self._fingerprints[key(where)] = found
        if not is_packed(path) and size < at:
            raise SourceChanged(
                f"{path} has {size} bytes, and was read up to byte {at}: it was cut; put it "
                "back, or begin afresh without the checkpoint"
            )

    # -- globs that are followed ------------------------------------------------------------------

    def _open_globs(self, identity: Mapping[str, str]) -> None:
        """Go on in the files that were begun; those that came meanwhile are behind them."""
        for path in self.paths:
            if path not in self._globs:
                fingerprint_of(path)  # for its error
        if is_packed(self.paths[-1]):
            raise SourceError(f"{self.paths[-1]} is packed, so it cannot be followed")
        names = self._matching()
        self._gone = {name for name, kept in identity.items() if kept == GONE}
        self._fingerprints = {
            name: kept
            for name, kept in identity.items()
            if partition_of(name).number <= self._partition(topic_of(name)).number
            if not is_empty(kept)  # nothing was read of it
        }
        known = dict.fromkeys(topic_of(name) for name in self._fingerprints)
        self._files = []
        found = [name for name in names if name in known]
        gone = [
            path
            for path in [*found, *(name for name in known if name not in names)]
            if not self._find_again(path, names)
        ]
        inodes = {inode_of(name) for name in names}
        for name, kept in list(self._fingerprints.items()):
            where = partition_of(name)
            newest = where == self._partition(where.topic) and where.topic in self._files
            if not newest and int(kept.partition(":")[0]) not in inodes:
                del self._fingerprints[name]
        if gone and self._report is not None:
            self._report(f"no longer there, of the files that were read: {', '.join(gone)[:1000]}")
        for path in self._files:
            self._keep_open(path)
        self._discover(names)
        if not self._files and self._report is not None:
            self._report(f"no file matches {', '.join(self._globs)} yet: waiting for one")

    def _matching(self) -> list[str]:
        """What is there of the files and of the globs."""
        names: dict[str, None] = {}
        for path in self.paths:
            found = matching(path) if path in self._globs else [path]
            if path in self._globs:
                for name in filter(is_packed, found):
                    self._leave_out(name, "is packed, as rotated files are, and cannot be followed")
                found = [name for name in found if not is_packed(name)]
            if path in self._globs or path == self.paths[-1]:
                self._followed.update(found)
            names |= dict.fromkeys(found)
        return list(names)

    def _leave_out(self, path: str, why: str) -> None:
        """Say once that a file is not read."""
        if path not in self._left_out and self._report is not None:
            self._report(f"{path} {why}: it is left out")
        self._left_out.add(path)

    def _find_again(self, path: str, names: Sequence[str]) -> bool:
        """Go on in a file that was begun, whatever it is called now; False: it is gone."""
        where = self._partition(path)
        kept, at = self._fingerprints.get(key(where)), self._positions.get(where, 0)
        if kept is not None and (path not in names or self._is_taken(path, where)):
            others = [name for name in names if name != path and self._is_file_of(where, name)]
            beside = path in names and len(self._holding(path, kept, at)) == 1
            if not others and not beside:
                self._forget(path)
                return False
            if others:
                self._rotated[path] = others[0]
                self._files.append(path)
                self._followed.add(path)
                return True
        if path in names and kept is not None:
            self._admit(path, self._fingerprints)
            self._files.append(path)
        return True

    def _forget(self, path: str) -> None:
        """The file of a path is gone: another of its name will be a new one."""
        where = self._partition(path)
        self._fingerprints.pop(key(where), None)
        if self._positions.get(where):
            self._gone.add(key(where))

    def _is_file_of(self, where: Partition, path: str) -> bool:
        """Whether this is the file that was read as this partition."""
        kept, status = self._fingerprints[key(where)], status_of(path)
        if status is None or int(kept.partition(":")[0]) != status.st_ino:
            return False
        if is_empty(kept):  # of another, perhaps, which has its place on the disk now
            return inode_of(where.topic) == status.st_ino
        at = self._positions.get(where, 0)
        with contextlib.suppress(OSError):
            return status.st_size >= at and not Fingerprint.refuted(path, kept)
        return False

    def _discover(self, names: Sequence[str]) -> None:
        """Files that are new come behind those known."""
        for path in names:
            if path in self._files:
                continue
            try:
                if self._is_taken(path) or self._is_copy(path):
                    continue
                found = Fingerprint(path).text
            except FileNotFoundError:
                continue  # gone since it was listed
            except OSError as error:
                self._leave_out(path, f"cannot be read: {error.strerror}")
                continue
            self._left_out.discard(path)
            where = self._partition(path)
            if key(where) in self._gone:
                where = Partition(path, where.number + 1)
            self._positions.setdefault(where, 0)
            self._fingerprints[key(where)] = found
            self._files.append(path)
            self._seen.pop(path, None)
            self._keep_open(path)

    def _keep_open(self, path: str) -> None:
        """Open a followed file, so that its rest can be read whatever becomes of its name."""
        if path not in self._followed or path in self._rotated or len(self._left) >= OPEN:
            return
        with contextlib.suppress(OSError):
            file = opened(path)
            status, head = os.fstat(file.fileno()), os.pread(file.fileno(), HEAD, 0)
            inode, length, _ = self._fingerprints[key(self._partition(path))].split(":")
            if stat.S_ISREG(status.st_mode) and status.st_ino == int(inode):
                self._left[path] = (file, head[: int(length)])
            else:
                file.close()

    def _is_taken(self, path: str, by: Partition | None = None) -> bool:
        """Whether the file of this name is read under another name, or was."""
        inode = inode_of(path)
        same = (
            partition_of(name)
            for name, kept in self._fingerprints.items()
            if int(kept.partition(":")[0]) == inode
        )
        return any(self._is_file_of(where, path) for where in same if where != by)

    def _is_copy(self, path: str) -> bool:
        """Whether this is a copy of a file that is read, made to cut that one, which may be next.

        Its rest is read when the other is cut; until then it is left out as long as it is a copy.
        """
        status = Path(path).stat()
        for one in self._followed.intersection(self._files):
            where, now = self._partition(one), status_of(one)
            kept, at = self._fingerprints[key(where)], self._positions.get(where, 0)
            alike = 0 < at <= status.st_size and not Fingerprint.refuted(path, kept)
            if not alike or now is None or now.st_ino != int(kept.partition(":")[0]):
                continue
            if now.st_size < at or Fingerprint.refuted(one, kept) or begins_with(one, path):
                return True
        return False

    def _switch(self) -> bool:
        """Whether another file has more to be read; then it is read now."""
        if not self._globs:
            return False
        begun = time.monotonic()
        found = next((path for path in self._files if self._is_new(path)), None)
        if found is None:
            if begun < self._next_look:
                return False
            self._discover(self._matching())
            found = next((path for path in list(self._files) if self._has_more(path)), None)
        if found is None:
            self._next_look = time.monotonic() + (time.monotonic() - begun) / LOOKS
            return False
        lines = self._lines
        if lines is not None and lines.first and lines.held:
            lines.release()  # more lines to guess from are waited for where others wait
            return True
        self._leave()
        self._current = self._files.index(found)
        return True

    def _is_read(self, path: str) -> bool:
        """Whether this is the file that is read now."""
        return self._raw is not None and path == self._files[self._current]

    def _is_new(self, path: str) -> bool:
        """Whether nothing was tried to be read of a file yet."""
        return path not in self._seen and not self._is_read(path)

    def _has_more(self, path: str) -> bool:
        """Whether a file that is not read now has something to be read."""
        if self._is_new(path) or self._is_read(path) or path not in self._followed:
            return self._is_new(path)
        where, seen, now = self._partition(path), self._seen[path], status_of(path)
        inode = int(self._fingerprints[key(where)].partition(":")[0])
        gone = False
        if path in self._left:
            mine = os.fstat(self._left[path][0].fileno())
            if (mine.st_size, mine.st_mtime_ns) != seen:
                return True
            gone = mine.st_nlink == 0 and (now is None or self._is_taken(path, where))
            inode = mine.st_ino
        if gone:
            self._drop(path)
        if gone or now is None:
            return False
        if now.st_ino == inode:
            return (now.st_size, now.st_mtime_ns) != seen
        return now.st_size > 0 and not self._is_taken(path, where)

    def _leave(self) -> None:
        """Another file is read; this one stays open."""
        if self._raw is None or self._lines is None:
            return
        path = self._files[self._current]
        self._seen[path] = (self._lines.read, os.fstat(self._raw.fileno()).st_mtime_ns)
        if len(self._left) < OPEN and self._head is not None:
            self._left[path] = (self._raw, self._head)
            self._raw = self._file = self._lines = None
        else:
            self._close_current()

    def _drop(self, path: str) -> None:
        """A file that was read is gone."""
        place = self._files.index(path)
        del self._files[place]
        if self._current > place:
            self._current -= 1
        self._forget(path)
        self._rotated.pop(path, None)
        self._seen.pop(path, None)
        if path in self._left:
            self._left.pop(path)[0].close()

    # -- one file ---------------------------------------------------------------------------------

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
            path in self._followed
            and Path(path).stat().st_ino != inode
            and any(one.stat().st_ino == inode for one in holding(path, kept, 0))
        )

    def _find_rotated(self, path: str, kept: str, at: int) -> None:
        """Look for the file that was read, of which another has taken the place.

        It is one beside it whose name begins alike, if the file is followed.
        """
        found = self._holding(path, kept, at) if path in self._followed else []
        if len(found) != 1:
            raise SourceChanged(
                f"{path} is another file than the one that was read up to byte {at}: put that "
                "one back, or begin afresh without the checkpoint"
            )
        (rest,) = found
        refuse_later(path, rest.stat(), at, self._matching() if self._globs else ())
        self._rotated[path] = str(rest)
        # a copy lies elsewhere than what was cut
        place = f"{rest.stat().st_ino}:{kept.partition(':')[2]}"
        self._fingerprints[key(self._partition(path))] = place
        if self._report is not None:
            self._report(f"{path} was rotated: going on at byte {at} of {rest}")

    def _partition(self, path: str) -> Partition:
        """The newest partition of a path."""
        numbers = [where.number for where in self._positions if where.topic == path]
        return Partition(path, max(numbers, default=0))

    def _holding(self, path: str, kept: str, at: int) -> list[Path]:
        """The files beside it that may be the one that was read up to there; no other's."""
        found, where = holding(path, kept, at), self._partition(path)
        return [one for one in found if not self._globs or not self._is_taken(str(one), where)]

    def _begin(self) -> Lines | None:
        """The file that is read now, at its position; None: it is gone."""
        path = self._files[self._current]
        where = self._partition(path)
        at = self._positions.get(where, 0)
        try:
            if path in self._left:
                self._raw, self._head = self._left.pop(path)
                self._file, self._overwritten = self._raw, False
                self._file.seek(at)
                self._lines = Lines(path, at, first=self._missing, delimiter=self._delimiter)
                return self._lines
            if self._is_followed() and path not in self._rotated:
                kept = self._fingerprints[key(where)]
                if self._is_another(path, kept):  # since its fingerprint was taken
                    if self._globs and not at and not self._holding(path, kept, at):
                        # not begun; what it was is read under another name, or gone
                        self._fingerprints[key(where)] = Fingerprint(path).text
                    else:
                        self._find_rotated(path, kept, at)
            self._raw = opened(self._rotated.get(path, path))
            self._head, self._overwritten = None, False
            if self._is_followed() and stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode):
                self._head = os.pread(self._raw.fileno(), HEAD, 0)
                _, _, known = self._fingerprints[key(where)].partition(":")
                # one that was copied elsewhere and back lies elsewhere
                place = os.fstat(self._raw.fileno()).st_ino
                self._fingerprints[key(where)] = f"{place}:{known}"
            self._file = unpacked(self._raw, path)
            skip(self._file, path, at)
        except (OSError, EOFError) as error:
            if self._globs and not at and isinstance(error, FileNotFoundError):
                self._leave_out(path, "was removed before it was read")
                self._drop(path)
                return None
            raise unreadable(path, error) from error
        self._lines = Lines(path, at, first=self._missing, delimiter=self._delimiter)
        return self._lines

    def poll(self, seconds: float) -> list[Records]:
        """The next lines; of a file that is followed, those that came in this time."""
        until = time.monotonic() + seconds
        going = True
        while going and (self._globs or self._current < len(self._files)):
            if self._current >= len(self._files):
                going = self._pause(until)
            elif (lines := self._lines or self._begin()) is not None and not lines.waiting:
                going = self._refill(lines, until)
            elif lines is not None and len((records := self._take(lines)).offsets):
                self._switches = 0
                return [records]
        return []

    def _refill(self, lines: Lines, until: float) -> bool:
        """Read on, or go on to what follows; False: nothing came in this time."""
        if self._fill(lines):
            return True
        if self._is_followed():
            if self._turned():
                return True
            self._tell(lines)
            return self._pause(until)
        lines.finish()
        if not lines.waiting:
            self._next()
        return True

    def _pause(self, until: float) -> bool:
        """At the end of what there is: whether to go on, in another file or after a while."""
        # more often than each file once, from one to the other, would be without end
        if self._switches <= len(self._files) and self._switch():
            self._switches += 1
            return True
        self._switches = 0
        left = until - time.monotonic()
        if left > 0.0:
            time.sleep(min(PAUSE, left))
        return left > 0.0

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
        return self._files[self._current] in self._followed

    def _next(self) -> None:
        """The file is done."""
        if self._lines is not None:
            self._seen[self._files[self._current]] = (self._lines.read, 0)
        self._close_current()
        self._current += 1

    def _turned(self) -> bool:
        """Whether the file that is followed was rotated or cut; then its next part is begun."""
        path = self._files[self._current]
        where, now = self._partition(path), status_of(path)
        if now is None or self._file is None or self._lines is None:
            return False  # between a rotation's two steps
        # after the new one: who has begun to write there writes here no more
        mine = os.fstat(self._file.fileno())
        rotated = (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)
        at, kept = self._lines.position, self._fingerprints[key(where)]
        if self._overwritten or mine.st_size < self._lines.read:
            if self._holding(path, kept, at):  # what was not read before it was cut is in a copy
                self._find_rotated(path, kept, at)
                self._close_current()
                return True
            self._lines.release()
        elif not rotated or mine.st_size > self._lines.read or now.st_size == 0:
            return False  # what came meanwhile is read first, and what may still come
        elif self._globs and self._is_taken(path, where):
            return False  # another that is read has the name now
        else:
            refuse_later(path, mine, at, self._matching() if self._globs else ())
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
        if is_empty(self._fingerprints[key(where)]):  # another may get its place on the disk
            del self._fingerprints[key(where)]
        self._seen.pop(path, None)

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
            current = self._raw is not None and path == self._files[self._current]
            file = self._raw if current else self._left.get(path, (None,))[0]
            if file is not None:
                status = os.fstat(file.fileno())
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
        return not self._globs and self._current >= len(self._files)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nothing to do: nobody watches."""

    def close(self) -> None:
        """Close what is open."""
        self._close_current()
        for file, _ in self._left.values():
            file.close()
        self._left = {}

    def _close_current(self) -> None:
        for file in (self._file, self._raw):
            if file is not None:
                file.close()
        self._file = self._raw = self._lines = None


def key(where: Partition) -> str:
    """The name of a partition in an identity."""
    return where.topic if where.number == 0 else f"{where.topic}#{where.number}"


def is_empty(fingerprint: str) -> bool:
    """Whether it is that of an empty file, of which no more than its place is known."""
    return fingerprint.split(":")[1] == "0"


def topic_of(name: str) -> str:
    """The path of a partition by its name in an identity.

    >>> topic_of("x.log"), topic_of("x.log#2"), topic_of("#1.log")
    ('x.log', 'x.log', '#1.log')
    """
    return partition_of(name).topic


def partition_of(name: str) -> Partition:
    """The partition of a name in an identity."""
    path, sign, number = name.rpartition("#")
    return Partition(path, int(number)) if sign and number.isdigit() else Partition(name)


def status_of(path: str) -> os.stat_result | None:
    """What the system says of a file; None: nothing, such as of one that is gone."""
    with contextlib.suppress(OSError):
        return Path(path).stat()
    return None


def inode_of(path: str) -> int | None:
    """Where a file lies; None: it is gone."""
    status = status_of(path)
    return None if status is None else status.st_ino


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
