"""Whether the log before a position is still the one that was read.

After an unclean leader election a partition may end before records that were read, and grow past
them again with others. Client libraries notice while they read, by the leader epochs of records;
after a restart they know none. An offset and its epoch name a record and all before it, so the last
record that was read is read again: if it comes with another epoch, the log was cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from streamlearn.kafka.reader import cut_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.stream.records import Partition, Records


class Mark(NamedTuple):
    """The last record before a position."""

    epoch: int
    offset: int
    position: int


def name_of(partition: Partition) -> str:
    """Return under what name a partition's mark is kept."""
    return f"epoch {partition.topic}/{partition.number}"


def written(marks: Mapping[Partition, Mark]) -> dict[str, str]:
    """Return marks as they are kept in checkpoints.

    >>> from streamlearn.stream import Partition
    >>> written({Partition("clicks", 3): Mark(epoch=7, offset=41, position=42)})
    {'epoch clicks/3': '7 41 42'}
    """
    return {name_of(where): " ".join(map(str, mark)) for where, mark in marks.items()}


def marks_of(kept: Mapping[str, str], positions: Mapping[Partition, int]) -> dict[Partition, Mark]:
    """Return the marks of these positions; there is none where records were skipped."""
    found = {
        where: Mark(*map(int, kept[name_of(where)].split()))
        for where in positions
        if name_of(where) in kept
    }
    return {where: mark for where, mark in found.items() if mark.position == positions[where]}


def without(kept: Mapping[str, str], partitions: Iterable[Partition]) -> dict[str, str]:
    """Leave the marks of these partitions out."""
    names = set(map(name_of, partitions))
    return {name: text for name, text in kept.items() if name not in names}


class LeaderEpochs:
    """The marks of what was given, and those that are to be found again."""

    def __init__(self) -> None:
        self.marks: dict[Partition, Mark] = {}
        self._sought: dict[Partition, Mark] = {}

    def seek(self, marks: Mapping[Partition, Mark]) -> None:
        """Find these again."""
        self.marks.update(marks)
        self._sought.update(marks)

    def start(self, partition: Partition, position: int) -> int:
        """Return where to begin to read: at the last record before, if it is to be found again."""
        if partition in self._sought:
            return self._sought[partition].offset
        self.marks.pop(partition, None)
        return position

    def give_up(self, partition: Partition) -> bool:
        """Whether a mark was still sought, which is no longer."""
        return self._sought.pop(partition, None) is not None

    def new(self, records: Records) -> Records:
        """Return the records that follow the mark; `SourceChanged` if the mark is another's."""
        mark = self._sought.pop(records.partition, None)
        if mark is None:
            return records
        found = bool(records.offsets) and records.offsets[0] == mark.offset
        rest = records.part(1, len(records.offsets)) if found else records
        other = found and records.epochs is not None and records.epochs[0] != mark.epoch
        if other or (rest.offsets and rest.offsets[0] < mark.position):
            detail = f"the record at {mark.offset} is another one now"
            raise cut_off(records.partition, mark.position, detail)
        return replace(rest, end=max(rest.end, mark.position))

    def given(self, records: Records) -> None:
        """Mark the last of these, which were given to be learned."""
        where = records.partition
        if records.offsets and records.epochs is not None:
            self.marks[where] = Mark(records.epochs[-1], records.offsets[-1], records.end)
        elif where in self.marks:
            self.marks[where] = self.marks[where]._replace(position=records.end)
