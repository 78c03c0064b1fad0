"""Select topics, and watch them for changes while they are read."""

from __future__ import annotations

import difflib
import logging
import re
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from streamlearn.errors import SourceChangedError, SourceError, SourceNotFoundError
from streamlearn.stream.records import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamlearn.kafka.reader import Cluster, KafkaReader

log = logging.getLogger(__name__)

DELETED_SECONDS = 10.0  # for which a topic must be missing to count as deleted


@dataclass(frozen=True)
class TopicSelection:
    """Topics by name, or those whose whole names match a pattern.

    >>> TopicSelection(("clicks",), None), TopicSelection((), "clicks-.*")
    (TopicSelection(names=('clicks',), pattern=None), TopicSelection(names=(), pattern='clicks-.*'))
    >>> TopicSelection((), "clicks-(")
    Traceback (most recent call last):
    ...
    ValueError: pattern 'clicks-(': missing ), unterminated subpattern at position 7
    """

    names: tuple[str, ...]
    pattern: str | None

    def __post_init__(self) -> None:
        if bool(self.names) == (self.pattern is not None):
            raise ValueError("give either topics or pattern")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"pattern {self.pattern!r}: {error}") from error

    def look(self, reader: KafkaReader) -> Cluster:
        """Ask the cluster for the selected topics."""
        if self.pattern is None:
            return reader.cluster(self.names)
        matches = re.compile(self.pattern).fullmatch
        found = (name for name in reader.names() if not name.startswith("__"))
        return reader.cluster([name for name in found if matches(name)])

    def missing(self, cluster: Cluster) -> list[str]:
        """Return the names of topics that do not exist."""
        return [name for name in self.names if name not in cluster.topics]

    def check(self, reader: KafkaReader, cluster: Cluster, bootstrap: str) -> None:
        """Refuse topics that do not exist, with the most similar names that do."""
        missing = self.missing(cluster)
        if missing:
            there = [name for name in reader.names() if not name.startswith("__")]
            near = difflib.get_close_matches(missing[0], there, 3, 0.5) or sorted(there)[:5]
            like = f"similar topics: {', '.join(near)}" if near else "the cluster has no topics"
            raise SourceNotFoundError(
                f"kafka at {bootstrap}: no topic {', '.join(map(repr, missing))}; {like}"
            )
        if not cluster.topics:
            log.warning("waiting for topics", extra={"pattern": self.pattern, "at": bootstrap})


def identity_of(cluster: Cluster) -> dict[str, str]:
    """Return what distinguishes these topics from others with the same names."""
    topics = {f"topic {name}": topic for name, topic in sorted(ids_of(cluster).items())}
    return {"cluster": cluster.id, **topics}


def ids_of(cluster: Cluster) -> dict[str, str]:
    """Return the id of each topic."""
    return {name: topic.id for name, topic in cluster.topics.items()}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Describe the first of the known ids that has changed, None if none has."""
    for name, known in before.items():
        current = now.get(name, known)
        if "" not in {current, known} and current != known:
            if name == "cluster":
                return f"this is cluster {current}, but the checkpoint is of cluster {known}"
            return f"{name} was deleted and created again (its id was {known} and is now {current})"
    return None


def partitions_of(cluster: Cluster) -> list[Partition]:
    """Return all partitions of the topics."""
    return [
        Partition(name, number)
        for name, topic in sorted(cluster.topics.items())
        for number in range(topic.partitions)
    ]


class TopicChanges(NamedTuple):
    """Changes of the selected topics."""

    cluster: Cluster
    beginnings: dict[Partition, int]  # first offsets of new partitions
    gone: list[str]  # deleted topics of a pattern


class TopicWatcher:
    """A thread that polls the cluster for changes and commits positions for lag tools.

    Both block on the broker, which the daemon's loop must not. `take` returns the changes, and
    raises an error that ends the source.
    """

    def __init__(
        self, reader: KafkaReader, selection: TopicSelection, every: float, start: Cluster
    ) -> None:
        self._reader = reader
        self._selection = selection
        self._every = every
        self._known = start
        self._partitions = set(partitions_of(start))
        self._missing: dict[str, float] = {}
        self._news: SimpleQueue[TopicChanges] = SimpleQueue()
        self._error: Exception | None = None
        self._positions: dict[Partition, int] | None = None
        self._silent_since: float | None = None
        self._wake = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="kafka-watch", daemon=True)
        self._thread.start()

    def take(self) -> list[TopicChanges]:
        """Return the changes since the last call; raise an error that ends the source."""
        if self._error is not None:
            raise self._error
        news = []
        while not self._news.empty():
            news.append(self._news.get())
        return news

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit these positions in the background, instead of earlier ones that still wait."""
        self._positions = dict(positions)
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Commit the remaining positions and stop the thread."""
        self._stop = True
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while not self._stop:
            self._wake.wait(max(due - time.monotonic(), 0))
            self._wake.clear()
            self._try_commit()
            if time.monotonic() >= due:
                self._try(self._look)
                due = time.monotonic() + self._every
        self._try_commit()

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (SourceChangedError, SourceNotFoundError) as error:
            self._error = error
        except SourceError as error:
            if self._silent_since is None:
                self._silent_since = time.monotonic()
                log.warning("broker unreachable", extra={"error": str(error)})
        except Exception as error:  # noqa: BLE001 -- a thread's error is the loop's
            self._error = error
        else:
            if self._silent_since is not None:
                seconds = time.monotonic() - self._silent_since
                self._silent_since = None
                log.warning("broker reachable again", extra={"seconds": round(seconds, 1)})

    def _try_commit(self) -> None:
        positions, self._positions = self._positions, None
        if positions:
            try:
                self._reader.commit(positions)
            except Exception as error:  # noqa: BLE001 -- lag tools are optional
                log.warning("commit for lag tools failed", extra={"error": str(error)})

    def _look(self) -> None:
        cluster = self._selection.look(self._reader)
        problem = changed(identity_of(self._known), identity_of(cluster))
        if problem is not None:
            raise SourceChangedError(
                f"kafka: {problem}; use --reset-offsets to resume with these models from the "
                "configured start"
            )
        gone = self._deleted(cluster.topics)
        fresh = [where for where in partitions_of(cluster) if where not in self._partitions]
        if not fresh and not gone:
            return
        beginnings = self._reader.first(fresh)
        self._partitions.update(fresh)
        self._partitions = {where for where in self._partitions if where.topic not in gone}
        known = {**self._known.topics, **cluster.topics}
        topics = {name: topic for name, topic in known.items() if name not in gone}
        self._known = cluster._replace(topics=topics)
        self._news.put(TopicChanges(self._known, beginnings, gone))

    def _deleted(self, topics: Iterable[str]) -> list[str]:
        """Return the topics that have been missing for some time."""
        now = time.monotonic()
        there = set(topics)
        self._missing = {
            name: self._missing.get(name, now) for name in self._known.topics if name not in there
        }
        gone = [name for name, since in self._missing.items() if now - since > DELETED_SECONDS]
        if gone and self._selection.pattern is None:
            raise SourceNotFoundError(
                f"kafka: topic {', '.join(gone)} was deleted while it was read"
            )
        return gone
