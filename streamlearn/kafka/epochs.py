"""Check that the log before a position is still the one that was read.

After an unclean leader election a partition may end before records that were read, and grow past
them again with others. Client libraries notice this while they read, by the leader epochs of
records, but not after a restart. An offset and its epoch identify a record and all before it, so
the last record that was read is read again. If its epoch has changed, the log was truncated.
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
    """Return the name of a partition's mark in an identity."""
    return f"epoch {partition.topic}/{partition.number}"


def written(marks: Mapping[Partition, Mark]) -> dict[str, str]:
    """Return marks as entries of an identity.

    >>> from streamlearn.stream import Partition
    >>> written({Partition("clicks", 3): Mark(epoch=7, offset=41, position=42)})
    {'epoch clicks/3': '7 41 42'}
    """
    return {name_of(where): " ".join(map(str, mark)) for where, mark in marks.items()}


def marks_of(kept: Mapping[str, str], positions: Mapping[Partition, int]) -> dict[Partition, Mark]:
    """Return the marks of these positions; skipped records have none."""
    found = {
        where: Mark(*map(int, kept[name_of(where)].split()))
        for where in positions
        if name_of(where) in kept
    }
    return {where: mark for where, mark in found.items() if mark.position == positions[where]}


def without(kept: Mapping[str, str], partitions: Iterable[Partition]) -> dict[str, str]:
    """Return an identity without the marks of these partitions."""
    names = set(map(name_of, partitions))
    return {name: text for name, text in kept.items() if name not in names}


class LeaderEpochs:
    """Marks of the records that were returned, and marks that are still to be checked."""

    def __init__(self) -> None:
        self.marks: dict[Partition, Mark] = {}
        self.sought: dict[Partition, Mark] = {}  # to be checked

    def seek(self, marks: Mapping[Partition, Mark]) -> None:
        """Check these marks when reading starts."""
        self.marks.update(marks)
        self.sought.update(marks)

    def start(self, partition: Partition, position: int) -> int:
        """Return where to start reading: at the marked record, if it is to be checked."""
        if partition in self.sought:
            return self.sought[partition].offset
        self.marks.pop(partition, None)
        return position

    def give_up(self, partition: Partition) -> bool:
        """Stop checking a partition's mark; return whether it was still to be checked."""
        return self.sought.pop(partition, None) is not None

    def new(self, records: Records) -> Records:
        """Return the records after the mark; SourceChangedError if the marked one has changed."""
        mark = self.sought.pop(records.partition, None)
        if mark is None:
            return records
        found = bool(records.offsets) and records.offsets[0] == mark.offset
        rest = records.part(1, len(records.offsets)) if found else records
        other = found and records.epochs is not None and records.epochs[0] != mark.epoch
        if other or (rest.offsets and rest.offsets[0] < mark.position):
            detail = f"the record at offset {mark.offset} has changed"
            raise cut_off(records.partition, mark.position, detail)
        return replace(rest, end=max(rest.end, mark.position))

    def given(self, records: Records) -> None:
        """Mark the last of the records that were returned."""
        where = records.partition
        if records.offsets and records.epochs is not None:
            self.marks[where] = Mark(records.epochs[-1], records.offsets[-1], records.end)
        elif where in self.marks:
            self.marks[where] = self.marks[where]._replace(position=records.end)
