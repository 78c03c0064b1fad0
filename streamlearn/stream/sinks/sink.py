"""The interface of sinks, where predictions and dead letters go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from streamlearn.errors import SinkFull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream.records import Header

    Record = tuple[bytes | None, bytes | None, Sequence[Header]]  # value, key and headers


class Sink(Protocol):
    """Records out. They may wait in a buffer until `flush`, which alone says that they are safe."""

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Hand over one record; waits for room, but not for ever (`SinkFull`)."""

    def send_all(self, records: Sequence[Record]) -> None:
        """Hand over these."""
        for taken, (value, key, headers) in enumerate(records):
            try:
                self.send(value, key=key, headers=headers)
            except SinkFull as full:
                full.taken = taken
                raise

    def take_over(self, identity: str) -> None:
        """Have refused what earlier owners of the same models still send, where that is possible.

        Called once by a new owner, before the first record.
        """
        del identity  # who writes to a file is not told from others

    def flush(self, seconds: float) -> None:
        """Deliver all that was handed over before; `SinkError` if not within this time.

        Once one was refused for good, every later call fails (`SinkRefused`, `SinkDenied`,
        `SinkNotFound`), so that nothing is saved past it.
        """

    def close(self) -> None:
        """Give everything back; may be called twice."""
