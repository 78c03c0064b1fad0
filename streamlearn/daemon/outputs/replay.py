"""Replay dead letters into the topics they came from, each exactly once.

1. The end positions of the targets are saved before anything is sent.
2. Letters are sent and delivered in batches, and the position is saved after each batch.
3. If the saved progress is of an unfinished run, that run was killed. The letters it sent since are
   found in the targets, by the header that names the letter, and not sent again.

The progress is a file beside the checkpoints; only one replay may use it at a time.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from streamlearn import config
from streamlearn.core.files import fsync_directory
from streamlearn.daemon import build
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.outputs.dead_letter_reader import LETTER_HEADER, read_lines, read_records
from streamlearn.daemon.outputs.replay_progress import ReplayProgress, exclusive, progress_file
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import SourceChangedError
from streamlearn.stream import Files, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.daemon.outputs.dead_letter_reader import DeadLetter
    from streamlearn.daemon.outputs.replay_progress import TopicPositions
    from streamlearn.stream import Records, Source
    from streamlearn.stream.sinks.sink import Sink

FLUSH_SECONDS = 30.0


class Target(Protocol):
    """The destination of replayed letters."""

    def rejection(self, letter: DeadLetter) -> str | None:
        """Return why the target does not accept a letter; None if it does."""

    def send(self, letter: DeadLetter) -> None:
        """Send a letter."""

    def flush(self) -> None:
        """Deliver the letters sent."""

    def ends(self) -> TopicPositions:
        """Return the end positions of the target."""

    def sent(self, since: TopicPositions) -> set[str]:
        """Return the names of the letters sent since these positions."""

    def close(self) -> None:
        """Close the target."""


class TopicTarget:
    """Replay into the topics of the source, which its daemon reads."""

    def __init__(self, settings: config.KafkaSourceConfig) -> None:
        self.settings = settings
        self.connection = build.connection(settings)
        where = self.ends()
        self.topics = {topic for topic, _, _ in where}
        self.sinks: dict[str, Sink] = {}

    def rejection(self, letter: DeadLetter) -> str | None:
        """Reject a letter from a topic that is not of this source."""
        topic = letter.metadata("topic")
        return None if topic in self.topics else f"from topic {topic}, which is not in this source"

    def send(self, letter: DeadLetter) -> None:
        """Send a letter to its original topic; its key selects the partition."""
        topic = letter.metadata("topic") or ""
        if topic not in self.sinks:
            self.sinks[topic] = BlockingSink(self.connection.sink(topic))
        self.sinks[topic].send(letter.value, key=letter.key, headers=letter.replay_headers())

    def flush(self) -> None:
        """Flush all topics."""
        for sink in self.sinks.values():
            sink.flush(FLUSH_SECONDS)

    def ends(self) -> TopicPositions:
        """Return the end position of each partition."""
        found: dict[Partition, int] = {}
        with opened(self._source("latest"), {}, None) as source:
            while not source.ended():
                found |= {one.partition: one.end for one in source.poll(0.25)}
        return [(*where, at) for where, at in found.items()]

    def sent(self, since: TopicPositions) -> set[str]:
        """Find the letters that a killed run had sent."""
        names = set()
        with opened(self._source("earliest"), positions(since), None) as source:
            while not source.ended():
                for records in source.poll(0.25):
                    for headers in records.headers or ():
                        name = dict(headers).get(LETTER_HEADER)
                        if name is not None:
                            names.add(name.decode(errors="replace"))
        return names

    def _source(self, start: str) -> Source:
        return build.source(
            msgspec.structs.replace(self.settings, start=start, on_gap="continue"),
            reset_offsets=True,
        )

    def close(self) -> None:
        """Close all sinks."""
        for sink in self.sinks.values():
            sink.close()


class FileTarget:
    """Append to a file, one letter per line; a killed run may leave duplicate lines."""

    def __init__(self, path: str) -> None:
        self.file = sys.stdout.buffer if path == "-" else Path(path).open("ab")  # noqa: SIM115
        if path != "-" and not self.file.tell():  # a new file
            fsync_directory(Path(path).parent)

    def rejection(self, letter: DeadLetter) -> str | None:
        """Reject a letter with a line break."""
        return "contains a line break" if b"\n" in (letter.value or b"") else None

    def send(self, letter: DeadLetter) -> None:
        """Write one line."""
        self.file.write((letter.value or b"") + b"\n")

    def flush(self) -> None:
        """Flush to the disk, or to standard output."""
        self.file.flush()
        if self.file is not sys.stdout.buffer:
            os.fsync(self.file.fileno())

    def ends(self) -> TopicPositions:
        """Return nothing: a line has no name to find it by."""
        return []

    def sent(self, since: TopicPositions) -> set[str]:  # noqa: ARG002 - unknown
        """Return nothing: it is unknown which lines were written."""
        return set()

    def close(self) -> None:
        """Close the file."""
        if self.file is not sys.stdout.buffer:
            self.file.close()


@dataclass
class ReplayResult:
    """The outcome of a replay."""

    sent: int = 0
    already_sent: int = 0  # sent by a killed run that had not saved its progress
    not_sent: Counter[str] = field(default_factory=Counter)  # by reason


def replay(settings: config.Config, target: Target, *, again: bool = False) -> ReplayResult:
    """Replay the dead letters of a daemon that were not sent yet."""
    if settings.checkpoint is None:
        raise ValueError(
            "checkpoint.path: missing; set it, because replay saves its progress there"
        )
    letters = DeadLetterSource(settings)
    result = ReplayResult()
    with exclusive(settings.checkpoint) as file:
        progress = ReplayProgress(letters.name) if again else file.load(letters.name)
        known = set() if progress.target_ends is None else target.sent(progress.target_ends)
        if progress.target_ends is None:
            progress.target_ends = target.ends()
            file.save(progress)
        for records, source in letters.after(progress):
            if not records.offsets:  # a position only
                continue
            file.require_owner()
            for letter in letters.read(records):
                replay_letter(letter, target, known, result)
            target.flush()
            at = positions(progress.positions) | {records.partition: records.end}
            progress.positions = [(*where, end) for where, end in at.items()]
            progress.identity = dict(source.identity())
            file.save(progress)
        progress.target_ends = None
        file.save(progress)
    return result


def replay_letter(
    letter: DeadLetter, target: Target, known: set[str], result: ReplayResult
) -> None:
    """Send a letter, unless it was sent already or cannot be replayed."""
    problem = letter.undeliverable or target.rejection(letter)
    if problem is not None:
        result.not_sent[problem] += 1
    elif letter.name in known:
        result.already_sent += 1
    else:
        target.send(letter)
        result.sent += 1


def count_reasons(settings: config.Config) -> Counter[str]:
    """Count the dead letters to replay, by reason; send and save nothing."""
    letters, checkpoint = DeadLetterSource(settings), settings.checkpoint
    progress = (
        ReplayProgress(letters.name)
        if checkpoint is None
        else progress_file(checkpoint).load(letters.name)
    )
    found = Counter[str]()
    for records, _ in letters.after(progress):
        found.update(
            letter.metadata("reason") or "not a dead letter" for letter in letters.read(records)
        )
    return found


class DeadLetterSource:
    """The dead letters of a configuration, as a source."""

    def __init__(self, settings: config.Config) -> None:
        output = settings.dead_letters
        self.source: Source
        self.read: Callable[[Records], Iterator[DeadLetter]]
        if output.topic is not None and isinstance(settings.source, config.KafkaSourceConfig):
            own = {"topics": (output.topic,), "pattern": None, "on_gap": "continue"}
            own["start"] = "earliest"
            self.source = build.source(msgspec.structs.replace(settings.source, **own))
            self.read, self.name = read_records, f"topic {output.topic}"
        elif output.path is not None:
            # followed, so that an incomplete line is left for the next run
            self.source = Files([output.path], follow=True)
            self.read, self.name = read_lines, f"file {output.path}"
        else:
            raise ValueError("dead_letters: no topic or path is set, so no dead letters were kept")

    def after(self, progress: ReplayProgress) -> Iterator[tuple[Records, Source]]:
        """Read the letters present now; new ones are for the next run."""
        with opened(
            self.source, positions(progress.positions), progress.identity or None
        ) as source:
            if not isinstance(source, Files):
                while not source.ended():
                    yield from ((records, source) for records in source.poll(0.25))
                return
            # a file rotated since then has two partitions: the rest of the old file, and the new
            left, at = (
                sum(filter(None, source.bytes_left().values())),
                positions(progress.positions),
            )
            while left > 0 and (polled := source.poll(0.0)):
                for records in polled:
                    left -= records.end - at.get(records.partition, 0)
                    at[records.partition] = records.end
                    yield records, source


@contextmanager
def opened(
    source: Source, at: dict[Partition, int], identity: dict[str, str] | None
) -> Iterator[Source]:
    """Open a source at these positions, and close it at the end."""
    try:
        source.open(at, identity)
        yield source
    except SourceChangedError as error:
        hint = "--again replays all letters from the beginning"
        raise Stop(Exit.SOURCE_CHANGED, f"{error} ({hint})") from None
    finally:
        source.close()


def positions(where: TopicPositions) -> dict[Partition, int]:
    """Convert to the positions of a source."""
    return {Partition(topic, number): at for topic, number, at in where}
