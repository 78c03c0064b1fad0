"""Wait for a sink that is full, instead of stopping the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.errors import SinkFullError
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.stream.records import Header
    from streamlearn.stream.sinks.sink import Record


class BlockingSink(Sink):
    """Wrap a sink, and wait while it is full, unless the daemon is stopping.

    The wrapped sink must itself wait briefly before it raises `SinkFullError`.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.on_wait: Callable[[SinkFullError], None] = lambda _: None  # may raise
        self.should_stop: Callable[[], bool] = lambda: False

    @property
    def max_bytes(self) -> int | None:
        """The maximum bytes of a record."""
        return self.sink.max_bytes

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Send one record, however long it takes."""
        self.send_all([(value, key, headers)])

    def send_all(self, records: Sequence[Record]) -> None:
        """Send records, however long it takes."""
        while records:
            try:
                self.sink.send_all(records)
            except SinkFullError as full:
                self.on_wait(full)
                if self.should_stop():
                    raise
                records = records[full.taken :]
            else:
                return

    def take_over(self, identity: str) -> None:
        """Fence off earlier owners."""
        self.sink.take_over(identity)

    def flush(self, seconds: float) -> None:
        """Deliver all records sent."""
        self.sink.flush(seconds)

    def close(self) -> None:
        """Close the wrapped sink."""
        self.sink.close()
