"""Around all routes: access, the limit of requests in work, counts, and errors as answers."""

from __future__ import annotations

import hmac
import logging
import time
from typing import TYPE_CHECKING

import msgspec

from streamlearn.serving.http.metrics import COUNTS, ROUTES
from streamlearn.serving.http.predicting import Refusal, RequestProblem
from streamlearn.serving.http.reading import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import ASGIApp

    from streamlearn.serving.http.metrics import RequestCounts
    from streamlearn.serving.http.options import Options
    from streamlearn.serving.http.reading import Message, Receive, Scope, Send

LOG = logging.getLogger("streamlearn.serve")
OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
PLACES = {
    "/v1/predict": "predict",
    "/metrics": "metrics",
    "/": "page",
    "/openapi.json": "page",
    **dict.fromkeys(OPEN_PATHS, "health"),
}
JSON = (b"content-type", b"application/json")
SAFE = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
REFUSED, IN_FLIGHT = COUNTS.index("refused_requests"), COUNTS.index("in_flight")


def route_of(path: str) -> int:
    """Return the number of a path's route, for the counts."""
    name = PLACES.get(path)
    if name is None:
        name = "infer" if path.endswith("/infer") else "metadata" if path[:3] == "/v2" else "other"
    return ROUTES.index(name)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, options: Options, counts: RequestCounts) -> None:
        self.app = app
        self.counts = counts
        self.limit = options.settings.max_in_flight
        self.token = None if options.token is None else options.token.encode()
        self.in_flight = 0
        self.draining = False
        self.on_drain: list[Callable[[], None]] = []

    def drain(self) -> None:
        """Let each answer close its connection from now on."""
        self.draining = True
        for tell in self.on_drain:
            tell()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, path = time.perf_counter(), scope["path"]
        answer = Watched(send, closing=self.draining)
        waits = path not in OPEN_PATHS
        if waits:
            self.in_flight += 1
            self.counts.add(IN_FLIGHT, 1.0)
        try:
            await self.handle(scope, receive, answer, waits=waits)
        finally:
            if waits:
                self.in_flight -= 1
                self.counts.add(IN_FLIGHT, -1.0)
            seconds = time.perf_counter() - start
            self.counts.answered(route_of(path), answer.status or 500, seconds)

    async def handle(self, scope: Scope, receive: Receive, answer: Watched, *, waits: bool) -> None:
        """Handle a request, and answer an error."""
        try:
            if waits:
                self.check(scope)
            await self.app(scope, receive, answer)
        except RequestError as error:
            await refuse(answer, error)
        except Exception:  # it is answered already
            LOG.exception("%s failed", scope["path"])

    def check(self, scope: Scope) -> None:
        """Raise RequestError if the request is not to be answered."""
        if self.token is not None and not self.accepts(scope["headers"]):
            raise RequestError(401, "token required", www_authenticate="Bearer")
        if self.in_flight > self.limit:
            self.counts.add(REFUSED, 1.0)
            raise RequestError(503, "too many requests in work; retry", retry_after="1")

    def accepts(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request has the token, in a time that tells nothing about it."""
        given = b""
        for name, value in headers:
            if name == b"authorization":
                given = value
        scheme, _, token = given.partition(b" ")
        matches = hmac.compare_digest(token.strip(), self.token or b"")
        return matches and scheme.lower() == b"bearer"


class Watched:
    """Send an answer with the headers that all have, and remember its status."""

    def __init__(self, send: Send, *, closing: bool) -> None:
        self.send = send
        self.closing = closing
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), *SAFE]
            if self.closing:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        await self.send(message)


async def refuse(send: Send, error: RequestError) -> None:
    """Answer with an error."""
    headers = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in error.headers.items()
    ]
    body = msgspec.json.encode(Refusal(RequestProblem(error.reason)))
    await respond(send, body, status=error.status, headers=headers)


async def respond(
    send: Send,
    body: bytes,
    *,
    status: int = 200,
    headers: Iterable[tuple[bytes, bytes]] = (JSON,),
) -> None:
    """Send an answer in one piece."""
    given = list(headers)
    if not any(name == b"content-type" for name, _ in given):
        given.append(JSON)
    given.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})
