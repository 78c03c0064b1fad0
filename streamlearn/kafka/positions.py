"""Where reading starts in each partition: its position, its beginning or the configured start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal, NamedTuple

from streamlearn.errors import SourceChangedError
from streamlearn.kafka.topics import changed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream.records import Partition

log = logging.getLogger(__name__)

Start = Literal["earliest", "latest"] | int


class StartPolicy(NamedTuple):
    """What to do where there is no position, or where it cannot be resumed."""

    start: Start
    skip_gaps: bool
    reset: bool


class StartPositions(NamedTuple):
    """Where to start, where each partition ended at this time, and how many records were lost."""

    positions: dict[Partition, int]
    ends: dict[Partition, int]
    lost: dict[Partition, int]


def start_positions(
    reader: KafkaReader,
    partitions: list[Partition],
    positions: Mapping[Partition, int],
    identities: tuple[Mapping[str, str] | None, Mapping[str, str]],
    asked: StartPolicy,
    *,
    by_pattern: bool,
) -> StartPositions:
    """Return where to start; SourceChangedError if a position is not of this topic, or deleted."""
    before, now = identities
    problem = changed(before, now) if before is not None else None
    if problem is not None and not asked.reset:
        raise SourceChangedError(
            f"kafka: {problem}, so the positions of the checkpoint are not valid; use "
            "--reset-offsets to resume with these models from the configured start"
        )
    kept = {
        where: at
        for where, at in positions.items()
        if before is None or changed(_about(before, where.topic), now) is None
    }
    firsts, ends = reader.first(partitions), reader.last(partitions)
    # Partitions that were created since the checkpoint: it has their topic, or the pattern.
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
    cut = [where for where, at in found.items() if at is not None and at == firsts[where] > 0]
    if cut:
        log.warning(
            "the oldest records are newer than the start: older ones were deleted",
            extra={"partitions": ", ".join(f"{topic}:{number}" for topic, number in cut)},
        )
    return {where: ends[where] if at is None else at for where, at in found.items()}


def _resume(where: Partition, position: int, first: int, end: int, asked: StartPolicy) -> int:
    name = f"{where.topic}/{where.number}"
    if position < first:
        if not asked.skip_gaps:
            raise SourceChangedError(
                f"kafka: {name} begins at offset {first}, but the checkpoint resumes at "
                f"{position}: {first - position} records were deleted; use --on-gap=continue to "
                "skip them"
            )
        return first
    if position > end:
        if not asked.reset:
            raise SourceChangedError(
                f"kafka: {name} ends at offset {end}, but the checkpoint resumes at {position}: "
                "records that were learned are gone; use --reset-offsets to resume at the end"
            )
        return end
    return position
