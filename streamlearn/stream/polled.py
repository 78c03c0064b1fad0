"""The records of a poll as one sequence, in the order of their ranks."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, chain, compress, repeat
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.stream.packed_rows import PackedRows
from streamlearn.stream.ranks import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.stream.records import Header, Partition, Records


class Polled:
    """The records of a poll.

    `order` has the places in `values` in the order in which records are learned; None: the order of
    `values`.

    >>> from streamlearn.stream import Partition, Records
    >>> clicks = Records(Partition("clicks"), [5], [b"c"], 6, ranks=np.array([1]))
    >>> views = Records(Partition("views"), [0, 1], [b"a", b"b"], 2, ranks=np.array([0, 2]))
    >>> polled = Polled([clicks, views])
    >>> [polled.values[k] for k in polled.order]
    [b'a', b'c', b'b']
    >>> polled.find(np.array([1, 2]))  # the second and third: which records, which place in them
    (array([0, 1]), array([0, 1]))
    """

    def __init__(self, records: Sequence[Records]) -> None:
        self.records = records
        self.sizes = [len(one.offsets) for one in records]
        self.starts = [0, *accumulate(self.sizes)]
        self.order: Array | None = None
        if len(records) > 1 and any(one.ranks is not None for one in records):
            self.order = order_of(np.concatenate(self._ranks()))

    def _ranks(self) -> list[Array]:
        """Return the ranks of each; records without ranks follow those before them."""
        ranks: list[Array] = []
        for one, size in zip(self.records, self.sizes, strict=True):
            if one.ranks is not None:
                ranks.append(one.ranks)
            else:
                after = max((int(mine.max(initial=-1)) + 1 for mine in ranks), default=0)
                ranks.append(np.arange(after, after + size))
        return ranks

    @cached_property
    def values(self) -> Sequence[bytes | None]:
        """The values of all records, one `Records` after the other."""
        if len(self.records) == 1:
            return self.records[0].values
        packed = [one.values for one in self.records if isinstance(one.values, PackedRows)]
        if packed:
            return PackedRows.joined(packed)
        return list(chain.from_iterable(one.values for one in self.records))

    @cached_property
    def headers(self) -> Sequence[Sequence[Header]] | None:
        """The headers of all records by place; None if no record can have any."""
        if all(one.headers is None for one in self.records):
            return None
        return list(
            chain.from_iterable(
                repeat((), size) if one.headers is None else one.headers
                for one, size in zip(self.records, self.sizes, strict=True)
            )
        )

    def only(self, wanted: Sequence[bool]) -> Polled:
        """Return some of the records, in the same order.

        >>> from streamlearn.stream import Partition, Records
        >>> clicks = Records(Partition("clicks"), [5], [b"c"], 6, ranks=np.array([1]))
        >>> views = Records(Partition("views"), [0, 1], [b"a", b"b"], 2, ranks=np.array([0, 2]))
        >>> Polled([clicks, views]).only([False, True]).values
        [b'a', b'b']
        """
        return self if all(wanted) else Polled(list(compress(self.records, wanted)))

    def __len__(self) -> int:
        return self.starts[-1]

    def find(self, numbers: Array) -> tuple[Array, Array]:
        """Return in which `Records` the records with these numbers are, and their places there."""
        places = numbers if self.order is None else self.order[numbers]
        starts = np.array(self.starts)
        which = np.searchsorted(starts, places, "right") - 1
        return which, places - starts[which]

    def times(self) -> Array:
        """Return milliseconds since 1970 by place, NaN if unknown.

        >>> from streamlearn.stream import Partition, Records
        >>> clicks = Records(Partition("clicks"), [5], [b"c"], 6, times=[1000])
        >>> views = Records(Partition("views"), [0], [b"a"], 1)
        >>> Polled([views, clicks]).times()
        array([  nan, 1000.])
        """
        known = np.full(len(self), np.nan)
        for one, start, size in zip(self.records, self.starts, self.sizes, strict=False):
            if one.times is not None:
                known[start : start + size] = one.times
        return known

    def runs(self) -> Iterator[tuple[Partition, int]]:
        """Yield the partition of each run of records, and the position after it."""
        which, places = self.find(np.arange(len(self)))
        last = np.flatnonzero(np.diff(which, append=-1))
        for k, i in zip(which[last].tolist(), places[last].tolist(), strict=True):
            records = self.records[k]
            at_end = i + 1 == len(records.offsets)
            yield records.partition, records.end if at_end else records.offsets[i + 1]
