"""uvicorn's protocol with limits on a request's head: its size, and the time that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio


class LimitedProtocol(HttpToolsProtocol):
    """Abort connections whose next request has a head that is too long, or too slow.

    The time of the first head begins with the connection, that of a later one with its first byte.
    """

    max_head_bytes: ClassVar[int]
    head_seconds: ClassVar[float]
    in_head = True
    head_bytes = 0
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self.timer = self.loop.call_later(self.head_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head; those of its body may come with the last of them."""
        before = self.head_bytes
        super().data_received(data)
        if self.in_head and self.head_bytes == before:
            self.head_bytes += len(data)
            if self.head_bytes > self.max_head_bytes:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin to wait for a later head."""
        super().on_message_begin()
        self.in_head, self.head_bytes = True, 0
        if self.timer is None:
            self.timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def on_headers_complete(self) -> None:
        """End the wait."""
        self.in_head = False
        self.stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.stop_timer()
        super().connection_lost(exc)

    def stop_timer(self) -> None:
        """Stop waiting for the head."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def limited(max_head_bytes: int, head_seconds: float) -> type[LimitedProtocol]:
    """Return the protocol with these limits."""
    limits = {"max_head_bytes": max_head_bytes, "head_seconds": head_seconds}
    return type("LimitedProtocol", (LimitedProtocol,), limits)
