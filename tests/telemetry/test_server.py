"""The HTTP server with hostile, slow, and many clients, and the access rules."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from streamlearn.telemetry.routes import Access
from streamlearn.telemetry.server import Request, Response, TelemetryServer
from tests.support.running import http_get

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b"x" * 4_000_000


def answer(request: Request) -> Response:
    if request.path == "/fails":
        raise RuntimeError("secret")
    return Response(BODY if request.path == "/large" else request.path.encode(), "text/plain")


@contextlib.contextmanager
def serving(**options: float) -> Iterator[TelemetryServer]:
    server = TelemetryServer("127.0.0.1", 0, answer, **options)  # type: ignore[arg-type]
    server.start()
    try:
        yield server
    finally:
        server.stop()
        assert "http" not in {thread.name for thread in threading.enumerate()}


def say(server: TelemetryServer, *pieces: bytes) -> bytes:
    """Send bytes and return everything received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), 20) as sock:
        for piece in pieces:
            sock.sendall(piece)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while more := sock.recv(65_536):
                found += more
        return found


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
        (b"GET / HTTP/1.0\r\n\r\n", 200),
        (b"POST / HTTP/1.1\r\nConnection: close\r\n\r\n", 405),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"GET http://[bad/ HTTP/1.1\r\n\r\n", 400),
        (b"GET /?" + b"&".join([b"a=1"] * 100) + b" HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /fails HTTP/1.1\r\nConnection: close\r\n\r\n", 500),
    ],
)
def test_a_response_has_the_right_status_and_no_details(request_: bytes, status: int) -> None:
    with serving() as server:
        found = say(server, request_)
        assert found.startswith(b"HTTP/1.1 %d " % status)
        assert b"secret" not in found
        assert b"nosniff" in found


def test_keep_alive_and_requests_in_pieces() -> None:
    with serving() as server:
        found = say(
            server,
            b"GET /a HT",
            b"TP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n",
            b"GET /c HTTP/1.1\r\nConnection: close\r\n\r\n",
        )
        assert found.count(b"HTTP/1.1 200 OK") == 3
        assert b"\r\n\r\n/a" in found
        assert b"\r\n\r\n/b" not in found  # HEAD
        assert found.endswith(b"/c")


def test_a_thousand_idle_connections_do_not_block_a_request() -> None:
    with serving() as server, contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
        assert http_get(f"http://127.0.0.1:{server.port}/here") == (200, b"/here")
        assert len(server._open) <= server.max_connections


def test_a_client_that_does_not_read_is_disconnected() -> None:
    with serving(seconds=0.3, connections=4) as server, contextlib.ExitStack() as stack:
        for _ in range(4):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
            slow.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert http_get(f"http://127.0.0.1:{server.port}/here") == (200, b"/here")
        waiting = threading.Event()
        while server._open:
            waiting.wait(0.02)


def test_a_client_that_does_not_finish_its_request_is_disconnected() -> None:
    with serving(seconds=0.2) as server:
        assert say(server, b"GET / HT") == b""


def test_an_address_in_use_is_an_error_at_start() -> None:
    with serving() as server, pytest.raises(OSError, match=str(errno.EADDRINUSE)):
        TelemetryServer("127.0.0.1", server.port, answer).start()


TOKEN = {"authorization": "Bearer s3cret"}
BASIC = {"authorization": "Basic YW55b25lOnMzY3JldA=="}  # anyone:s3cret
HERE = {"host": "localhost:9464"}


@pytest.mark.parametrize(
    ("path", "headers", "access", "status"),
    [
        ("/", HERE, Access(), None),
        ("/", {}, Access(), 421),
        ("/", {"host": "evil.example"}, Access(), 421),
        ("/", {"host": "127.0.0.1.evil.example:80"}, Access(), 421),
        ("/", {"host": "learner.example"}, Access(local=False), None),
        ("/metrics", {"host": "evil.example"}, Access(), None),
        ("/api/status", HERE, Access("s3cret"), 401),
        ("/api/status", {**HERE, **TOKEN}, Access("s3cret"), None),
        ("/api/status", {**HERE, **BASIC}, Access("s3cret"), None),
        ("/api/status", {**HERE, "authorization": "Basic ???"}, Access("s3cret"), 401),
        ("/api/status", {**HERE, "authorization": "Bearer s3cre"}, Access("s3cret"), 401),
        ("/api/status", {**HERE, "authorization": "Digest s3cret"}, Access("s3cret"), 401),
        ("/metrics", HERE, Access("s3cret"), None),
        ("/metrics", HERE, Access("s3cret", metrics=True), 401),
        ("/metrics", TOKEN, Access("s3cret", metrics=True), None),
        ("/healthz", {}, Access("s3cret", metrics=True), None),
        ("/", HERE, Access(page=False), 404),
        ("/api/series", HERE, Access(page=False), 404),
        ("/metrics", HERE, Access(page=False), None),
    ],
)
def test_access_rules(
    path: str, headers: dict[str, str], access: Access, status: int | None
) -> None:
    found = access.denial(Request(path, {}, headers))
    assert (None if found is None else found.status) == status
