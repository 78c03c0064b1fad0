"""What a poll gave, as one list: records of several partitions in the order of their turns."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, chain, compress
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.stream.turns import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamlearn.estimators.frames import Array
    from streamlearn.stream.records import Partition, Records


class Polled:
    """Records of a poll.

    `order` are the places of all records in `values`, in the order in which they take turns; None:
    as they lie.

    >>> from streamlearn.stream import Partition, Records
    >>> clicks = Records(Partition("clicks"), [5], [b"c"], 6, turns=np.array([1]))
    >>> views = Records(Partition("views"), [0, 1], [b"a", b"b"], 2, turns=np.array([0, 2]))
    >>> polled = Polled([clicks, views])
    >>> [polled.values[k] for k in polled.order]
    [b'a', b'c', b'b']
    >>> polled.find(np.array([1, 2]))  # the second and third: in which records, at which place
    (array([0, 1]), array([0, 1]))
    """

    def __init__(self, records: Sequence[Records]) -> None:
        self.records = records
        self.sizes = [len(one.offsets) for one in records]
        self.starts = [0, *accumulate(self.sizes)]
        self.order: Array | None = None
        if len(records) > 1 and any(one.turns is not None for one in records):
            self.order = places(np.concatenate(self._turns()))

    def _turns(self) -> list[Array]:
        """Those of each; who says nothing of them comes behind who lies before it."""
        turns: list[Array] = []
        for one, size in zip(self.records, self.sizes, strict=True):
            if one.turns is not None:
                turns.append(one.turns)
            else:
                behind = max((int(mine.max(initial=-1)) + 1 for mine in turns), default=0)
                turns.append(np.arange(behind, behind + size))
        return turns

    @cached_property
    def values(self) -> Sequence[bytes | None]:
        """Those of all records, one `Records` after the other."""
        if len(self.records) == 1:
            return self.records[0].values
        return list(chain.from_iterable(one.values for one in self.records))

    def only(self, wanted: Sequence[bool]) -> Polled:
        """Some of the records, which take turns as before.

        >>> from streamlearn.stream import Partition, Records
        >>> clicks = Records(Partition("clicks"), [5], [b"c"], 6, turns=np.array([1]))
        >>> views = Records(Partition("views"), [0, 1], [b"a", b"b"], 2, turns=np.array([0, 2]))
        >>> Polled([clicks, views]).only([False, True]).values
        [b'a', b'b']
        """
        return self if all(wanted) else Polled(list(compress(self.records, wanted)))

    def __len__(self) -> int:
        return self.starts[-1]

    def find(self, numbers: Array) -> tuple[Array, Array]:
        """In which of the records these are, counted in their order, and where in them."""
        places = numbers if self.order is None else self.order[numbers]
        starts = np.array(self.starts)
        which = np.searchsorted(starts, places, "right") - 1
        return which, places - starts[which]

    def times(self) -> Array:
        """Milliseconds since 1970, by place; NaN: not known.

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
        """The stretches without a change of partition: whose it is, and the position behind it."""
        which, places = self.find(np.arange(len(self)))
        last = np.flatnonzero(np.diff(which, append=-1))
        for k, i in zip(which[last].tolist(), places[last].tolist(), strict=True):
            records = self.records[k]
            at_end = i + 1 == len(records.offsets)
            yield records.partition, records.end if at_end else records.offsets[i + 1]
