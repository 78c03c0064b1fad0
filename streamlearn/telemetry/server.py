"""A small HTTP server on its own thread, robust against slow, many, or hostile clients.

One thread serves all connections. Their number is limited: the oldest idle one is closed for a new
one. A request is a short head without a body, a response is sent in one piece; a client that
exceeds the timeout for either is disconnected. Nothing here can block the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CONNECTIONS = 64
BACKLOG = 1024  # pending connections
MAX_HEAD_BYTES = 8192
TIMEOUT_SECONDS = 15.0
DEFAULT_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A GET or HEAD request."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response."""

    body: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    headers: dict[str, str] = field(default_factory=dict)


class MalformedRequestError(ValueError):
    """The request is not valid HTTP, or not supported."""


def parse(head: bytes) -> tuple[str, Request, bool]:
    r"""Parse a request head; return the method, the request, and whether to keep the connection.

    >>> parse(b"GET /api/weights?top=5 HTTP/1.1\r\nHost: here\r\n\r\n")[1].query
    {'top': '5'}
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    pieces = first.split(" ")
    if len(pieces) != 3 or pieces[2] not in {"HTTP/1.0", "HTTP/1.1"}:
        raise MalformedRequestError("invalid request line")
    method, target, version = pieces
    headers: dict[str, str] = {}
    for line in lines:
        if line:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise MalformedRequestError("invalid header")
            headers[name.lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise MalformedRequestError("request bodies are not supported")
    try:
        split = urlsplit(target)
        query = parse_qs(split.query, max_num_fields=16)
    except ValueError:
        raise MalformedRequestError("invalid target") from None
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    last = {name: values[-1] for name, values in query.items()}
    return method, Request(split.path, last, headers), keep


def encode(answer: Response, *, body: bool, keep: bool) -> bytes:
    """Encode a response."""
    lines = {
        **DEFAULT_HEADERS,
        **answer.headers,
        "Content-Type": answer.kind,
        "Content-Length": str(len(answer.body)),
        "Connection": "keep-alive" if keep else "close",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    start = f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
    return f"{start}{head}\r\n".encode("latin-1") + (answer.body if body else b"")


def error_response(status: HTTPStatus, text: str, **headers: str) -> Response:
    """Build an error response with a plain text."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(text.encode() + b"\n", "text/plain; charset=utf-8", status, named)


class TelemetryServer:
    """Serves the responses of `answer`, which must be fast."""

    def __init__(
        self,
        host: str,
        port: int,
        answer: Callable[[Request], Response],
        *,
        seconds: float = TIMEOUT_SECONDS,
        connections: int = MAX_CONNECTIONS,
    ) -> None:
        self.host = host
        self.port = port
        self.answer = answer
        self.seconds = seconds
        self.max_connections = connections
        self._open: dict[asyncio.StreamWriter, bool] = {}  # oldest first; value: idle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen, and set `port` to the actual one; OSError if the address is not available."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, self.port), family=family, backlog=BACKLOG)
        self.port = listening.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listening, ready)), name="http", daemon=True
        )
        self._thread.start()
        ready.wait(self.seconds)

    def stop(self) -> None:
        """Close everything; can be called twice."""
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # already stopped
                self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not None:
            self._thread.join(2.0)

    async def _serve(self, listening: socket.socket, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda *_: None)  # errors of clients are not logged
        server = await asyncio.start_server(
            self._connection, sock=listening, limit=MAX_HEAD_BYTES, backlog=BACKLOG
        )
        ready.set()
        await self._stopping.wait()
        server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._evict_connection()
        self._open[writer] = True
        try:
            while await self._handle_request(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # disconnected, or too slow
        finally:
            self._close(writer)

    def _evict_connection(self) -> None:
        """At the limit, close the oldest idle connection, or the oldest if none is idle."""
        if len(self._open) >= self.max_connections:
            idle = (writer for writer, waits in self._open.items() if waits)
            self._close(next(idle, next(iter(self._open))))

    def _close(self, writer: asyncio.StreamWriter) -> None:
        self._open.pop(writer, None)
        writer.transport.abort()

    def _mark(self, writer: asyncio.StreamWriter, *, idle: bool) -> None:
        if writer in self._open:
            self._open[writer] = idle

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Handle one request; return whether to keep the connection."""
        self._mark(writer, idle=True)
        try:
            async with asyncio.timeout(self.seconds):
                head = await reader.readuntil(b"\r\n\r\n")
            self._mark(writer, idle=False)
            method, request, keep = parse(head)
        except asyncio.LimitOverrunError:
            response = error_response(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "request too long"
            )
            method, keep = "GET", False
        except MalformedRequestError as error:
            method, keep, response = (
                "GET",
                False,
                error_response(HTTPStatus.BAD_REQUEST, str(error)),
            )
        else:
            response = self._respond(method, request)
        writer.write(encode(response, body=method != "HEAD", keep=keep))
        async with asyncio.timeout(self.seconds):
            if keep:
                await writer.drain()
            else:
                writer.close()
                await writer.wait_closed()
        return keep

    def _respond(self, method: str, request: Request) -> Response:
        if method not in {"GET", "HEAD"}:
            return error_response(
                HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only", Allow="GET, HEAD"
            )
        try:
            return self.answer(request)
        except Exception:  # noqa: BLE001 - no details to the client; the daemon continues
            return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")
