"""The interface of sinks, where predictions and dead letters go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from streamlearn.errors import SinkFullError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream.records import Header

    Record = tuple[bytes | None, bytes | None, Sequence[Header]]  # value, key and headers


class Sink(Protocol):
    """A place to write records to. They are buffered, and delivered only after `flush`."""

    @property
    def max_bytes(self) -> int | None:
        """The maximum bytes of a record with its key and headers; None: unlimited."""
        return None

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Send one record; wait for space in the buffer, but not forever (`SinkFullError`)."""

    def send_all(self, records: Sequence[Record]) -> None:
        """Send records."""
        for taken, (value, key, headers) in enumerate(records):
            try:
                self.send(value, key=key, headers=headers)
            except SinkFullError as full:
                full.taken = taken
                raise

    def take_over(self, identity: str) -> None:
        """Fence earlier owners of the same models, if the sink can.

        A new owner calls this once, before the first record.
        """
        del identity  # files do not know their writers

    def flush(self, seconds: float) -> None:
        """Deliver all records that were sent; `SinkError` if this takes longer.

        After a record was rejected permanently, every later call fails (`SinkRefusedError`,
        `SinkDeniedError`, `SinkNotFoundError`), so that no checkpoint passes it.
        """

    def close(self) -> None:
        """Release all resources; may be called twice."""
