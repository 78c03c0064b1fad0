"""Raw records of a stream: partitions, offsets, values, keys and headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array

# Bytes of a name that are not UTF-8 are lone surrogates, as in `os.fsdecode`.
Header = tuple[str, bytes | None]
OWN_HEADERS = "streamlearn."  # prefix of the names of headers that streamlearn adds


def name_bytes(name: str) -> bytes:
    r"""Encode a header's name.

    >>> name_bytes("é"), name_bytes("\udcff")
    (b'\xc3\xa9', b'\xff')
    """
    return name.encode(errors="surrogateescape")


def header_name(raw: bytes) -> str:
    """Decode a header's name."""
    return raw.decode(errors="surrogateescape")


class Partition(NamedTuple):
    """One ordered log of records: a topic's partition, or a file as partition 0 of its path."""

    topic: str
    number: int = 0


@dataclass(slots=True)
class Records:
    """Consecutive records of one partition.

    The offset of a record is a byte of a file, or its number in a Kafka partition. Offsets
    increase, with gaps. `end` is the position to resume from after the last record. `ranks` are the
    records' places in the order of all records of a poll; None: after the records before them.
    """

    partition: Partition
    offsets: Sequence[int]
    values: Sequence[bytes | None]
    end: int
    keys: Sequence[bytes | None] | None = None
    times: Sequence[int] | None = None  # milliseconds since 1970
    headers: Sequence[Sequence[Header]] | None = None
    ranks: Array | None = None
    epochs: Sequence[int] | None = None  # leader epochs

    def part(self, start: int, stop: int) -> Records:
        """Return the records [start, stop).

        >>> records = Records(Partition("t"), [4, 7, 9], [b"a", b"b", b"c"], 12)
        >>> records.part(1, 2).offsets, records.part(1, 2).end, records.part(1, 3).end
        ([7], 9, 12)
        """
        whole = stop >= len(self.offsets)
        if whole and start == 0:
            return self
        return Records(
            self.partition,
            self.offsets[start:stop],
            self.values[start:stop],
            self.end if whole else self.offsets[stop],
            None if self.keys is None else self.keys[start:stop],
            None if self.times is None else self.times[start:stop],
            None if self.headers is None else self.headers[start:stop],
            None if self.ranks is None else self.ranks[start:stop],
            None if self.epochs is None else self.epochs[start:stop],
        )
