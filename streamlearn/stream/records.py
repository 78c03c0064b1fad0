"""Raw records of a stream: partitions, offsets, values, keys and headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.estimators.frames import Array

# A name that is not UTF-8 has its bytes as lone surrogates, as `os.fsdecode` has them.
Header = tuple[str, bytes | None]
OWN_HEADERS = "streamlearn."  # how the names of those begin that are added on the way


def name_bytes(name: str) -> bytes:
    r"""Return the bytes of a header's name.

    >>> name_bytes("é"), name_bytes("\udcff")
    (b'\xc3\xa9', b'\xff')
    """
    return name.encode(errors="surrogateescape")


def header_name(raw: bytes) -> str:
    """Return the name of these bytes."""
    return raw.decode(errors="surrogateescape")


class Partition(NamedTuple):
    """One ordered log of records: a topic's partition, or a file as partition 0 of its path."""

    topic: str
    number: int = 0


@dataclass(slots=True)
class Records:
    """Consecutive records of one partition, as they were read.

    A file's offset is the byte at which the record begins, Kafka's is the record's own number;
    they rise, and need not be consecutive. `end` is the position to go on from after the last one.
    `turns` say where each stands among all records of a poll; None: behind those given before.
    """

    partition: Partition
    offsets: Sequence[int]
    values: Sequence[bytes | None]
    end: int
    keys: Sequence[bytes | None] | None = None
    times: Sequence[int] | None = None  # milliseconds since 1970, as the source has them
    headers: Sequence[Sequence[Header]] | None = None
    turns: Array | None = None
    epochs: Sequence[int] | None = None  # in which of a partition's leaders each was written

    def part(self, start: int, stop: int) -> Records:
        """The records [start, stop).

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
            None if self.turns is None else self.turns[start:stop],
            None if self.epochs is None else self.epochs[start:stop],
        )
