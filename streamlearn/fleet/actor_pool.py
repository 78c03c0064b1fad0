"""Actors on Ray that answer within a deadline, or are replaced; part of a `KafkaReader`.

What asks for topics and offsets is answered by a reader in this process.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from streamlearn.errors import FleetError
from streamlearn.fleet.cluster import connected, first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlearn.daemon.process.log import Log
    from streamlearn.fleet.instructions import Instructions
    from streamlearn.kafka.reader import Cluster, KafkaReader, Topic
    from streamlearn.stream import Partition

START_SECONDS = 60.0  # for which an actor may start
REPLACED, REPLACED_SECONDS = 5, 60.0  # more replacements of each in this time end the daemon
HEAD_EVERY, HEAD_SECONDS = 1.0, 5.0  # Ray itself ends the process after a minute without its head


class ActorPool:
    """Actors of one kind.

    Parameters
    ----------
    local
        A reader in this process, for questions about topics and offsets.
    kind
        The class of the actors.
    told
        What each is told at its start.
    count
        How many there are.
    address
        Where Ray is; see `cluster.connected`.
    """

    noun = "process"

    def __init__(
        self,
        local: KafkaReader,
        kind: type[Any],
        told: Instructions,
        count: int,
        address: str,
        log: Log,
    ) -> None:
        self.local = local
        self.log = log
        self.count = count
        self.raised: Exception | None = None  # by the next poll, after the records before it
        self.closing = ExitStack()
        self.replaced = 0  # since the start
        self._replaced: deque[float] = deque()
        self._head_checked = self._head_answered = time.monotonic()
        try:
            self.ray = self.closing.enter_context(connected(address, cpus=count))
            self._told = self.put(told)
            remote = self.ray.remote(num_cpus=1, max_concurrency=1, scheduling_strategy="SPREAD")
            self._kind = remote(kind)
        except BaseException:
            self.close_all([])
            raise

    # -- what the local reader answers ------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all topics that this client may describe."""
        return self.local.names()

    def cluster(self, topics: Sequence[str]) -> Cluster:
        """Describe the cluster and these topics."""
        return self.local.cluster(topics)

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Describe those of these topics that exist."""
        return self.local.topics(names)

    def first(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the oldest offsets."""
        return self.local.first(partitions)

    def last(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offsets after the newest readable record."""
        return self.local.last(partitions)

    def since(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int | None]:
        """Return the first offsets at or after a time."""
        return self.local.since(partitions, moment)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit the positions for lag tools."""
        self.local.commit(positions)

    # -- the actors -------------------------------------------------------------------------------

    def new_actor(self) -> tuple[Any, Any]:
        """Return a new actor, and the call that starts it."""
        actor = self._kind.remote()
        return actor, actor.start.remote(self._told)

    def put(self, value: Any) -> Any:
        """Store a value for the actors; Ray writes to its disk what memory cannot hold."""
        try:
            return self.ray.put(value)
        except self.ray.exceptions.RayError as error:
            raise FleetError(
                f"Ray's object store is full ({first_line(error)}); give Ray more memory or disk"
            ) from error

    def kill(self, actor: Any) -> None:
        """End an actor; a frozen one ends when it continues."""
        with suppress(Exception):
            self.ray.kill(actor)

    def count_replacement(self, number: int, reason: str) -> None:
        """Log that an actor is replaced; FleetError if that happens too often."""
        event = self.noun + " replaced"
        self.log.warning(event, **{self.noun: number}, reason=reason)
        now = time.monotonic()
        self.replaced += 1
        self._replaced.append(now)
        while self._replaced[0] < now - REPLACED_SECONDS:
            self._replaced.popleft()
        if len(self._replaced) > REPLACED * self.count:
            raise FleetError(
                f"{len(self._replaced)} {self.noun}s were replaced within "
                f"{REPLACED_SECONDS:.0f} s; the last one: {reason}"
            )

    def not_started(self, number: int, seconds: float) -> FleetError:
        """Return the error for an actor that does not start."""
        cpus = self.ray.cluster_resources().get("CPU", 0)
        return FleetError(
            f"Ray has not started {self.noun} {number} within {seconds:.0f} s: the cluster has "
            f"{cpus:.0f} CPUs, and each {self.noun} takes one"
        )

    def check_head(self) -> None:
        """Raise FleetError if the head of the cluster is gone: Ray would end this process."""
        now = time.monotonic()
        if now - self._head_checked < HEAD_EVERY:
            return
        self._head_checked = now
        if answers(self.ray.get_runtime_context().gcs_address):
            self._head_answered = now
        elif now - self._head_answered > HEAD_SECONDS:
            raise FleetError(
                "the head of the Ray cluster is gone; start a cluster, and then this daemon again: "
                "it resumes from its checkpoint"
            )

    def close_all(self, actors: Iterable[Any]) -> None:
        """End the actors, and Ray if it was started here."""
        for actor in actors:
            self.kill(actor)
        self.closing.close()
        self.local.close()


def answers(address: str) -> bool:
    """Return whether somebody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), HEAD_EVERY).close()
    except OSError:
        return False
    return True
