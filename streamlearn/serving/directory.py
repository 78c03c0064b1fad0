"""A directory of snapshots.

    0000000003-000000120000.LEARNER.safetensors    the version 3-120000 of a learner
    names-0000000003.jsonl                         the names of features, in the order of slots

A snapshot is written under a temporary name and renamed, so it is whole or not there. Names are
only appended: each snapshot says how many lines of the file it knows.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.core.files import PART
from streamlearn.errors import ModelFileError
from streamlearn.estimators import model_file
from streamlearn.serving import arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from streamlearn.core.arrays import Array

SUFFIX = ".safetensors"
FILE = re.compile(r"(\d{10})-(\d{12})\.(.+)\.safetensors")
NAMES = re.compile(r"names-(\d{10})\.jsonl")


class SnapshotFile(NamedTuple):
    """A snapshot in a directory; newer ones compare greater."""

    epoch: int
    events: int
    learner: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.epoch:010}-{self.events:012}.{self.learner}{SUFFIX}"


def entries(directory: Path) -> list[SnapshotFile]:
    """Return the snapshots of a directory, newest first."""
    try:
        found = (FILE.fullmatch(path.name) for path in directory.iterdir())
        return sorted((SnapshotFile(int(m[1]), int(m[2]), m[3]) for m in found if m), reverse=True)
    except FileNotFoundError:
        return []


def newest(directory: Path, learner: str | None = None) -> Path:
    """Return the newest snapshot of a learner."""
    found = entries(directory)
    learners = sorted({entry.learner for entry in found})
    if learner is None and len(learners) > 1:
        raise ModelFileError(
            f"{directory} has the learners {', '.join(learners)}; choose one with learner=NAME"
        )
    for entry in found:
        if learner in {None, entry.learner}:
            return directory / entry.name
    wanted = "snapshot" if learner is None else f"snapshot of {learner}"
    raise ModelFileError(f"{directory} has no {wanted}; is [serve] configured, and the daemon up?")


def write(
    path: Path,
    header: Mapping[str, Any],
    content: Mapping[str, Array],
    *,
    learner: str,
    version: tuple[int, int],
    names_file: str,
) -> int:
    """Write a snapshot under a temporary name, and rename it; return its bytes."""
    metadata = {
        "learner": learner,
        "version": list(version),
        "written": time.time(),
        "names_file": names_file,
        **header,
        "model": model_file.encode(header["model"], []),
    }
    temporary = path.with_name(f".{path.name}{PART}")
    size = 0
    with temporary.open("wb") as file:
        for piece in arrays.pieces(metadata, content):
            size += file.write(piece)
    temporary.replace(path)
    return size


def append_names(path: Path, names: Iterable[Any], *, start: bool = False) -> None:
    """Append names to a file that exists, or `start` it."""
    text = "".join(json.dumps(name, ensure_ascii=True) + "\n" for name in names)
    with path.open("w" if start else "r+", encoding="ascii") as file:
        file.seek(0, os.SEEK_END)
        file.write(text)


def read_names(path: Path, start: int, stop: int) -> Sequence[Any]:
    """Return the names of lines `start` to `stop` - 1."""
    if start >= stop:
        return []
    found = []
    with path.open(encoding="ascii") as file:
        for number, line in enumerate(file):
            if number >= stop:
                break
            if number >= start:
                found.append(json.loads(line))
    if len(found) < stop - start:
        raise ModelFileError(f"{path} is truncated: {stop} names are needed")
    return found


def prune(directory: Path, learner: str, keep: int) -> None:
    """Delete all snapshots of a learner but the newest `keep`, and what no snapshot needs."""
    for entry in [one for one in entries(directory) if one.learner == learner][keep:]:
        (directory / entry.name).unlink(missing_ok=True)
    epochs = {entry.epoch for entry in entries(directory)}
    for path in directory.iterdir():
        match = NAMES.fullmatch(path.name)
        if match and int(match[1]) not in epochs and int(match[1]) < max(epochs, default=0):
            path.unlink(missing_ok=True)
