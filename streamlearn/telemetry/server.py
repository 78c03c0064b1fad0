"""A small HTTP server on a thread of its own, for a few readers who may be slow, many, or hostile.

One thread waits for all connections, of which only so many are kept: the oldest that is idle makes
room for a new one. A request is one short head without a body, an answer one piece; whoever takes
longer than the time-out for either is cut off. Nothing here can hold up the loop.
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

MOST_CONNECTIONS = 64
BACKLOG = 1024  # connections that wait to be taken
LONGEST_HEAD = 8192
SECONDS = 15.0
ALWAYS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A GET or HEAD."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case


@dataclass(frozen=True, slots=True)
class Answer:
    """What is given back."""

    body: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    headers: dict[str, str] = field(default_factory=dict)


class Malformed(ValueError):
    """Not a request that is understood."""


def parse(head: bytes) -> tuple[str, Request, bool]:
    r"""Method, request, and whether the connection is kept.

    >>> parse(b"GET /api/weights?top=5 HTTP/1.1\r\nHost: here\r\n\r\n")[1].query
    {'top': '5'}
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    pieces = first.split(" ")
    if len(pieces) != 3 or pieces[2] not in {"HTTP/1.0", "HTTP/1.1"}:
        raise Malformed("not a line of HTTP/1.1")
    method, target, version = pieces
    headers: dict[str, str] = {}
    for line in lines:
        if line:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise Malformed("not a header")
            headers[name.lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise Malformed("a request has no body")
    try:
        split = urlsplit(target)
        query = parse_qs(split.query, max_num_fields=16)
    except ValueError:
        raise Malformed("not an address") from None
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    given = {name: values[-1] for name, values in query.items()}
    return method, Request(split.path, given, headers), keep


def encode(answer: Answer, *, body: bool, keep: bool) -> bytes:
    """An answer as bytes."""
    lines = {
        **ALWAYS,
        **answer.headers,
        "Content-Type": answer.kind,
        "Content-Length": str(len(answer.body)),
        "Connection": "keep-alive" if keep else "close",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    start = f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
    return f"{start}{head}\r\n".encode("latin-1") + (answer.body if body else b"")


def refusal(status: HTTPStatus, text: str, **headers: str) -> Answer:
    """An answer that says no."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(text.encode() + b"\n", "text/plain; charset=utf-8", status, named)


class Server:
    """Serves what `answer` makes of a request, which must be quick."""

    def __init__(
        self,
        host: str,
        port: int,
        answer: Callable[[Request], Answer],
        *,
        seconds: float = SECONDS,
        connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.host = host
        self.port = port
        self.answer = answer
        self.seconds = seconds
        self.most = connections
        self._open: dict[asyncio.StreamWriter, bool] = {}  # oldest first; whether it is idle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen; OSError if the address cannot be had. `port` is then the real one."""
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
        """Close everything; may be called twice."""
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not None:
            self._thread.join(2.0)

    async def _serve(self, listening: socket.socket, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda *_: None)  # a reader's fault is no news
        server = await asyncio.start_server(
            self._connection, sock=listening, limit=LONGEST_HEAD, backlog=BACKLOG
        )
        ready.set()
        await self._stopping.wait()
        server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._make_room()
        self._open[writer] = True
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # gone, or too slow
        finally:
            self._cut(writer)

    def _make_room(self) -> None:
        """Close the oldest connection, an idle one if there is one, when there are too many."""
        if len(self._open) >= self.most:
            idle = (writer for writer, waits in self._open.items() if waits)
            self._cut(next(idle, next(iter(self._open))))

    def _cut(self, writer: asyncio.StreamWriter) -> None:
        self._open.pop(writer, None)
        writer.transport.abort()

    def _mark(self, writer: asyncio.StreamWriter, *, idle: bool) -> None:
        if writer in self._open:
            self._open[writer] = idle

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether another may follow."""
        self._mark(writer, idle=True)
        try:
            async with asyncio.timeout(self.seconds):
                head = await reader.readuntil(b"\r\n\r\n")
            self._mark(writer, idle=False)
            method, request, keep = parse(head)
        except asyncio.LimitOverrunError:
            given = refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too long a request")
            method, keep = "GET", False
        except Malformed as error:
            method, keep, given = "GET", False, refusal(HTTPStatus.BAD_REQUEST, str(error))
        else:
            given = self._answered(method, request)
        writer.write(encode(given, body=method != "HEAD", keep=keep))
        async with asyncio.timeout(self.seconds):
            if keep:
                await writer.drain()
            else:
                writer.close()
                await writer.wait_closed()
        return keep

    def _answered(self, method: str, request: Request) -> Answer:
        if method not in {"GET", "HEAD"}:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only", Allow="GET, HEAD")
        try:
            return self.answer(request)
        except Exception:  # noqa: BLE001 - the reader gets no details, the daemon goes on
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be answered")
