"""A stretch of files: from an offset of the first file to an offset of the last."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.core.formats import format_named
from streamlearn.stream.records import Partition
from streamlearn.stream.sources.compression import is_compressed
from streamlearn.stream.sources.lines import Lines
from streamlearn.stream.sources.parts import SourcePart
from streamlearn.stream.sources.record_files import opener_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import BinaryIO, TypeAlias

    from streamlearn.stream.records import Records
    from streamlearn.stream.sources.source import Source

    # Returns where records begin that are closest behind some bytes of a file, None for its end.
    Cut: TypeAlias = Callable[[str, Sequence[int]], list[int | None]]

BLOCK = 1 << 19
MANY = 1 << 30
SMALLEST = 1 << 20  # bytes of a stretch of a file
UNEVEN = 1.2  # by which the largest stretch of whole files may exceed its share


@dataclass(frozen=True)
class FileStretch:
    """The records from an offset of the first file up to an offset of the last; None: all of it."""

    paths: tuple[str, ...]
    start: int = 0
    stop: int | None = None


class StretchSource(SourcePart):
    r"""The records of a stretch, read by a source of its files.

    >>> import tempfile
    >>> from streamlearn.stream import Files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     stretch = FileStretch((str(path),), 4, 8)
    ...     source = StretchSource(Files(stretch.paths), stretch)
    ...     source.open({}, None)
    ...     values = [list(one.values) for one in source.poll(0.0)]
    ...     source.close()
    >>> values
    [[b'two']]
    """

    def __init__(self, source: Source, stretch: FileStretch) -> None:
        super().__init__(source)
        self.stretch = stretch
        self._passed = False  # the end of the stretch

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Open the source where the stretch begins."""
        stretch = self.stretch
        begin = {Partition(stretch.paths[0]): stretch.start} if stretch.start else {}
        super().open({**begin, **positions}, identity)

    def _ended(self) -> bool:
        return self._passed or super()._ended()

    def _cut(self, records: Records) -> Records | None:
        stretch = self.stretch
        if stretch.stop is None or records.partition.topic != stretch.paths[-1]:
            return records
        inside = bisect_left(records.offsets, stretch.stop)
        self._passed = inside < len(records.offsets)
        return records.part(0, inside) if inside else None


def stretches(paths: Sequence[str], count: int, cut: Cut | None) -> list[FileStretch]:
    """Divide files into at most so many stretches of about the same size.

    Files stay whole and in their order if that is about as even as cutting them. Without `cut` they
    are not divisible, nor are compressed ones.
    """
    sizes = [Path(path).stat().st_size for path in paths]
    whole = distributed(sizes, count)
    share = max(sum(sizes) / count, SMALLEST)
    divisible = [cut is not None and not is_compressed(path) for path in paths]
    uneven = max(sum(sizes[i] for i in part) for part in whole) > UNEVEN * share
    if cut is None or not any(divisible) or not uneven:
        return [FileStretch(tuple(paths[i] for i in part)) for part in whole]
    aims = [round(k * share) for k in range(1, int(sum(sizes) / share))]
    ends = [(0, 0), *borders(paths, sizes, divisible, aims, cut), (len(paths), 0)]
    return [between(paths, first, last) for first, last in pairwise(sorted(set(ends)))]


def distributed(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Distribute files by size among at most so many parts, the largest first.

    >>> distributed([10, 70, 30, 30], 2), distributed([10, 70], 9)
    ([[0, 2, 3], [1]], [[0], [1]])
    """
    parts: list[list[int]] = [[] for _ in range(min(count, len(sizes)))]
    loads = [0] * len(parts)
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        least = loads.index(min(loads))
        parts[least].append(i)
        loads[least] += sizes[i]
    return sorted(map(sorted, parts))


def borders(
    paths: Sequence[str],
    sizes: Sequence[int],
    divisible: Sequence[bool],
    aims: Sequence[int],
    cut: Cut,
) -> Iterator[tuple[int, int]]:
    """Yield files and offsets near these bytes of all files, laid end to end."""
    before = 0
    for i, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        inside = [aim - before for aim in aims if before <= aim < before + size]
        before += size
        if divisible[i] and inside:
            found = cut(path, inside)
        else:
            found = [0 if 2 * aim < size else None for aim in inside]
        for at in found:
            yield (i, at) if at is not None else (i + 1, 0)


def between(paths: Sequence[str], first: tuple[int, int], last: tuple[int, int]) -> FileStretch:
    """Return the stretch from one border to another."""
    (i, start), (j, stop) = first, last
    return FileStretch(tuple(paths[i : j + (stop > 0)]), start, stop or None)


def cut_of(kind: str, delimiter: str | None = None) -> Cut | None:
    """Return what cuts files of a format; None if nothing does. `delimiter`: of CSV."""
    if kind == "parquet":
        from streamlearn.stream.sources.column_files import group_starts  # noqa: PLC0415 - optional

        return group_starts
    if format_named(kind).has_columns or opener_of(kind) is not None:
        return None
    if kind != "csv":
        return line_starts
    return lambda path, aims: row_starts(path, aims, delimiter or ",")


def line_starts(path: str, aims: Sequence[int]) -> list[int | None]:
    """Return where the first line begins at or after each byte; None: nowhere."""
    with Path(path).open("rb") as file:
        return [next_line(file, aim) for aim in aims]


def next_line(file: BinaryIO, aim: int) -> int | None:
    """Return where the first line begins at or after a byte."""
    at = file.seek(max(aim - 1, 0))
    if not aim:
        return 0
    while block := file.read(BLOCK):
        end = block.find(b"\n")
        if end >= 0:
            at += end + 1
            return at if file.seek(at) == at and file.read(1) else None
        at += len(block)
    return None


def row_starts(path: str, aims: Sequence[int], delimiter: str) -> list[int | None]:
    """Return where the first row of CSV begins at or after each byte, in increasing order.

    Whether a line break is quoted depends on all text before it, so the file is read.
    """
    lines, found, left = Lines(path, delimiter=delimiter), list[int | None](), list(aims)
    with Path(path).open("rb", buffering=0) as file:
        while left and lines.fill(file.readinto, BLOCK):
            while left and lines.waiting:
                offsets, _, end = lines.take(MANY)
                while left and left[0] < end:
                    place = bisect_left(offsets, left.pop(0))
                    found.append(offsets[place] if place < len(offsets) else end)
    return found + [None] * len(left)
