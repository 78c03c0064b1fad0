"""Dead letters back into the topics that they came from, each once.

1. The place where the targets end is noted before anything is sent.
2. Letters are sent a batch at a time, delivered, and only then is the position noted.
3. A run that finds such a note unfinished was killed: what it had sent since is looked up in the
   targets, by the header that names the letter, and not sent again.

The notes are a file in the directory of checkpoints; one run at a time works on it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing.durable import make_directory, write_whole
from streamlearn.daemon.outputs.blocking import BlockingSink
from streamlearn.daemon.outputs.dead_letter_reader import LETTER_HEADER, read_lines, read_records
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import SourceChanged, SourceError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.model_file import fsync_directory
from streamlearn.stream import Files, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.daemon.outputs.dead_letter_reader import DeadLetter
    from streamlearn.stream import Records, Source
    from streamlearn.stream.sinks.sink import Sink

FLUSH_SECONDS = 30.0
PROGRESS_FILE = "replayed.json"
Where = list[tuple[str, int, int]]  # topic, partition, position


class ReplayProgress(msgspec.Struct):
    """What is remembered between two runs."""

    letters: str  # whose positions these are
    identity: dict[str, str] = {}
    positions: Where = []
    # where the targets ended when a run began that has not ended; None: it has
    target_ends: Where | None = None


class Target(Protocol):
    """Where letters go back to."""

    def rejection(self, letter: DeadLetter) -> str | None:
        """Why not this one."""

    def send(self, letter: DeadLetter) -> None:
        """Hand it over."""

    def flush(self) -> None:
        """Deliver what was handed over."""

    def ends(self) -> Where:
        """Where the targets end."""

    def sent(self, since: Where) -> set[str]:
        """The names of letters that came to the targets since then."""

    def close(self) -> None:
        """Give everything back."""


class TopicTarget:
    """Into the topics of the source, which its daemon reads."""

    def __init__(self, settings: config.KafkaSourceConfig) -> None:
        self.settings = settings
        self.connection = build.connection(settings)
        where = self.ends()
        self.topics = {topic for topic, _, _ in where}
        self.sinks: dict[str, Sink] = {}

    def rejection(self, letter: DeadLetter) -> str | None:
        """It must come from a topic of this source."""
        topic = letter.metadata("topic")
        return (
            None if topic in self.topics else f"it comes from {topic}, which is not of this source"
        )

    def send(self, letter: DeadLetter) -> None:
        """To the topic that it came from; its key says to which partition."""
        topic = letter.metadata("topic") or ""
        if topic not in self.sinks:
            self.sinks[topic] = BlockingSink(self.connection.sink(topic))
        self.sinks[topic].send(letter.value, key=letter.key, headers=letter.replay_headers())

    def flush(self) -> None:
        """Deliver to all of them."""
        for sink in self.sinks.values():
            sink.flush(FLUSH_SECONDS)

    def ends(self) -> Where:
        """Where each partition ends now."""
        found: dict[Partition, int] = {}
        with opened(self._source("latest"), {}, None) as source:
            while not source.ended():
                found |= {one.partition: one.end for one in source.poll(0.25)}
        return [(*where, at) for where, at in found.items()]

    def sent(self, since: Where) -> set[str]:
        """What a run that was killed had sent."""
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
        """Close all of them."""
        for sink in self.sinks.values():
            sink.close()


class FileTarget:
    """Into a file, a letter's own bytes a line; after a kill some lines may come twice."""

    def __init__(self, path: str) -> None:
        self.file = sys.stdout.buffer if path == "-" else Path(path).open("ab")  # noqa: SIM115
        if path != "-" and not self.file.tell():  # a new one
            fsync_directory(Path(path).parent)

    def rejection(self, letter: DeadLetter) -> str | None:
        """A line holds no line."""
        return "it has a line break in it" if b"\n" in (letter.value or b"") else None

    def send(self, letter: DeadLetter) -> None:
        """One line."""
        self.file.write((letter.value or b"") + b"\n")

    def flush(self) -> None:
        """To the disk, or to who reads."""
        self.file.flush()
        if self.file is not sys.stdout.buffer:
            os.fsync(self.file.fileno())

    def ends(self) -> Where:
        """A line has no name that it could be found by."""
        return []

    def sent(self, since: Where) -> set[str]:  # noqa: ARG002 - nothing is known of it
        """Nothing is known."""
        return set()

    def close(self) -> None:
        """Close the file."""
        if self.file is not sys.stdout.buffer:
            self.file.close()


@dataclass
class ReplayResult:
    """What became of the letters."""

    sent: int = 0
    already_sent: int = 0  # sent by a run that was killed before it could note it
    left: Counter[str] = field(default_factory=Counter)  # not sent, by the reason


def replay(settings: config.Config, target: Target, *, again: bool = False) -> ReplayResult:
    """Send the dead letters of a daemon back, those that were not sent yet."""
    if settings.checkpoint is None:
        raise ValueError("checkpoint.path: missing; what was sent back is remembered there")
    directory = progress_directory(settings.checkpoint)
    make_directory(directory)
    letters = DeadLetterSource(settings)
    outcome = ReplayResult()
    with exclusive(directory):
        path = directory / PROGRESS_FILE
        progress = ReplayProgress(letters.name) if again else load_progress(path, letters.name)
        known = set() if progress.target_ends is None else target.sent(progress.target_ends)
        if progress.target_ends is None:
            progress.target_ends = target.ends()
            save_progress(path, progress)
        for records, source in letters.after(progress):
            if not records.offsets:  # a position alone
                continue
            for letter in letters.read(records):
                replay_letter(letter, target, known, outcome)
            target.flush()
            at = positions(progress.positions) | {records.partition: records.end}
            progress.positions = [(*where, end) for where, end in at.items()]
            progress.identity = dict(source.identity())
            save_progress(path, progress)
        progress.target_ends = None
        save_progress(path, progress)
    return outcome


def replay_letter(
    letter: DeadLetter, target: Target, known: set[str], outcome: ReplayResult
) -> None:
    """Send one, unless it was or cannot be."""
    problem = letter.undeliverable or target.rejection(letter)
    if problem is not None:
        outcome.left[problem] += 1
    elif letter.name in known:
        outcome.already_sent += 1
    else:
        target.send(letter)
        outcome.sent += 1


def count_reasons(settings: config.Config) -> Counter[str]:
    """How many dead letters wait, by what was wrong with them; nothing is sent or remembered."""
    letters, kept = DeadLetterSource(settings), settings.checkpoint
    progress = (
        ReplayProgress(letters.name)
        if kept is None
        else load_progress(progress_directory(kept) / PROGRESS_FILE, letters.name)
    )
    found = Counter[str]()
    for records, _ in letters.after(progress):
        found.update(
            letter.metadata("reason") or "no dead letter" for letter in letters.read(records)
        )
    return found


class DeadLetterSource:
    """The dead letters of a configuration."""

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
            # followed, so that a line that is not yet whole is left for the next time
            self.source = Files([output.path], follow=True)
            self.read, self.name = read_lines, f"file {output.path}"
        else:
            raise ValueError("dead_letters: neither topic nor path: they were only counted")

    def after(self, progress: ReplayProgress) -> Iterator[tuple[Records, Source]]:
        """Those there are now; what comes meanwhile is for the next time."""
        with opened(
            self.source, positions(progress.positions), progress.identity or None
        ) as source:
            if not isinstance(source, Files):
                while not source.ended():
                    yield from ((records, source) for records in source.poll(0.25))
                return
            # of a file that was rotated since, the rest and the new one: two partitions
            left, at = sum(filter(None, source.lag().values())), positions(progress.positions)
            while left > 0 and (polled := source.poll(0.0)):
                for records in polled:
                    left -= records.end - at.get(records.partition, 0)
                    at[records.partition] = records.end
                    yield records, source


@contextmanager
def opened(
    source: Source, at: dict[Partition, int], identity: dict[str, str] | None
) -> Iterator[Source]:
    """The source at these positions; closed in the end."""
    try:
        source.open(at, identity)
        yield source
    except SourceChanged as error:
        hint = "replay --again takes all that is there, from its beginning"
        raise Stop(Exit.SOURCE_CHANGED, f"{error} ({hint})") from None
    finally:
        source.close()


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """One replay at a time."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Stop(Exit.OWNED, f"another replay works on {directory}: wait for its end") from None
    finally:
        os.close(handle)


def progress_directory(kept: config.CheckpointConfig) -> Path:
    """The directory of the notes; without those that are there, letters would be sent again."""
    directory = Path(kept.path)
    if kept.required and not checkpoints.places(directory):
        raise Stop(
            Exit.NO_CHECKPOINT,
            f"{directory} has no checkpoint, and checkpoint.required = true: what was sent back is "
            "remembered there, so mount its volume first",
        )
    return directory


def load_progress(path: Path, name: str) -> ReplayProgress:
    """What is remembered of these letters; of others, nothing."""
    try:
        progress = msgspec.json.decode(path.read_bytes(), type=ReplayProgress)
    except FileNotFoundError:
        return ReplayProgress(name)
    except msgspec.DecodeError as error:
        raise SourceError(f"{path} is damaged ({error}): --again begins at the beginning") from None
    return progress if progress.letters == name else ReplayProgress(name)


def save_progress(path: Path, progress: ReplayProgress) -> None:
    """Remember it."""
    plain: Any = msgspec.to_builtins(progress)
    write_whole(path, [json.dumps(plain, indent=1).encode() + b"\n"], lambda: None)


def positions(where: Where) -> dict[Partition, int]:
    """As a source takes them."""
    return {Partition(topic, number): at for topic, number, at in where}
