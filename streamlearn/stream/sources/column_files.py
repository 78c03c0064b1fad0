"""Files of columns: Parquet, and Arrow's own formats (`.arrow`, `.feather`), in batches of rows.

pyarrow reads them; their values are read natively where it has put them.
"""

from __future__ import annotations

from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from streamlearn.columns.batch import batch_of_capsules
from streamlearn.errors import SourceError
from streamlearn.stream.column_rows import ColumnRows

try:
    import pyarrow as pa
    from pyarrow import dataset, ipc, parquet
except ImportError as error:
    raise ImportError("Parquet requires pyarrow; run pip install 'streamlearn[arrow]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from streamlearn.stream.records import Header

ROWS = 1 << 16  # of a batch that is decoded
BUFFER = 1 << 20  # bytes of a column that are read at once
TEXTS = {"string", "large_string", "string_view"}
CODE_BYTES = 4  # of a text in a column that has a dictionary, with its share of that


class ColumnFile:
    """The rows of an open file, group by group.

    Parameters
    ----------
    sizes
        The rows of each group; None where only reading tells.
    read
        Returns the batches of a group, from its beginning, without some columns.
    names
        The columns that can be left out.
    """

    headers: Sequence[Header] = ()

    def __init__(
        self,
        sizes: Sequence[int | None],
        read: Callable[[int, AbstractSet[str]], Iterator[pa.RecordBatch]],
        names: Sequence[str] = (),
    ) -> None:
        self._sizes = sizes
        self._read = read
        self._names = frozenset(names)
        self._left_out: AbstractSet[str] = frozenset()
        self._group = 0  # the next one
        self._taken = 0  # batches of the one before
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: ColumnRows | None = None

    def take(self, most: int) -> Sequence[bytes]:
        """Return the next rows of one batch."""
        while not self._rest:
            batch = next(self._batches, None)
            if batch is not None:
                self._taken += 1
                rows = batch_of_capsules(*batch.__arrow_c_array__())
                self._rest = ColumnRows(rows, 0, len(rows), batch.nbytes)
            elif self._group < len(self._sizes):
                self._batches = self._read(self._group, self._left_out)
                self._group, self._taken = self._group + 1, 0
            else:
                return []
        taken, self._rest = self._rest[:most], self._rest[most:]
        return taken

    def leave_out(self, columns: AbstractSet[str]) -> None:
        """Read no more of these columns than has been read."""
        left_out = self._names & columns
        if left_out == self._left_out:
            return
        self._left_out = left_out
        if self._group:
            again = self._read(self._group - 1, left_out)
            self._batches = islice(again, self._taken, None)

    def skip(self, count: int) -> int:
        """Skip rows; whole groups are not read."""
        left = count
        while left:
            size = self._sizes[self._group] if self._group < len(self._sizes) else None
            if self._group < len(self._sizes) and size is not None and size <= left:
                self._group += 1
                left -= size
            elif taken := self.take(left):
                left -= len(taken)
            else:
                break
        return count - left


def open_parquet(file: BinaryIO) -> ColumnFile:
    """Return the rows of a Parquet file."""
    metadata = parquet.read_metadata(file)
    found = parquet.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=repeated(metadata),
        # pages as they are decoded; otherwise all columns of a group are in memory
        buffer_size=BUFFER,
        pre_buffer=False,
    )
    sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    names = found.schema_arrow.names

    def read(group: int, left_out: AbstractSet[str]) -> Iterator[pa.RecordBatch]:
        columns = [name for name in names if name not in left_out] or names[:1]
        batches: Iterator[pa.RecordBatch] = found.iter_batches(
            batch_size=ROWS, row_groups=[group], columns=columns if left_out else None
        )
        return batches

    return ColumnFile(sizes, read, names)


def repeated(metadata: parquet.FileMetaData) -> list[str]:
    """Return the columns of text in which values repeat: they are read as dictionaries.

    A dictionary of distinct texts would cost more than it saves.
    """
    if not metadata.num_row_groups:
        return []
    group, schema = metadata.row_group(0), metadata.schema.to_arrow_schema()
    found = []
    for k in range(group.num_columns):
        column = group.column(k)
        name = column.path_in_schema
        # of a name that stands twice there is no one field: such a table is refused when decoded
        is_text = schema.names.count(name) == 1 and str(schema.field(name).type) in TEXTS
        if is_text and column.total_uncompressed_size < CODE_BYTES * column.num_values:
            found.append(name)
    return found


def open_arrow(file: BinaryIO) -> ColumnFile:
    """Return the rows of a file in Arrow's format for files, or for streams."""
    start = file.read(len(MAGIC))
    file.seek(0)
    if start != MAGIC:
        stream = ipc.open_stream(file)
        return ColumnFile([None], lambda *_: iter(stream))
    found = ipc.open_file(file)
    groups = [None] * found.num_record_batches
    return ColumnFile(groups, lambda k, _: iter([found.get_batch(k)]))


MAGIC = b"ARROW1"


def count_parquet(path: str) -> int:
    """Return how many rows a Parquet file has."""
    rows: int = parquet.read_metadata(path).num_rows
    return rows


def group_starts(path: str, aims: Sequence[int]) -> list[int | None]:
    """Return the first row of the group nearest to each byte; None: the end of the file."""
    try:
        metadata = parquet.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise SourceError(f"{path} is damaged: {error}") from error
    groups = (metadata.row_group(k).num_rows for k in range(metadata.num_row_groups))
    starts, rows = [*accumulate(groups, initial=0)], metadata.num_rows
    size = Path(path).stat().st_size
    nearest = [min(starts, key=lambda start: abs(start - rows * aim / size)) for aim in aims]
    return [None if start == rows else start for start in nearest]


def count_arrow(path: str) -> int:
    """Return how many rows a file in Arrow's format has."""
    try:
        rows: int = dataset.dataset(path, format="ipc").count_rows()
    except pa.ArrowInvalid:  # a stream
        with pa.OSFile(path) as file, ipc.open_stream(file) as stream:
            return sum(batch.num_rows for batch in stream)
    return rows
