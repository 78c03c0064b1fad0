"""Lines of files, read once from their beginning to their end; offsets are numbers of lines.

The daemon's file source remembers bytes, so that it can go on; here a line's number is what a
message needs, and nothing is gone on from.
"""

from __future__ import annotations

import glob
import gzip
import importlib
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from streamlearn.stream import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLOCK = 1 << 18  # bytes read at a time
LONGEST = 1 << 26  # bytes of a line; a file without line ends must not fill the memory
STDIN = "-"


class Lines:
    """Files as a source of records, one after the other; blank lines are left out.

    Parameters
    ----------
    paths
        Files, or globs of them; .gz and .zst are unpacked; "-" is standard input.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = [path for text in paths for path in found(text)]
        self.sizes = [0 if path == STDIN else os.stat(path).st_size for path in self.paths]  # noqa: PTH116 - bytes are paths too
        self._rest: list[str] = []
        self._file: IO[bytes] | None = None
        self._raw: IO[bytes] | None = None
        self._tail = b""
        self._number = 1

    def identity(self) -> dict[str, str]:
        """Nothing is gone on from."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:  # noqa: ARG002 - the seam's
        """Go to the first line."""
        self.close()
        self._rest = list(self.paths)

    def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002 - a file does not wait
        """The lines of the next block."""
        while self._file is not None or self._rest:
            if self._file is None:
                self._begin()
            records = self._block()
            if records is not None:
                return [records]
        return []

    def _begin(self) -> None:
        path = self._rest[0]
        self._raw = sys.stdin.buffer if path == STDIN else Path(path).open("rb")  # noqa: SIM115 - see close
        self._file = unpacked(path, self._raw)
        self._tail, self._number = b"", 1

    def _block(self) -> Records | None:
        """The whole lines of a block; None at the end of the file."""
        file, path = cast("IO[bytes]", self._file), self._rest[0]
        try:
            # what is there: a pipe is not waited for until the block is full
            block = getattr(file, "read1", file.read)(BLOCK)
        except (EOFError, OSError, ValueError) as error:
            raise ValueError(f"{path}: cannot be unpacked: {error}") from error
        lines = (self._tail + block).split(b"\n")
        self._tail = lines.pop() if block else b""
        if len(self._tail) > LONGEST:
            raise ValueError(f"{path}:{self._number}: a line of more than {LONGEST} bytes")
        first = self._number
        self._number += len(lines)
        if not block:
            self.close()
            self._rest = self._rest[1:]
        numbers: Sequence[int] = range(first, first + len(lines))
        if b"" in lines or b"\r" in lines:
            kept = [(n, line) for n, line in zip(numbers, lines, strict=True) if line.strip()]
            numbers, lines = [n for n, _ in kept], [line for _, line in kept]
        if not lines:
            return None if not block else Records(Partition(path), [], [], self._number)
        return Records(Partition(path), numbers, lines, self._number)

    def lag(self) -> dict[Partition, int | None]:
        """How many bytes are left, packed ones where a file is packed."""
        left: dict[Partition, int | None] = {}
        done = len(self.paths) - len(self._rest)
        for path, size in list(zip(self.paths, self.sizes, strict=True))[done:]:
            left[Partition(path)] = size
        if self._raw is not None and self._rest and self._rest[0] != STDIN:
            left[Partition(self._rest[0])] = self.sizes[done] - self._raw.tell()
        return left

    def ended(self) -> bool:
        """Whether the last line was given."""
        return self._file is None and not self._rest

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nothing to do: nobody watches."""

    def close(self) -> None:
        """Close the file that is being read."""
        for file in (self._file, self._raw):
            if file is not None and file is not sys.stdin.buffer:
                file.close()
        self._file = self._raw = None


def found(text: str) -> list[str]:
    """The files that a path or a glob stands for; refused if there are none."""
    if text == STDIN or Path(text).is_file():
        return [text]
    if Path(text).is_dir():
        raise ValueError(f"{text} is a directory; name the files, as in {text.rstrip('/')}/*.jsonl")
    files = sorted(path for path in glob.glob(text, recursive=True) if Path(path).is_file())  # noqa: PTH207 - absolute patterns too
    if not files and Path(text).exists():
        return [text]  # a pipe, a device
    if not files:
        raise ValueError(f"{text}: there is no such file")
    return files


def unpacked(path: str, raw: IO[bytes]) -> IO[bytes]:
    """The file's bytes, unpacked if its name says that they are packed."""
    if path.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if path.endswith(".zst"):
        return cast(
            "IO[bytes]",
            zstandard(path).ZstdDecompressor().stream_reader(raw, read_across_frames=True),
        )
    return raw


def zstandard(path: str) -> Any:
    """The library that unpacks .zst."""
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise ValueError(
            f"{path}: .zst needs the package zstandard: pip install zstandard, or unpack it"
        ) from None
