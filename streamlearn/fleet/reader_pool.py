"""Several readers as one `KafkaReader`: the daemon's source does not know that they are others.

The pool assigns partitions, and knows after which record of each it continues: after the last one
that it has returned. A reader that dies, or does not answer within the deadline (one that is
frozen is not seen by Ray), is replaced, and its partitions are read again from there. Whatever an
earlier reader of a partition still sends has an older generation and is dropped. So each record is
returned once, whatever happens to readers.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamlearn.errors import FleetError, SourceUnreachableError
from streamlearn.fleet.actor_pool import START_SECONDS, ActorPool
from streamlearn.fleet.cluster import AUTO
from streamlearn.fleet.remote_reader import Fetched, RemoteReader
from streamlearn.kafka.reader import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamlearn.daemon.process.log import Log
    from streamlearn.fleet.instructions import Instructions
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream import Partition, Records

DEPTH = 2  # requests that wait at each reader, so that it never waits for the daemon
WAIT_SECONDS = 0.2  # for which a reader waits for records


@dataclass(eq=False)
class PooledReader:
    """One reader, as the pool sees it."""

    number: int
    actor: Any
    partitions: set[Partition] = field(default_factory=set)
    pending: deque[Any] = field(default_factory=deque)  # what was asked, in order
    since: float = 0.0  # when the first of them became the first
    started: bool = False


class ReaderPool(ActorPool):
    """`KafkaReader` over several processes; see `ActorPool` for the other parameters.

    Parameters
    ----------
    deadline_seconds
        The time after which a reader that does not answer is replaced.
    """

    noun = "reader"

    def __init__(
        self,
        local: KafkaReader,
        told: Instructions,
        count: int,
        *,
        address: str = AUTO,
        deadline_seconds: float = 10.0,
        log: Log,
    ) -> None:
        self._deadline = deadline_seconds
        self._ends: dict[Partition, int] = {}  # positions after what poll has returned
        self._generations: Counter[Partition] = Counter()
        self._marks: dict[Partition, int] = {}
        self._readers: list[PooledReader] = []
        self._running = False  # whether all have started once
        super().__init__(local, RemoteReader, told, count, address, log)
        try:
            self._readers = [self._start(number) for number in range(count)]
            self._wait_for_start()
        except BaseException:
            self.close()
            raise
        self._running = True
        log.info("readers started", readers=count)

    # -- what the readers do ----------------------------------------------------------------------

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Also read these partitions: each by the reader with the fewest."""
        self.local.assign({})  # a client needs it to commit
        self._ends.update(positions)
        chosen: dict[PooledReader, dict[Partition, int]] = {}
        for partition, position in sorted(positions.items()):
            least = min(self._readers, key=lambda one: (len(one.partitions), one.number))
            least.partitions.add(partition)
            chosen.setdefault(least, {})[partition] = position
        for reader, own in chosen.items():
            self._assign(reader, own)

    def _assign(self, reader: PooledReader, positions: Mapping[Partition, int]) -> None:
        self._generations.update(positions.keys())
        told = {where: (at, self._generations[where]) for where, at in positions.items()}
        self._ask(reader, reader.actor.assign.remote(told))

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        for reader, own in self._by_reader(partitions).items():
            reader.partitions.difference_update(own)
            self._ask(reader, reader.actor.drop.remote(own))
            for partition in own:
                del self._ends[partition]
                self._marks.pop(partition, None)

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions until `resume`."""
        for reader, own in self._by_reader(partitions).items():
            self._ask(reader, reader.actor.pause.remote(own))

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""
        for reader, own in self._by_reader(partitions).items():
            self._ask(reader, reader.actor.resume.remote(own))

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record as of the last fetch."""
        return self._marks.get(partition)

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return the next records of all readers that have some."""
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised
        self.check_head()
        for reader in self._readers:
            while reader.partitions and len(reader.pending) < DEPTH:
                self._ask(reader, reader.actor.fetch.remote(WAIT_SECONDS, most))
        heads = [reader.pending[0] for reader in self._readers if reader.pending]
        if not heads:
            time.sleep(seconds)
            return []
        self.ray.wait(heads, num_returns=1, timeout=seconds, fetch_local=True)
        records = [one for reader in self._readers for one in self._collect(reader)]
        if self.raised is not None and not records:
            return self.poll(seconds, most)
        return records

    def close(self) -> None:
        """Stop the readers, and Ray if it was started here."""
        readers, self._readers = self._readers, []
        self.close_all(reader.actor for reader in readers)

    def _by_reader(self, partitions: Iterable[Partition]) -> dict[PooledReader, list[Partition]]:
        found: dict[PooledReader, list[Partition]] = {}
        wanted = set(partitions)
        for reader in self._readers:
            if own := sorted(reader.partitions & wanted):
                found[reader] = own
        return found

    # -- the readers ------------------------------------------------------------------------------

    def _start(self, number: int) -> PooledReader:
        actor, starting = self.new_actor()
        reader = PooledReader(number, actor)
        self._ask(reader, starting)
        return reader

    def _wait_for_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while starting := [one for one in self._readers if not one.started]:
            heads = [reader.pending[0] for reader in starting]
            self.ray.wait(heads, num_returns=1, timeout=deadline - time.monotonic())
            for reader in starting:
                self._collect(reader)
            if self.raised is not None:
                raise self.raised

    def _ask(self, reader: PooledReader, request: Any) -> None:
        if not reader.pending:
            reader.since = time.monotonic()
        reader.pending.append(request)

    def _collect(self, reader: PooledReader) -> list[Records]:
        """Return the records of all requests that a reader has answered."""
        found: list[Records] = []
        pending = list(reader.pending)
        done = (
            set(self.ray.wait(pending, num_returns=len(pending), timeout=0)[0]) if pending else {}
        )
        while reader.pending and reader.pending[0] in done:
            request = reader.pending.popleft()
            reader.since = time.monotonic()
            try:
                answer = self.ray.get(request)
            except self.ray.exceptions.RayError as error:
                self._replace(reader, str(error).strip().splitlines()[-1])
                break
            if not reader.started and self._is_cut_off(answer):
                self._start_again(reader)
                break
            reader.started = True
            if isinstance(answer, Fetched):
                found += self._accepted(answer)
        self._check_deadline(reader)
        return found

    def _accepted(self, fetched: Fetched) -> list[Records]:
        """Return the records that follow what was returned; note marks and errors."""
        found: list[Records] = []
        for batch in fetched.batches:
            where = batch.partition
            if where in self._ends and batch.generation == self._generations[where]:
                self._ends[where] = batch.end
                found.append(batch.records())
        self._marks.update((w, at) for w, at in fetched.marks.items() if w in self._ends)
        error = fetched.error
        if isinstance(error, OutOfRangeError) and (
            error.partition not in self._ends
            or fetched.generation != self._generations[error.partition]
        ):
            error = None  # of an earlier assignment
        self.raised = self.raised or error
        return found

    def _check_deadline(self, reader: PooledReader) -> None:
        if not reader.pending:
            return
        silent = time.monotonic() - reader.since
        if silent > (self._deadline if reader.started else START_SECONDS):
            if not reader.started and not reader.partitions:
                self.raised = self.not_started(reader.number, silent)
                return
            self._replace(reader, f"no answer for {silent:.1f} s")

    def _replace(self, reader: PooledReader, reason: str) -> None:
        """Replace a reader by a new one, which continues where this one's records end."""
        self.kill(reader.actor)
        try:
            self.count_replacement(reader.number, reason)
        except FleetError as error:
            self.raised = error
            return
        self._renew(reader)

    def _is_cut_off(self, answer: Any) -> bool:
        """Whether a reader has failed to start because no broker answers it now."""
        error = answer.error if isinstance(answer, Fetched) else None
        return self._running and isinstance(error, SourceUnreachableError)

    def _start_again(self, reader: PooledReader) -> None:
        """Start a reader again, in an outage."""
        self.log.rate_limited("unreachable", "warning", "reader waits for brokers")
        self.kill(reader.actor)
        self._renew(reader)

    def _renew(self, reader: PooledReader) -> None:
        fresh = self._start(reader.number)
        fresh.partitions = reader.partitions
        self._readers[reader.number] = fresh
        if fresh.partitions:
            self._assign(fresh, {where: self._ends[where] for where in fresh.partitions})
