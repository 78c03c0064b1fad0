"""Where each partition begins: at its position, at its beginning, or at the configured start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from streamlearn.errors import SourceChanged
from streamlearn.kafka.topics import changed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream.records import Partition

Start = Literal["earliest", "latest"] | int


class Asked(NamedTuple):
    """What the user wants where there is no position, or one that can't be gone to."""

    start: Start
    skip_gaps: bool
    reset: bool


class StartPositions(NamedTuple):
    """Where to begin, where everything ended at this time, and what could no longer be had."""

    positions: dict[Partition, int]
    ends: dict[Partition, int]
    lost: dict[Partition, int]


def settle(
    reader: KafkaReader,
    partitions: list[Partition],
    positions: Mapping[Partition, int],
    identities: tuple[Mapping[str, str] | None, Mapping[str, str]],
    asked: Asked,
    *,
    by_pattern: bool,
) -> StartPositions:
    """Decide for every partition; `SourceChanged` if a position is of something else, or gone."""
    before, now = identities
    problem = changed(before, now) if before is not None else None
    if problem is not None and not asked.reset:
        raise SourceChanged(
            f"kafka: {problem}: the positions mean nothing there; --reset-offsets goes on with "
            "these models from the configured start"
        )
    kept = {
        where: at
        for where, at in positions.items()
        if before is None or changed(_about(before, where.topic), now) is None
    }
    firsts, ends = reader.first(partitions), reader.last(partitions)
    # A partition that has appeared since the checkpoint: its topic was there, or the pattern was.
    later = {
        where
        for where in partitions
        if where not in positions
        and before is not None
        and (by_pattern or f"topic {where.topic}" in before)
    }
    anew = [where for where in partitions if where not in kept and where not in later]
    settled = _start(reader, anew, asked.start, firsts, ends)
    settled.update((where, firsts[where]) for where in later)
    lost = {}
    for where in partitions:
        if where in kept:
            settled[where] = _resume(where, kept[where], firsts[where], ends[where], asked)
            lost[where] = max(settled[where] - kept[where], 0)
    return StartPositions(settled, ends, lost)


def _about(identity: Mapping[str, str], topic: str) -> dict[str, str]:
    names = ("cluster", f"topic {topic}")
    return {name: identity[name] for name in names if name in identity}


def _start(
    reader: KafkaReader,
    partitions: Iterable[Partition],
    start: Start,
    firsts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
) -> dict[Partition, int]:
    if start == "earliest":
        return {where: firsts[where] for where in partitions}
    if start == "latest":
        return {where: ends[where] for where in partitions}
    found = reader.since(partitions, start)
    return {where: ends[where] if at is None else at for where, at in found.items()}


def _resume(where: Partition, position: int, first: int, end: int, asked: Asked) -> int:
    name = f"{where.topic}/{where.number}"
    if position < first:
        if not asked.skip_gaps:
            raise SourceChanged(
                f"kafka: {name} begins at offset {first}, and the checkpoint goes on at "
                f"{position}: the {first - position} between are deleted; --on-gap=continue goes "
                "on without them"
            )
        return first
    if position > end:
        if not asked.reset:
            raise SourceChanged(
                f"kafka: {name} ends at offset {end}, and the checkpoint goes on at {position}: "
                "records that were learned are no longer there; --reset-offsets goes on at the end"
            )
        return end
    return position
