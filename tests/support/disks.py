"""All states of a directory that a power failure may leave, on any file system.

`Recorder` records the operations on the files of a directory while a test runs. A `Disk` that
applies them returns every state that a power failure may leave after each operation, assuming only
what POSIX guarantees:

- Data written to a file is durable after an fsync of the file. Before, it may be there in part, as
  zeros, or not at all.
- A created, renamed or removed name is durable after an fsync of its directory. Before, each of
  these changes may be there or not, independently of the others.
"""

from __future__ import annotations

import itertools
import os
import stat
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pytest

Step = tuple[str, Any, Any]
ROOT = Path()
DIRECTORY = -1  # the file number of all directories, which their paths identify


class Recorder:
    """The operations below a directory, as (operation, path or file, new path or data).

    Existing files are durable.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.steps: list[Step] = []
        self._names: dict[Path, int] = {}
        self._files: dict[int, int] = {}  # by inode, while it has a name
        self._data: dict[int, bytes] = {}
        self._lock = threading.RLock()
        self._begin()
        self.begun = len(self.steps)
        for name in ("fsync", "replace", "link", "unlink", "mkdir"):
            self._patch(name, patch)

    def _begin(self) -> None:
        """Record existing files as durable."""
        self._look()
        self.steps += [("fsync", file, None) for file in self._names.values()]
        for path, folders, _ in os.walk(self.root):
            place = Path(path).relative_to(self.root)
            self.steps += [("name", place / name, DIRECTORY) for name in folders]
            self.steps.append(("fsync directory", place, None))

    def _patch(self, name: str, patch: pytest.MonkeyPatch) -> None:
        done: Callable[..., None] = getattr(os, name)
        note: Callable[..., None] = getattr(self, f"_{name}")

        def instead(*given: Any, **options: Any) -> None:
            with self._lock:
                self._look()
                if name != "fsync":  # the disk is simulated
                    done(*given, **options)
                note(*given)

        patch.setattr(os, name, instead)

    def note(self, what: str, value: Any = None) -> None:
        """Record an event between operations."""
        with self._lock:
            self._look()
            self.steps.append((what, value, None))

    def _below(self, path: Any) -> Path | None:
        path = Path(path).absolute()
        return path.relative_to(self.root) if path.is_relative_to(self.root) else None

    def _look(self) -> None:
        """Record new files, and data written since the last call."""
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                inode = path.stat().st_ino
                file = self._files.setdefault(inode, len(self._data))
                place = path.relative_to(self.root)
                found[place] = file
                if place not in self._names:
                    self.steps.append(("name", place, file))
                data = path.read_bytes()
                if self._data.setdefault(file, b"") != data:
                    self._data[file] = data
                    self.steps.append(("write", file, data))
        assert found.keys() >= self._names.keys(), (
            "a file was removed by a function that is not recorded"
        )
        self._names = found

    def _fsync(self, handle: int) -> None:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            folder = self._below(Path(f"/proc/self/fd/{handle}").readlink())
            if folder is not None:
                self.steps.append(("fsync directory", folder, None))
        elif status.st_ino in self._files:
            self.steps.append(("fsync", self._files[status.st_ino], None))

    def _replace(self, old: Any, new: Any) -> None:
        was, now = self._below(old), self._below(new)
        if was is not None:
            assert now is not None
            assert now.parent == was.parent
            if now in self._names:
                self._forget(now)
            self._names[now] = file = self._names.pop(was)
            self.steps.append(("rename", was, (now.name, file)))

    def _link(self, old: Any, new: Any) -> None:
        was, now = self._below(old), self._below(new)
        if was is not None and now is not None:
            self.steps.append(("name", now, self._names[was]))
            self._names[now] = self._names[was]

    def _unlink(self, path: Any) -> None:
        place = self._below(path)
        if place is not None:
            self.steps.append(("unlink", place, None))
            self._forget(place)

    def _forget(self, place: Path) -> None:
        """Forget a name; without names, the inode may be reused."""
        file = self._names.pop(place)
        if file not in self._names.values():
            self._files = {inode: one for inode, one in self._files.items() if one != file}

    def _mkdir(self, path: Any, *_: Any) -> None:
        place = self._below(path)
        if place is not None:
            self.steps.append(("name", place, DIRECTORY))


@dataclass
class Disk:
    """A simulated disk: what is durable, and what is not yet."""

    names: dict[Path, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    changes: dict[Path, list[Step]] = field(default_factory=lambda: defaultdict(list))
    data: dict[int, bytes] = field(default_factory=lambda: defaultdict(bytes))
    written: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    def take(self, step: Step) -> None:
        """Apply an operation."""
        what, one, other = step
        if what == "write":
            self.written[one].append(other)
        elif what == "fsync":
            self.data[one] = self.written.pop(one, [self.data[one]])[-1]
        elif what == "fsync directory":
            self.names[one] = changed(self.names[one], self.changes.pop(one, []))
        elif what in {"name", "rename", "unlink"}:
            self.changes[one.parent].append(step)

    def states(self) -> Iterator[dict[Path, bytes | None]]:
        """Yield all possible states: files and directories (None) by path."""
        for tree in self._trees(ROOT):
            files = sorted({file for file in tree.values() if file != DIRECTORY})
            for contents in itertools.product(*(self._contents(file) for file in files)):
                data: Mapping[int, bytes | None] = dict(zip(files, contents, strict=True))
                yield {path: data.get(file) for path, file in tree.items()}

    def _trees(self, folder: Path) -> Iterator[dict[Path, int]]:
        """Yield all possible sets of names below a directory."""
        changes = self.changes[folder]
        seen = []
        for kept in itertools.product([False, True], repeat=len(changes)):
            names = changed(self.names[folder], list(itertools.compress(changes, kept)))
            if names in seen:
                continue
            seen.append(names)
            below = [name for name, file in names.items() if file == DIRECTORY]
            for trees in itertools.product(*(list(self._trees(folder / name)) for name in below)):
                tree = {folder / name: file for name, file in names.items()}
                for one in trees:
                    tree |= one
                yield tree

    def _contents(self, file: int) -> list[bytes]:
        """Return all possible contents of a file: the old, the new, a part of it, or zeros."""
        old, new = self.data[file], self.written.get(file)
        if not new:
            return [old]
        half = (len(old) + len(new[-1])) // 2
        torn, zeros = new[-1][:half], old + bytes(max(len(new[-1]) - len(old), 0))
        return list(dict.fromkeys([old, *new, torn, zeros]))


def changed(names: Mapping[str, int], changes: list[Step]) -> dict[str, int]:
    """Return the names of a directory after the changes."""
    found = dict(names)
    for what, path, other in changes:
        if what == "name":
            found[path.name] = other
        elif what == "unlink":
            found.pop(path.name, None)
        else:
            found.pop(path.name, None)
            found[other[0]] = other[1]
    return found


def restore(state: Mapping[Path, bytes | None], root: Path) -> None:
    """Write a state to a directory."""
    root.mkdir(parents=True)
    for path, data in sorted(state.items()):
        if data is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(data)
