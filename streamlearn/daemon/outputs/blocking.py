"""An output that is away for a while holds the daemon up; it does not end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.errors import SinkFull
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.stream.sinks.sink import Record
    from streamlearn.stream.sources.source import Header


class BlockingSink(Sink):
    """A sink that waits as long as another one is full, unless the daemon is to stop.

    That one must wait a little itself before it says so.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.on_wait: Callable[[], None] = lambda: None  # called while it is full; may raise
        self.should_stop: Callable[[], bool] = lambda: False
        self.largest: int | None = getattr(sink, "largest", None)

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Hand over one record, however long it takes."""
        self.send_all([(value, key, headers)])

    def send_all(self, records: Sequence[Record]) -> None:
        """Hand over these, however long it takes."""
        while records:
            try:
                self.sink.send_all(records)
            except SinkFull as full:
                self.on_wait()
                if self.should_stop():
                    raise
                records = records[full.taken :]
            else:
                return

    def take_over(self, identity: str) -> None:
        """Have refused what earlier owners still send."""
        self.sink.take_over(identity)

    def flush(self, seconds: float) -> None:
        """Deliver all that was handed over."""
        self.sink.flush(seconds)

    def close(self) -> None:
        """Give everything back."""
        self.sink.close()
