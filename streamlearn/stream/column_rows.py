"""Rows of columns in place of records' bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import msgspec

if TYPE_CHECKING:
    from streamlearn.columns.batch import ColumnBatch


@dataclass(frozen=True, eq=False)
class ColumnRows(Sequence[bytes]):
    """The rows start .. stop - 1 of a batch; an item is the row as a JSON object.

    size: the bytes of the batch.

    >>> import polars as pl
    >>> from streamlearn.columns.batch import batches
    >>> (batch,) = batches(pl.DataFrame({"age": [31, 44], "city": ["Bern", None]}))
    >>> rows = ColumnRows(batch, 0, 2)
    >>> len(rows), rows[1:][0]
    (2, b'{"age":44,"city":null}')
    """

    batch: ColumnBatch
    start: int
    stop: int
    size: int = 0

    @property
    def byte_count(self) -> int:
        """About how many bytes these rows take."""
        return self.size * len(self) // max(len(self.batch), 1)

    @property
    def meaningless(self) -> dict[str, str]:
        """The columns that no field can hold, with what they are."""
        schema = self.batch.schema
        kinds = zip(schema.columns, schema.kinds[1:], strict=False)
        return {name: kind for name, kind in kinds if kind not in {"values", "times"}}

    def __len__(self) -> int:
        return self.stop - self.start

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> ColumnRows: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("rows are cut without steps")
            return replace(self, start=self.start + start, stop=self.start + max(start, stop))
        return msgspec.json.encode(self.batch.row(range(self.start, self.stop)[index]))
