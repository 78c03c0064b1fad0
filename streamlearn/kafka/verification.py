"""Hold back records until a broker has confirmed the id of their topic.

Client libraries fetch by name, or adopt the id of a topic that was deleted and created again, and
continue reading there. They do not report the topic id of a record. But ids are never reused: if a
broker that is asked **after** a fetch still returns the known id, the fetched records are of that
topic. So records wait here for such an answer. A background thread asks for all records that have
arrived meanwhile, while confirmed ones are learned.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from streamlearn.errors import SourceChangedError, SourceDeniedError, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream.records import Partition, Records

PACE_SECONDS = 0.02  # between requests, so that one request covers several batches
RETRY_SECONDS = 0.1  # after a request that found no topic or no broker


class UnverifiedRecords:
    """Records that were fetched but not confirmed; only `_run` is for another thread."""

    def __init__(self, reader: KafkaReader, known: Mapping[str, str]) -> None:
        self.size = 0  # bytes
        self._reader = reader
        self._known = known  # topic ids; "" of brokers that have none
        self._held: deque[tuple[int, Records, int]] = deque()
        self._partitions: dict[Partition, int] = {}  # how many batches of each
        self._turn = 0  # number of the last fetch
        self._wanted: set[str] = set()  # topics to ask about
        self._confirmed: dict[str, int] = {}  # up to which fetch
        self._error: Exception | None = None
        self._closed = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kafka-identity", daemon=True)
        self._thread.start()

    def set_topic_ids(self, known: Mapping[str, str]) -> None:
        """Replace the known topic ids."""
        with self._change:
            self._known = known

    def add(self, records: Records, size: int) -> None:
        """Add records that were just fetched."""
        topic = records.partition.topic
        with self._change:
            self._turn += 1
            if self._known.get(topic):
                self._wanted.add(topic)
            else:
                self._confirmed[topic] = self._turn
            self._change.notify_all()
        self._held.append((self._turn, records, size))
        self._partitions[records.partition] = self._partitions.get(records.partition, 0) + 1
        self.size += size

    def take(self, seconds: float) -> list[tuple[Records, int]]:
        """Return confirmed records and their bytes; wait this long for the first.

        `SourceChangedError` if a topic was deleted and created again.
        """
        if not self._held:
            return []
        with self._change:
            self._change.wait_for(
                lambda: self._error or any(map(self._may_go, self._held)), seconds
            )
            if self._error is not None:
                raise self._error
            gone = [one for one in self._held if self._may_go(one)]
            if len(gone) == len(self._held):
                self._held.clear()
            elif gone:
                self._held = deque(one for one in self._held if not self._may_go(one))
        for _, records, size in gone:
            self._leave(records, size)
        return [(records, size) for _, records, size in gone]

    def _may_go(self, one: tuple[int, Records, int]) -> bool:
        turn, records, _ = one
        return turn <= self._confirmed.get(records.partition.topic, 0)

    def _leave(self, records: Records, size: int) -> None:
        self.size -= size
        self._partitions[records.partition] -= 1
        if not self._partitions[records.partition]:
            del self._partitions[records.partition]

    def __bool__(self) -> bool:
        return bool(self._held)

    def partitions(self) -> Collection[Partition]:
        """Return the partitions with unconfirmed records."""
        return self._partitions.keys()

    def drop(self, partitions: Collection[Partition]) -> None:
        """Drop the records of these partitions."""
        for _, records, size in [one for one in self._held if one[1].partition in partitions]:
            self._leave(records, size)
        self._held = deque(one for one in self._held if one[1].partition not in partitions)

    def close(self) -> None:
        """Stop the thread."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    # -- in the background ------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._wanted or self._closed)
                if self._closed:
                    return
                wanted, self._wanted = self._wanted, set()
                turn = self._turn  # the answer does not confirm later fetches
            try:
                left = self._confirm(turn, wanted)
            except Exception as error:  # noqa: BLE001 -- a thread's error is the loop's
                with self._change:
                    self._error = error
                    self._change.notify_all()
                return
            with self._change:
                self._wanted |= left  # deleted, or no broker answers: `TopicWatcher` reports it
                pause = RETRY_SECONDS if left else PACE_SECONDS
                self._change.wait_for(lambda: self._closed, pause)

    def _confirm(self, turn: int, wanted: set[str]) -> set[str]:
        """Ask about these topics; return those without an answer."""
        try:
            found = self._reader.topics(sorted(wanted))
        except SourceDeniedError:
            raise
        except SourceError:
            return wanted
        with self._change:
            for name, topic in found.items():
                known = self._known.get(name, "")
                if topic.id not in {known, ""}:
                    raise topic_recreated(name, known, topic.id)
                self._confirmed[name] = turn
            self._change.notify_all()
        return wanted - found.keys()


def topic_recreated(topic: str, known: str, now: str) -> SourceChangedError:
    """Return the error for a topic that was deleted and created again."""
    return SourceChangedError(
        f"kafka: topic {topic} was deleted and created again while it was read (its id was "
        f"{known} and is now {now}), and no record of the new topic was learned; use "
        "--reset-offsets to resume with these models from the configured start"
    )
