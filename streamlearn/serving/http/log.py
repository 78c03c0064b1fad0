"""The log of served predictions, and all that it guarantees.

A process has one writer, a thread. It takes the records that requests have added, writes them to
the topic, and waits until the brokers have stored them; what is added meanwhile is the next batch.

- `ack = "before"`: `add` returns once the records are stored, so an answer that was given is in the
  log, whatever is killed afterwards.
- `ack = "after"`: `add` returns immediately. If the process is killed, records that are not stored
  are lost; the counts, which outlive the process, say how many at most.
- A record is stored at least once. It is repeated if the brokers do not confirm it, or if a client
  repeats a request that was refused; the daemon's join keeps the first of an id.
- While the brokers are unreachable, records wait in a buffer of bounded size, in order. Once it is
  full, or an answer has waited for too long, requests are refused with 503, or served without being
  logged and counted, as configured. What waits is written when the brokers are back.
- At a shutdown, what waits is written, within the time that the shutdown has.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SinkFencedError,
    SinkFullError,
    SinkNotFoundError,
    SinkRefusedError,
    SourceError,
)
from streamlearn.serving.http.metrics import COUNTS
from streamlearn.serving.http.reading import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.kafka.sink import KafkaSink
    from streamlearn.serving.http.metrics import RequestCounts
    from streamlearn.serving.http.options import LogOptions
    from streamlearn.stream.sinks.sink import Record

LOG = logging.getLogger("streamlearn.serve")
PERMANENT = (SinkDeniedError, SinkFencedError, SinkNotFoundError, SinkRefusedError)
GATHER_SECONDS = 0.02  # for which answered events gather (ack = "after")
FLUSH_SECONDS = 1.0  # after which an unconfirmed batch is reported, and waited for again
RETRY_SECONDS = 0.5
MIN_TIMER_SECONDS = 0.01
REPORT_SECONDS = 30.0  # between two reports of the same outage
RECORD_BYTES = 512  # of memory that a record takes beside its data
ACCEPTED, STORED = COUNTS.index("log_accepted"), COUNTS.index("log_stored")
UNLOGGED, REFUSED = COUNTS.index("unlogged_events"), COUNTS.index("log_refused_requests")


@dataclass(slots=True, eq=False)
class PendingRecords:
    """The records of a request."""

    records: Sequence[Record]
    size: int
    stored: asyncio.Future[bool] | None  # who waits for it


class ImpressionLog:
    """The log of a process; all methods are called in its event loop."""

    def __init__(self, options: LogOptions, counts: RequestCounts) -> None:
        self.settings = options.settings
        self.counts = counts
        self.waiting = 0  # bytes that are not stored
        self._answers: deque[tuple[float, asyncio.Future[bool]]] = deque()  # that wait, in order
        self._entries: SimpleQueue[PendingRecords | None] = SimpleQueue()
        self._writer = LogWriter(options, self._entries, self._stored)

    def start(self) -> None:
        """Start the writer."""
        self._writer.start(asyncio.get_running_loop())

    async def add(self, records: Sequence[Record]) -> None:
        """Log records, as `ack` says; raise RequestError if their request must be refused."""
        sizes = [bytes_of(one) for one in records]
        size, max_bytes = sum(sizes), self._writer.max_bytes
        if max_bytes is not None and max(sizes) - RECORD_BYTES > max_bytes:
            raise RequestError(413, f"an event is larger than the log takes ({max_bytes} bytes)")
        if self.waiting and self.waiting + size > self.settings.buffer_bytes:
            self._full(len(records))
            return
        entry = PendingRecords(
            records, size, self._answer() if self.settings.ack == "before" else None
        )
        self.waiting += size
        self.counts.add(ACCEPTED, len(records))
        self._entries.put(entry)
        if entry.stored is not None and not await entry.stored:
            self._full(len(records))

    def _answer(self) -> asyncio.Future[bool]:
        """Return a future that is true once an entry is stored, and false if that takes long."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._answers.append((loop.time() + self.settings.wait_seconds, answer))
        if len(self._answers) == 1:
            self._check_times()
        return answer

    def _check_times(self) -> None:
        """End waits that are too long; one timer for all is cheaper than one for each."""
        loop, answers = asyncio.get_running_loop(), self._answers
        while answers and (answers[0][1].done() or answers[0][0] <= loop.time()):
            answer = answers.popleft()[1]
            if not answer.done():
                answer.set_result(False)
        if answers:
            loop.call_at(max(answers[0][0], loop.time() + MIN_TIMER_SECONDS), self._check_times)

    def _full(self, events: int) -> None:
        """Refuse a request, or let it be served although its events are not stored."""
        if self.settings.on_full == "refuse":
            self.counts.add(REFUSED, 1.0)
            raise RequestError(503, "predictions cannot be logged now; retry", retry_after="1")
        self.counts.add(UNLOGGED, events)

    def _stored(self, batch: Sequence[PendingRecords]) -> None:
        """Count what the writer has stored, and wake who waits for it."""
        for entry in batch:
            self.waiting -= entry.size
            self.counts.add(STORED, len(entry.records))
            if entry.stored is not None and not entry.stored.done():
                entry.stored.set_result(True)

    async def close(self, seconds: float) -> None:
        """Write what waits, within this time."""
        self._writer.deadline = time.monotonic() + seconds
        self._entries.put(None)
        await asyncio.to_thread(self._writer.thread.join, seconds + FLUSH_SECONDS)
        await asyncio.sleep(0)  # what was stored last is counted
        if self.waiting:
            LOG.error("the log could not be written: %d bytes are lost", self.waiting)


class LogWriter:
    """The thread that writes batches, one after the other."""

    def __init__(
        self,
        options: LogOptions,
        entries: SimpleQueue[PendingRecords | None],
        stored: Callable[[Sequence[PendingRecords]], None],
    ) -> None:
        self._loop: asyncio.AbstractEventLoop
        self.settings = options.settings
        self.connect = options.connect
        self.entries = entries
        self.stored = stored
        self.max_bytes: int | None = None  # bytes of a record; None: not known yet
        self.deadline: float | None = None  # of the shutdown
        self.thread = threading.Thread(target=self._run, name="impressions", daemon=True)
        self._sink: KafkaSink | None = None
        self._closing = False
        self._reported = -REPORT_SECONDS

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread."""
        self._loop = loop
        self.thread.start()

    def _run(self) -> None:
        self._connect()
        while batch := self._take():
            if self._write(batch):
                self._loop.call_soon_threadsafe(self.stored, batch)
        if self._sink is not None:
            self._sink.close()

    def _take(self) -> list[PendingRecords]:
        """Wait for entries and take all there are; none after the last."""
        if self._closing or (first := self.entries.get()) is None:
            return []
        batch = [first]
        if self.settings.ack == "after":
            time.sleep(GATHER_SECONDS)
        while True:
            try:
                entry = self.entries.get_nowait()
            except Empty:
                return batch
            if entry is None:
                self._closing = True
                return batch
            batch.append(entry)

    def _write(self, batch: Sequence[PendingRecords]) -> bool:
        """Write a batch until it is stored; return False if a shutdown ends this."""
        records = [record for entry in batch for record in entry.records]
        fitting, sent = records, 0  # how many the sink has taken; it repeats them itself
        while not self._late():
            sink = self._sink
            if sink is None:
                self._connect()
                continue
            try:
                if not sent:
                    fitting = [one for one in records if self._fits(one)]
                if sent < len(fitting):
                    sink.send_all(fitting[sent:])
                    sent = len(fitting)
                sink.flush(FLUSH_SECONDS)
            except SinkFullError as full:
                sent += full.taken
            except PERMANENT as error:  # of this sink; a new one may do better
                self._report(error)
                self._sink, sent = None, 0
                sink.close()
                time.sleep(RETRY_SECONDS)
            except SinkError as error:
                self._report(error)
            else:
                return True
        return False

    def _connect(self) -> None:
        """Connect, or wait a moment."""
        try:
            self._sink = self.connect()
        except (SinkError, SourceError) as error:
            self._report(error)
            time.sleep(RETRY_SECONDS)
        else:
            self.max_bytes = self._sink.max_bytes

    def _fits(self, record: Record) -> bool:
        """Return whether the topic takes a record, which may be older than the connection."""
        return self.max_bytes is None or bytes_of(record) - RECORD_BYTES <= self.max_bytes

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _report(self, error: Exception) -> None:
        """Log why nothing is written, but not at each try."""
        if time.monotonic() - self._reported >= REPORT_SECONDS:
            self._reported = time.monotonic()
            LOG.warning("the log waits: %s", error)


def bytes_of(record: Record) -> int:
    """Return the bytes that a record takes in memory."""
    value, key, headers = record
    data = len(value or b"") + len(key or b"")
    return RECORD_BYTES + data + sum(len(name) + len(item or b"") + 10 for name, item in headers)
