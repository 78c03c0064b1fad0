"""Checks of the files to read and to write, made before any work is done."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
from pathlib import Path


def require_files(files: list[str]) -> None:
    """Raise ValueError unless each name is a regular file, a glob that matches, or "-"."""
    for name in files:
        path = Path(name)
        if name == "-":
            continue
        if not path.exists():
            if not glob.has_magic(name):
                raise ValueError(f"no such file: {name}")
            if not glob.glob(name, recursive=True):  # noqa: PTH207 - Path.glob takes no absolute pattern
                raise ValueError(f"no file matches {name}")
        elif path.is_dir():
            raise ValueError(f"{name} is a directory; use '{name.rstrip('/')}/*'")
        elif not path.is_file():
            # the first bytes of a named pipe would be read twice
            raise ValueError(f"{name} is not a regular file; for a pipe use - and redirect it")


def require_writable(path: str, option: str, files: list[str]) -> None:
    """Raise ValueError unless `path` can be written and is not one of the `files` read."""
    refuse_input(path, option, files)
    target = Path(path)
    if target.is_symlink():  # its target is written
        with contextlib.suppress(RuntimeError):  # raised for a loop of links before Python 3.13
            target = target.resolve()
        if target.is_symlink():
            raise ValueError(f"{option}: {path} is a link to itself; remove it")
    if target.is_dir():
        raise ValueError(f"{option}: {path} is a directory; use a file name")
    if not target.parent.is_dir():
        raise ValueError(f"{option}: no such directory: {target.parent}")
    # a file is replaced by a renamed one; a device or a pipe is written in place
    place = target if target.exists() and not target.is_file() else target.parent
    if not os.access(place, os.W_OK):
        raise ValueError(f"{option}: {place} is not writable")


def refuse_input(path: str, option: str, files: list[str]) -> None:
    """Raise ValueError if `path` is one of the files read, or matches one of their globs."""
    target = Path(path)
    for name in expanded(files):
        if target.exists() and Path(name).exists() and target.samefile(name):
            raise ValueError(f"{option}: {path} is also read as input; use another name")
    for pattern in filter(glob.has_magic, files):
        if matches(pattern, target):
            raise ValueError(
                f"{option}: {path} matches the input {pattern}; use another name or directory"
            )


def matches(pattern: str, path: Path) -> bool:
    """Return whether a glob matches this path, which need not exist.

    >>> matches("day/*.jsonl", Path("day/out.jsonl")), matches("*.jsonl", Path("day/out.jsonl"))
    (True, False)
    >>> matches("**/*.jsonl", Path("day/out.jsonl"))
    True
    """
    # resolve() would follow links
    wanted, given = Path(os.path.abspath(pattern)), Path(os.path.abspath(path))  # noqa: PTH100
    return _match(wanted.parts, given.parts)


def _match(wanted: tuple[str, ...], given: tuple[str, ...]) -> bool:
    if not wanted:
        return not given
    first, *rest = wanted
    if first == "**":  # any number of directories, or none
        return any(_match(tuple(rest), given[start:]) for start in range(len(given) + 1))
    return bool(given) and fnmatch.fnmatchcase(given[0], first) and _match(tuple(rest), given[1:])


def expanded(files: list[str]) -> list[str]:
    """Expand globs; a glob without a match is returned unchanged."""
    # Path.glob takes no absolute pattern
    found = {name: sorted(glob.glob(name, recursive=True)) for name in files}  # noqa: PTH207
    return [path for name in files for path in (found[name] or [name])]
