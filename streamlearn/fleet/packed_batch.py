"""What a reader sends: records of one partition as packed rows, with what outputs need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import numpy as np

from streamlearn.stream import Partition, Records
from streamlearn.stream.packed_rows import Notes, PackedRows

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.stream import Decoder

T = TypeVar("T")


class Sparse(Sequence[T], Generic[T]):
    """A sequence in which most places have the same value.

    >>> keys = Sparse(4, {2: b"k"}, None)
    >>> list(keys), keys[1:3][1]
    ([None, None, b'k', None], b'k')
    """

    __slots__ = ("_found", "_otherwise", "_places")

    def __init__(self, size: int | range, found: Mapping[int, T], otherwise: T) -> None:
        self._places = range(size) if isinstance(size, int) else size
        self._found = found
        self._otherwise = otherwise

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sparse[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sparse[T]:
        if isinstance(index, slice):
            return Sparse(self._places[index], self._found, self._otherwise)
        return self._found.get(self._places[index], self._otherwise)


@dataclass(frozen=True)
class Wanted:
    """Which records outputs need with keys, headers and bytes, besides invalid ones."""

    keys: bool = False  # of all records: predictions have them
    everything: bool = False  # of all records: each label may become an orphan


@dataclass(frozen=True)
class PackedBatch:
    """Consecutive records of one partition, decoded.

    `generation` tells for which assignment of the partition they were read.
    """

    partition: Partition
    generation: int
    end: int
    offsets: Array
    times: Array | None = None
    epochs: Array | None = None
    rows: PackedRows | None = None  # None: no records, the position only advances
    keys: Sequence[bytes | None] | Mapping[int, bytes | None] = ()
    headers: Mapping[int, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, records: Records, generation: int, decoder: Decoder, events: Events, wanted: Wanted
    ) -> PackedBatch:
        """Decode records into `events`; the arrays are views of its buffers."""
        offsets = np.array(records.offsets, dtype=np.int64)
        if not len(offsets):
            return cls(records.partition, generation, records.end, offsets)
        events.clear()
        given = records.headers if decoder.reads_headers else None
        decoder.decode(records.values, events, None, given)
        rows = PackedRows.of(
            records.values,
            events,
            keep_all=wanted.everything,
            notes=Notes.of(decoder),
        )
        places = range(len(offsets)) if wanted.everything else sorted(rows.kept)
        keys, headers = records.keys, records.headers
        return cls(
            records.partition,
            generation,
            records.end,
            offsets,
            None if records.times is None else np.array(records.times, dtype=np.int64),
            None if records.epochs is None else np.array(records.epochs, dtype=np.int64),
            rows,
            ()
            if keys is None
            else list(keys)
            if wanted.keys
            else {i: key for i in places if (key := keys[i]) is not None},
            {} if headers is None else {i: found for i in places if (found := headers[i])},
        )

    def records(self) -> Records:
        """Return the records, with packed rows as their values."""
        size = len(self.offsets)
        if self.rows is None:
            return Records(self.partition, (), (), self.end)
        return Records(
            self.partition,
            integers(self.offsets),
            self.rows,
            self.end,
            keys=Sparse(size, self.keys, None) if isinstance(self.keys, Mapping) else self.keys,
            times=None if self.times is None else integers(self.times),
            headers=Sparse(size, self.headers, ()),
            epochs=None if self.epochs is None else integers(self.epochs),
        )


def integers(array: Array) -> Sequence[int]:
    """Return an array as a sequence of Python integers, without a copy."""
    view: Any = memoryview(array)  # type: ignore[arg-type]  # before Python 3.12 no Buffer
    return cast("Sequence[int]", view)
