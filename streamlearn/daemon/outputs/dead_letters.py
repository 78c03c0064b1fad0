"""Publish invalid records as dead letters, with their origin and the reason.

The raw bytes, key and headers are kept; metadata is added in headers that start with
`streamlearn.`. A record too large for its destination is cut, and its original size and SHA-256 are
added. Too many invalid records stop the daemon.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.invalid_record import ORPHAN, InvalidRecord
from streamlearn.daemon.process.error_context import attach_records
from streamlearn.daemon.scores import BlockSums
from streamlearn.stream.records import OWN_HEADERS, name_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.stream import Records
    from streamlearn.stream.formats.writers import Writer
    from streamlearn.stream.records import Header
    from streamlearn.stream.sinks.sink import Sink

FORMAT_HEADER = OWN_HEADERS + "format"  # of a letter that has the record's value inside
DEFAULT_MAX_BYTES = 1_000_000  # bytes of a record that a broker accepts by default
ORPHANED = InvalidRecord(0, None, ORPHAN, "orphan label: its event did not arrive in time")
HEADER_RESERVE = 4_096  # bytes reserved for metadata and the protocol


class DeadLetterPublisher:
    """Publish invalid records to a sink, if there is one."""

    def __init__(self, sink: Sink | None, epoch: int = 0, writer: Writer | None = None) -> None:
        self.sink = sink
        self.writer = writer  # None: the value is that of the record
        self.epoch = epoch
        self.round: int | None = None  # of workers; the daemon has none
        self.max_bytes = DEFAULT_MAX_BYTES if sink is None else sink.max_bytes or DEFAULT_MAX_BYTES

    def publish(self, records: Records, invalid: Sequence[InvalidRecord]) -> None:
        """Publish those of these records that are invalid."""
        if self.sink is None:
            return
        for one in invalid:
            try:
                self._publish(self.sink, records, one)
            except Exception as error:
                attach_records(error, [records.part(one.number, one.number + 1)])
                raise

    def _publish(self, sink: Sink, records: Records, invalid: InvalidRecord) -> None:
        i = invalid.number
        value = records.values[i]
        key = None if records.keys is None else records.keys[i]
        headers = [] if records.headers is None else list(records.headers[i])
        metadata = self.metadata(records, invalid)
        room = self.max_bytes - HEADER_RESERVE - len(invalid.reason.encode())
        if record_overhead(key, headers) > room // 2:
            metadata.append((OWN_HEADERS + "dropped", b"key and headers: too large"))
            key, headers = None, []
        room -= record_overhead(key, headers)
        if value is not None and len(value) > room:
            metadata.append((OWN_HEADERS + "size", b"%d" % len(value)))
            metadata.append((OWN_HEADERS + "sha256", hashlib.sha256(value).hexdigest().encode()))
            value = value[: max(room, 0)]
        if self.writer is not None:
            value = self.writer.write(letter(metadata, value))
            metadata.append((FORMAT_HEADER, self.writer.kind.lower().encode()))
        sink.send(value, key=key, headers=[*headers, *metadata])

    def metadata(self, records: Records, invalid: InvalidRecord) -> list[Header]:
        """Return the metadata headers: the origin of the record, and why it is invalid."""
        partition, i = records.partition, invalid.number
        fields: dict[str, object] = {
            "topic": partition.topic,
            "partition": partition.number,
            "offset": records.offsets[i],
            "epoch": self.epoch,
            "time": round(time.time() * 1000),
            "code": invalid.code,
            "reason": invalid.reason,
        }
        if self.round is not None:
            fields["round"] = self.round
        if records.times is not None:
            fields["record_time"] = records.times[i]
        if invalid.field is not None:
            fields["field"] = invalid.field
        encoded = [(name, str(value).encode(errors="replace")) for name, value in fields.items()]
        return [(OWN_HEADERS + name, value) for name, value in encoded]


def letter(metadata: Sequence[Header], value: bytes | None) -> dict[str, Any]:
    """Return a dead letter as one value, which the schemas in `written` describe."""
    texts = {name.removeprefix(OWN_HEADERS): (item or b"").decode() for name, item in metadata}
    found: dict[str, Any] = {name: int(texts[name]) for name in ("partition", "offset", "time")}
    found |= {name: texts[name] for name in ("topic", "code", "reason", "field") if name in texts}
    return found if value is None else found | {"value": value}


def record_overhead(key: bytes | None, headers: Sequence[Header]) -> int:
    """Return the bytes that key and headers take in a record."""
    own = sum(len(name_bytes(name)) + len(item or b"") + 16 for name, item in headers)
    return own + len(key or b"")


class InvalidRecordLimit:
    """Limit invalid records to a ratio of the last `window` records, and at least `min_count`.

    >>> limit = InvalidRecordLimit(0.5, window=100, min_count=3)
    >>> limit.add([2, 5], of=10), limit.add([0], of=10), limit.add(range(20), of=20)
    (None, None, 19)
    """

    def __init__(self, ratio: float, window: int, min_count: int) -> None:
        self.ratio = ratio
        self.window = window
        self.min_count = min_count
        self.blocks = BlockSums(2, window)

    def add(self, invalid: Sequence[int], of: int) -> int | None:
        """Add a batch of records, some invalid; return the index at which the limit is exceeded."""
        if not invalid:  # the ratio cannot have increased
            self.blocks.add(np.broadcast_to([[0.0], [1.0]], (2, of)))
            return None
        start = 0
        while start < of:
            # up to the end of a block, so that the result does not depend on the batches
            stop = min(start + self.blocks.size - self.blocks.count % self.blocks.size, of)
            marks = np.zeros((2, stop - start))
            marks[0, [i - start for i in invalid if start <= i < stop]] = 1.0
            marks[1] = 1.0
            self.blocks.add(marks)
            wrong, seen = self.blocks.total().tolist()
            if wrong >= self.min_count and wrong > self.ratio * seen:
                return stop - 1
            start = stop
        return None

    def reset(self) -> None:
        """Start over."""
        self.blocks = BlockSums(2, self.window)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return self.blocks.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.blocks.restore(state)
