"""Files of records that are not lines, as a source; they are read once, and not followed.

Offsets are the numbers of records in their file, from 0. What a file's records are is the matter of
a `RecordFile`: one of `avro_file`, `delimited_file` and `column_files`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from streamlearn.core.formats import format_named
from streamlearn.errors import SourceChangedError, SourceError, TableMismatchError
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.compression import decompressed, is_compressed, open_raw
from streamlearn.stream.sources.delimited_file import DelimitedFile
from streamlearn.stream.sources.file_inventory import expanded, fingerprint_and_size, unreadable
from streamlearn.stream.sources.rotation import Fingerprint

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from streamlearn.stream.records import Header


class RecordFile(Protocol):
    """The records of one open file, in order."""

    @property
    def headers(self) -> Sequence[Header]:
        """The headers that each record has."""

    def take(self, most: int) -> Sequence[bytes]:
        """Return the next records, at most so many; none at the end. ValueError for damage."""

    def skip(self, count: int) -> int:
        """Skip so many records, as far as there are any; return how many were skipped."""


class ColumnRecords(RecordFile, Protocol):
    """Records whose values are in columns."""

    def leave_out(self, columns: AbstractSet[str]) -> None:
        """Read no more of these columns than has been read."""


class RecordFiles:
    """Records of files, one file after the other.

    Parameters
    ----------
    paths
        Files or globs; `.gz` and `.zst` are decompressed.
    open_file
        Reads the records of an open file.
    batch
        Maximum records of one poll.
    count
        Returns the number of records in a file; None: progress is measured in bytes.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        open_file: Callable[[BinaryIO], RecordFile],
        *,
        batch: int = 2000,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.paths = [str(path) for path in paths]
        self.batch = batch
        self._count = count
        self._open_file = open_file
        self._files: list[str] = []
        self._fingerprints: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        self._current = 0  # the place in `_files` of the one that is read
        self._raw: BinaryIO | None = None
        self._records: RecordFile | None = None
        self._left_out: frozenset[str] = frozenset()

    def identity(self) -> dict[str, str]:
        """Return the fingerprint of each file."""
        return self._fingerprints

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Find the files, and those that were read in part."""
        self.close()
        self._files, self._current = expanded(self.paths), 0
        self._positions = {where.topic: at for where, at in positions.items()}
        for path in self._files:
            kept = (identity or {}).get(path)
            if kept is not None and Fingerprint.differs(path, kept):
                raise SourceChangedError(
                    f"{path} is not the file of which {self._positions.get(path, 0)} records were "
                    "read: restore that file, or start over without the checkpoint"
                )
            self._fingerprints[path], self._sizes[path] = fingerprint_and_size(path)
            if self._count is not None:
                self._sizes[path] = self._counted(path, self._count)

    def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002 - files do not wait
        """Return the next records."""
        while not self.ended():
            path = self._files[self._current]
            at = self._positions.get(path, 0)
            try:
                records = self._records or self._begin(path, at)
                values = records.take(self.batch)
            except TableMismatchError as error:
                raise TableMismatchError(f"{path}: {error}") from None
            except SourceError:
                raise
            except OSError as error:
                raise unreadable(path, error) from error
            except Exception as error:  # decompressors have errors of their own
                raise SourceError(f"{path} is damaged after record {at}: {error}") from error
            if values:
                end = self._positions[path] = at + len(values)
                headers = [records.headers] * len(values) if records.headers else None
                return [Records(Partition(path), range(at, end), values, end, headers=headers)]
            self._close_current()
            self._current += 1
        return []

    def leave_out(self, columns: AbstractSet[str]) -> None:
        """Read no more of these columns either, if there are columns; rows then lack them."""
        self._left_out = self._left_out.union(columns)
        if self._count is not None and self._records is not None:
            cast("ColumnRecords", self._records).leave_out(self._left_out)

    def _counted(self, path: str, count: Callable[[str], int]) -> int:
        if is_compressed(path):
            raise SourceError(f"{path} is compressed as a whole: decompress it")
        try:
            return count(path)
        except OSError as error:
            raise unreadable(path, error) from error
        except ValueError as error:
            raise SourceError(f"{path} is damaged: {error}") from error

    def _begin(self, path: str, at: int) -> RecordFile:
        """Open a file at a record."""
        self._raw = open_raw(path)
        self._records = self._open_file(decompressed(self._raw, path))
        self.leave_out(frozenset())
        if (skipped := self._records.skip(at)) < at:
            raise SourceChangedError(f"{path} has {skipped} records, but {at} of it were read")
        return self._records

    def lag(self) -> dict[Partition, int | None]:
        """Return the records left in each file; if uncounted, 0 at its end and None before."""
        if self._count is not None:
            return {
                Partition(path): max(self._sizes[path] - self._positions.get(path, 0), 0)
                for path in self._files
            }
        return {
            Partition(path): 0 if place < self._current else None
            for place, path in enumerate(self._files)
        }

    @property
    def unit(self) -> str:
        """What `progress` counts."""
        return "bytes" if self._count is None else "rows"

    def progress(self) -> tuple[int, int]:
        """Return how many bytes of the files were read, and how many they have; or rows."""
        if self._count is not None:
            read = sum(self._positions.get(path, 0) for path in self._files)
            return read, sum(self._sizes.values())
        here = 0 if self._raw is None else self._raw.tell()
        read = sum(self._sizes[path] for path in self._files[: self._current])
        return read + here, sum(self._sizes.values())

    def place(self, partition: Partition, offset: int) -> str:
        """Describe where a record is."""
        return f"{partition.topic}: {'record' if self._count is None else 'row'} {offset}"

    def lost(self) -> Mapping[Partition, int]:
        """Return an empty mapping: files lose no records."""
        return {}

    def ended(self) -> bool:
        """Whether the last record of the last file was returned."""
        return self._current >= len(self._files)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Do nothing: files have no place for positions."""

    def close(self) -> None:
        """Close the current file."""
        self._close_current()

    def _close_current(self) -> None:
        if self._raw is not None:
            self._raw.close()
        self._raw = self._records = None


def opener_of(kind: str) -> Callable[[BinaryIO], RecordFile] | None:
    """Return what reads files of a format; None for formats of lines."""
    if kind == "avro":
        from streamlearn.stream.sources.avro_file import AvroFile  # noqa: PLC0415 - optional

        return AvroFile
    if format_named(kind).has_columns:
        from streamlearn.stream.sources import column_files  # noqa: PLC0415 - optional

        return column_files.open_parquet if kind == "parquet" else column_files.open_arrow
    return DelimitedFile if kind == "protobuf" else None


def counter_of(kind: str) -> Callable[[str], int] | None:
    """Return what counts the records of a file without reading them; None if nothing does."""
    if not format_named(kind).has_columns:
        return None
    from streamlearn.stream.sources import column_files  # noqa: PLC0415 - optional

    return column_files.count_parquet if kind == "parquet" else column_files.count_arrow
