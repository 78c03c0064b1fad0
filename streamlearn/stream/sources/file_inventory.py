"""The files of a source: which there are, what identifies them, and how far each was read.

A file is a partition named by its path. When another file takes the path over, by rotation or
because the file was truncated, it becomes the path's next partition, number 1, 2, ..., so positions
never decrease.

All files of followed globs are followed. They are read in the order in which they were found, those
found together in the order of their names. They are kept open, so that what was written before a
rotation or a removal is not lost. A file that was read under another name is recognized by its
inode and its first bytes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from streamlearn.errors import (
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
)
from streamlearn.stream.records import Partition
from streamlearn.stream.sources.compression import is_compressed, open_raw
from streamlearn.stream.sources.fingerprints import Fingerprints
from streamlearn.stream.sources.rotation import (
    HEAD,
    Fingerprint,
    begins_with,
    candidates,
    first_bytes,
    refuse_missed_rotations,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

REMOVED = "0:0:"  # in place of the fingerprint of a file that was removed
MAX_OPEN = 256  # files of followed globs that are kept open


def expanded(paths: Sequence[str]) -> list[str]:
    """List the files that paths and globs name, each once, those of a glob sorted by name."""
    found: list[str] = []
    for path in paths:
        names = matching(path) if is_glob(path) else [path]
        if not names:
            raise SourceNotFoundError(f"no file matches {path}")
        found += names
    return each_once(found)


def each_once(names: Iterable[str]) -> list[str]:
    """Return one name of each file: that of the file rather than of a link to it, or the first.

    >>> each_once(["a.csv", "./a.csv", "b.csv"])
    ['a.csv', 'b.csv']
    """
    found: dict[str, str] = {}
    for name in names:
        real = os.path.realpath(name)
        if os.path.islink(found.setdefault(real, name)) and not os.path.islink(name):  # noqa: PTH114 - shorter
            found[real] = name
    return list(found.values())


def is_glob(path: str) -> bool:
    """Whether the path is a pattern, and not the name of an existing file."""
    return glob.has_magic(path) and not Path(path).exists()


def matching(pattern: str) -> list[str]:
    """List the files that match a glob, sorted by name."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path's take no absolute pattern
    return sorted(name for name in found if Path(name).is_file())


def unreadable(path: str, error: Exception) -> SourceError:
    """Return the error for a file that the system does not let us read."""
    reason = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    if isinstance(error, PermissionError):
        return SourceDeniedError(reason)
    return (SourceNotFoundError if isinstance(error, FileNotFoundError) else SourceError)(reason)


def fingerprint_and_size(path: str) -> tuple[str, int]:
    """Return what identifies a file, and its size."""
    try:
        return Fingerprint(path).text, Path(path).stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


def status_of(path: str) -> os.stat_result | None:
    """Return a file's status, None if it cannot be accessed."""
    with contextlib.suppress(OSError):
        return Path(path).stat()
    return None


def inode_of(path: str) -> int | None:
    """Return a file's inode, None if it cannot be accessed."""
    status = status_of(path)
    return None if status is None else status.st_ino


def key(where: Partition) -> str:
    """Return the name of a partition in an identity."""
    return where.topic if where.number == 0 else f"{where.topic}#{where.number}"


def partition_of(name: str) -> Partition:
    """Return the partition that has this name in an identity.

    >>> partition_of("x.log"), partition_of("x.log#2")
    (Partition(topic='x.log', number=0), Partition(topic='x.log', number=2))
    """
    path, sign, number = name.rpartition("#")
    return Partition(path, int(number)) if sign and number.isdigit() else Partition(name)


def path_of(name: str) -> str:
    """Return the path of the partition that has this name in an identity.

    >>> path_of("x.log"), path_of("x.log#2"), path_of("#1.log")
    ('x.log', 'x.log', '#1.log')
    """
    return partition_of(name).topic


class FileCatalog:
    """The files of a source.

    Parameters
    ----------
    paths
        Files or globs.
    follow
        Whether the last file, or all files of globs, are read as they grow.
    report
        Called with a message about files that were rotated, removed or ignored.
    """

    def __init__(
        self, paths: Sequence[str], *, follow: bool, report: Callable[[str], None]
    ) -> None:
        self.paths, self.follow, self.report = paths, follow, report
        self.files: list[str] = []  # in the order in which they are read
        self.current = 0  # the place in `files` of the one that is read
        self.globs: list[str] = []  # the followed ones
        self.followed: set[str] = set()
        self.positions: dict[Partition, int] = {}
        self._newest: dict[str, int] = {}  # the number of the newest partition, by path
        self.fingerprints = Fingerprints({})  # by the partition's name
        self.rotated: dict[str, str] = {}  # where the rest of a partially read file is, by path
        self.kept_open: dict[str, tuple[BinaryIO, bytes]] = {}  # files and their first bytes
        self.last_seen: dict[str, tuple[int, int]] = {}  # bytes read, and modification time
        self._removed: set[str] = set()  # partitions whose file was removed
        self._ignored: set[str] = set()  # matching files that are not read

    def identity(self) -> dict[str, str]:
        """Return the fingerprint of each file, by its partition."""
        return dict(self.fingerprints) | dict.fromkeys(self._removed, REMOVED)

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str]) -> None:
        """Find the files, and in them what was read before."""
        self.positions = dict(positions)
        self._newest = {}
        for path, number in positions:
            self._newest[path] = max(number, self._newest.get(path, 0))
        self.current = 0
        self.rotated, self.last_seen = {}, {}
        self.followed, self._removed = set(), set()
        self.globs = [path for path in self.paths if self.follow and is_glob(path)]
        if self.globs:
            self._open_globs(identity)
            return
        self.files = expanded(self.paths)
        self.followed = set(self.files[-1:]) if self.follow else set()
        if self.follow:
            refuse_compressed(self.files[-1])
        for path in self.files:
            self._admit(path, identity)

    def close(self) -> None:
        """Close the files that are kept open."""
        for file, _ in self.kept_open.values():
            file.close()
        self.kept_open = {}

    # -- one file ---------------------------------------------------------------------------------

    def partition(self, path: str) -> Partition:
        """Return the newest partition of a path."""
        return Partition(path, self._newest.get(path, 0))

    def position(self, path: str) -> int:
        """Return up to which byte the newest partition of a path was read."""
        return self.positions.get(self.partition(path), 0)

    def fingerprint(self, path: str) -> str:
        """Return the fingerprint of the newest partition of a path."""
        return self.fingerprints[key(self.partition(path))]

    def set_fingerprint(self, path: str, fingerprint: str) -> None:
        """Replace the fingerprint of the newest partition of a path."""
        self.fingerprints[key(self.partition(path))] = fingerprint

    def set_inode(self, path: str, inode: int) -> None:
        """Note that the newest partition of a path is in a file with this inode, such as a copy."""
        _, _, head = self.fingerprint(path).partition(":")
        self.set_fingerprint(path, f"{inode}:{head}")

    def _admit(self, path: str, identity: Mapping[str, str]) -> None:
        """Check that a file is the one that was read before."""
        where = self.partition(path)
        found, size = fingerprint_and_size(path)
        kept = identity.get(key(where))
        at = self.position(path)
        if kept is not None and self.is_replaced(path, kept):
            self.find_rotated(path, kept, at)
            return
        same = (one for name, one in identity.items() if path_of(name) == path)
        if kept is None and not all(self.is_replaced(path, one) for one in same):
            raise SourceChangedError(
                f"{path} has no partition {where.number}: it was neither rotated nor truncated"
            )
        self.fingerprints[key(where)] = found
        if not is_compressed(path) and size < at:
            raise SourceChangedError(
                f"{path} has {size} bytes, but was read up to byte {at}: restore the file, or "
                "start over without the checkpoint"
            )

    def is_replaced(self, path: str, kept: str) -> bool:
        """Whether the file is a different one from the one with this fingerprint.

        Rotated files may have the same first bytes, such as a table's header. So a followed file
        with another inode is different if the inode that was read is found in the same directory.
        Without that, it is the same file, copied elsewhere and back.
        """
        if Fingerprint.differs(path, kept):
            return True
        inode = Fingerprint.inode(kept)
        return (
            path in self.followed
            and Path(path).stat().st_ino != inode
            and any(one.stat().st_ino == inode for one in candidates(path, kept, 0))
        )

    def find_rotated(self, path: str, kept: str, at: int) -> None:
        """Find the file that was read, that another one replaced; SourceChangedError if unknown."""
        found = self.candidates(path, kept, at) if path in self.followed else []
        if len(found) != 1:
            raise SourceChangedError(
                f"{path} is not the file that was read up to byte {at}: restore that file, or "
                "start over without the checkpoint"
            )
        (rest,) = found
        self.refuse_missed_rotations(path, rest.stat(), at)
        self.rotated[path] = str(rest)
        self.fingerprints[key(self.partition(path))] = kept
        self.set_inode(path, rest.stat().st_ino)
        self.report(f"{path} was rotated: resuming at byte {at} of {rest}")

    def refuse_missed_rotations(self, path: str, status: os.stat_result, at: int) -> None:
        """Raise SourceChangedError if files were rotated after the one that was read."""
        refuse_missed_rotations(path, status, at, self._matching() if self.globs else ())

    def candidates(self, path: str, kept: str, at: int) -> list[Path]:
        """List the sibling files that may be the one that was read, except those of other paths."""
        found, where = candidates(path, kept, at), self.partition(path)
        return [one for one in found if not self.globs or not self.is_renamed(str(one), where)]

    def begin_next_partition(self, path: str) -> None:
        """Continue a path with the file that has its name now."""
        where = self.partition(path)
        try:
            fresh = Fingerprint(path).text
        except OSError as error:
            raise unreadable(path, error) from error
        self.rotated.pop(path, None)
        self._begin(Partition(path, where.number + 1), fresh)
        if Fingerprint.is_empty(self.fingerprints[key(where)]):  # its inode may be reused
            del self.fingerprints[key(where)]
        self.last_seen.pop(path, None)

    def _begin(self, where: Partition, fingerprint: str) -> None:
        """Note a partition that is the newest of its path."""
        self.positions.setdefault(where, 0)
        self._newest[where.topic] = where.number
        self.fingerprints[key(where)] = fingerprint

    # -- globs that are followed ------------------------------------------------------------------

    def _open_globs(self, identity: Mapping[str, str]) -> None:
        """Find the files that were read before, then the new ones."""
        for path in self.paths:
            if path not in self.globs:
                fingerprint_and_size(path)  # for its error
        refuse_compressed(self.paths[-1])
        names = dict.fromkeys(self._matching())
        self._removed = {name for name, kept in identity.items() if kept == REMOVED}
        self.fingerprints = Fingerprints(
            {
                name: kept
                for name, kept in identity.items()
                if partition_of(name).number <= self.partition(path_of(name)).number
                if not Fingerprint.is_empty(kept)  # nothing was read of it
            }
        )
        known = dict.fromkeys(path_of(name) for name in self.fingerprints)
        self.files = []
        found = [name for name in names if name in known]
        removed = [
            path
            for path in [*found, *(name for name in known if name not in names)]
            if not self._find_again(path, names)
        ]
        self._forget_older(names)
        if removed:
            self.report(f"files that were read are gone: {', '.join(removed)[:1000]}")
        for path in self.files:
            self.keep_open(path)
        self._discover(names)
        if not self.files:
            self.report(f"no file matches {', '.join(self.globs)} yet: waiting for one")

    def _forget_older(self, names: Iterable[str]) -> None:
        """Forget older partitions whose files no longer exist: their inodes may be reused."""
        inodes, files = {inode_of(name) for name in names}, set(self.files)
        for name, kept in list(self.fingerprints.items()):
            where = partition_of(name)
            newest = where == self.partition(where.topic) and where.topic in files
            if not newest and Fingerprint.inode(kept) not in inodes:
                del self.fingerprints[name]

    def _matching(self) -> list[str]:
        """List the paths, and the files that match the globs."""
        names: list[str] = []
        for path in self.paths:
            found = matching(path) if path in self.globs else [path]
            if path in self.globs:
                for name in filter(is_compressed, found):
                    self.ignore(name, "compressed files cannot be followed")
                found = [name for name in found if not is_compressed(name)]
            if path in self.globs or path == self.paths[-1]:
                self.followed.update(found)
            names += found
        return each_once(names)

    def ignore(self, path: str, why: str) -> None:
        """Report once that a file is ignored."""
        if path not in self._ignored:
            self.report(f"{path} is ignored: {why}")
        self._ignored.add(path)

    def discover(self) -> None:
        """Append files that are new."""
        self._discover(self._matching())

    def _discover(self, names: Iterable[str]) -> None:
        known = set(self.files)
        new = [path for path in names if path not in known]
        by_head = self._begun_by_head() if new else {}
        for path in new:
            try:
                if self.is_renamed(path) or self._is_copy(path, by_head):
                    continue
                found = Fingerprint(path).text
            except FileNotFoundError:
                continue  # removed since it was listed
            except OSError as error:
                self.ignore(path, f"it cannot be read: {error.strerror}")
                continue
            self._ignored.discard(path)
            where = self.partition(path)
            if key(where) in self._removed:
                where = Partition(path, where.number + 1)
            self._begin(where, found)
            self.files.append(path)
            self.last_seen.pop(path, None)
            self.keep_open(path)

    def _find_again(self, path: str, names: Collection[str]) -> bool:
        """Find a file that was read before, whatever its name is now; False: it is gone."""
        where, at = self.partition(path), self.position(path)
        kept = self.fingerprints.get(key(where))
        if kept is not None and (path not in names or self.is_renamed(path, where)):
            others = [name for name in names if name != path and self._is_file_of(where, name)]
            sibling = path in names and len(self.candidates(path, kept, at)) == 1
            if not others and not sibling:
                self._forget(path)
                return False
            if others:
                self.rotated[path] = others[0]
                self.files.append(path)
                self.followed.add(path)
                return True
        if path in names and kept is not None:
            self._admit(path, self.fingerprints)
            self.files.append(path)
        return True

    def _forget(self, path: str) -> None:
        """Forget a file that is gone: another one with its name will be new."""
        where = self.partition(path)
        self.fingerprints.pop(key(where), None)
        if self.positions.get(where):
            self._removed.add(key(where))

    def remove(self, path: str) -> None:
        """Remove a file that is gone."""
        place = self.files.index(path)
        del self.files[place]
        if self.current > place:
            self.current -= 1
        self._forget(path)
        self.rotated.pop(path, None)
        self.last_seen.pop(path, None)
        if path in self.kept_open:
            self.kept_open.pop(path)[0].close()

    def is_renamed(self, path: str, besides: Partition | None = None) -> bool:
        """Whether the file with this name was read as another partition than `besides`."""
        same = map(partition_of, self.fingerprints.with_inode(inode_of(path)))
        return any(self._is_file_of(where, path) for where in same if where != besides)

    def _is_file_of(self, where: Partition, path: str) -> bool:
        """Whether this is the file that was read as this partition."""
        kept, status = self.fingerprints[key(where)], status_of(path)
        if status is None or Fingerprint.inode(kept) != status.st_ino:
            return False
        if Fingerprint.is_empty(kept):  # another file may have its inode now
            return inode_of(where.topic) == status.st_ino
        at = self.positions.get(where, 0)
        with contextlib.suppress(OSError):
            return status.st_size >= at and not Fingerprint.differs(path, kept)
        return False

    def _begun_by_head(self) -> dict[str, list[str]]:
        """Return the followed files of which something was read, by their first bytes."""
        found: dict[str, list[str]] = {}
        for path in self.followed.intersection(self.files):
            kept = self.fingerprint(path)
            if self.position(path) > 0 and not Fingerprint.is_empty(kept):
                found.setdefault(Fingerprint.head(kept), []).append(path)
        return found

    def _is_copy(self, path: str, by_head: Mapping[str, Sequence[str]]) -> bool:
        """Whether this is a copy of a file that is read, made to truncate that one.

        The copy is ignored for as long as it is one. Once the original is truncated, the rest is
        read from it.
        """
        status, head = first_bytes(path)
        lengths = {int(one.partition(":")[0]) for one in by_head}
        heads = [Fingerprint.head_of(head[:length]) for length in lengths if length <= len(head)]
        for one in (one for alike in heads for one in by_head.get(alike, ())):
            kept, at, now = self.fingerprint(one), self.position(one), status_of(one)
            if at > status.st_size or now is None or now.st_ino != Fingerprint.inode(kept):
                continue
            if now.st_size < at or Fingerprint.differs(one, kept) or begins_with(one, path):
                return True
        return False

    def keep_open(self, path: str) -> None:
        """Open a followed file, so that its rest can be read whatever happens to its name."""
        if path not in self.followed or path in self.rotated or not self.can_keep_open:
            return
        with contextlib.suppress(OSError):
            file = open_raw(path)
            status, head = os.fstat(file.fileno()), os.pread(file.fileno(), HEAD, 0)
            inode, length, _ = self.fingerprint(path).split(":")
            if stat.S_ISREG(status.st_mode) and status.st_ino == int(inode):
                self.kept_open[path] = (file, head[: int(length)])
            else:
                file.close()

    @property
    def can_keep_open(self) -> bool:
        """Whether another file can be kept open."""
        return len(self.kept_open) < MAX_OPEN

    def has_more(self, path: str) -> bool:
        """Whether a file that was read before, but is not the current one, has grown.

        A file that is gone, and was read to its end, is removed.
        """
        if path not in self.followed:
            return False
        seen, now = self.last_seen[path], status_of(path)
        inode, gone = Fingerprint.inode(self.fingerprint(path)), False
        if path in self.kept_open:
            mine = os.fstat(self.kept_open[path][0].fileno())
            if (mine.st_size, mine.st_mtime_ns) != seen:
                return True
            unlinked = mine.st_nlink == 0
            gone = unlinked and (now is None or self.is_renamed(path, self.partition(path)))
            inode = mine.st_ino
        if gone:
            self.remove(path)
        if gone or now is None:
            return False
        if now.st_ino == inode:
            return (now.st_size, now.st_mtime_ns) != seen
        return now.st_size > 0 and not self.is_renamed(path, self.partition(path))

    def bytes_left(self, path: str, current: BinaryIO | None) -> int | None:
        """Return how many bytes are left to read, None for a compressed file."""
        if is_compressed(path):
            return None
        sizes: dict[int, int] = {}  # by inode: the file with this name, and the one before it
        for part in (path, self.rotated.get(path, path)):
            if (status := status_of(part)) is not None:
                sizes[status.st_ino] = status.st_size
        file = current or self.kept_open.get(path, (None,))[0]
        if file is not None:
            status = os.fstat(file.fileno())
            sizes[status.st_ino] = status.st_size
        return max(sum(sizes.values()) - self.position(path), 0)


def refuse_compressed(path: str) -> None:
    """Refuse to follow a compressed file."""
    if is_compressed(path):
        raise SourceError(f"{path} is compressed, so it cannot be followed")
