"""Limits of a request's head: of the first one of a connection, and of later ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamlearn.serving.http.protocol import limited

MOST, SECONDS = 100, 5.0


class Connection:
    """A protocol without a server: what it waits for, and whether it gave up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("connection_made", "data_received", "connection_lost"):
            monkeypatch.setattr(HttpToolsProtocol, name, lambda *_: None)
        for name in ("on_message_begin", "on_headers_complete"):
            monkeypatch.setattr(HttpToolsProtocol, name, lambda _: None)
        self.waits: list[Any] = []
        self.aborted = False
        kind = limited(MOST, SECONDS)
        made: Any = kind.__new__(kind)
        self.protocol = made
        self.protocol.loop = SimpleNamespace(call_later=self.call_later)
        self.protocol.transport = SimpleNamespace(abort=self.abort)
        self.protocol.connection_made(self.protocol.transport)

    def call_later(self, seconds: float, action: Any) -> Any:
        assert (seconds, action) == (SECONDS, self.abort)
        handle: Any = SimpleNamespace(cancel=lambda: self.waits.remove(handle))
        self.waits.append(handle)
        return handle

    def abort(self) -> None:
        self.aborted = True

    def request(self, *sizes: int, body: int = 0) -> None:
        """A head in pieces, of which the last one ends it; then a body."""
        self.protocol.on_message_begin()
        for size in sizes:
            assert len(self.waits) == 1
            self.protocol.data_received(b"x" * size)
        if not self.aborted:
            self.protocol.on_headers_complete()
            assert self.waits == []
            self.protocol.data_received(b"x" * body)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize(
    ("sizes", "aborted"), [((MOST,), False), ((60, 40), False), ((60, 41), True), ((101,), True)]
)
def test_each_head_has_the_same_limits(
    monkeypatch: pytest.MonkeyPatch, before: int, sizes: tuple[int, ...], *, aborted: bool
) -> None:
    one = Connection(monkeypatch)
    assert len(one.waits) == 1
    for _ in range(before):
        one.request(60, 30, body=10 * MOST)  # which has limits of its own
        assert not one.aborted
    one.request(*sizes)
    assert one.aborted == aborted


def test_nothing_is_waited_for_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Connection(monkeypatch)
    one.protocol.connection_lost(None)
    assert one.waits == []
    one.protocol.connection_lost(None)
    assert not one.aborted
