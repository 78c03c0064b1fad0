"""A proxy in front of an object store that delays, refuses, cuts and loses requests as told."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Action = Literal["pass", "500", "503", "cut", "lose", "expired"] | float  # a delay in seconds

EXPIRED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"""
ANSWERS: dict[Action, tuple[int, bytes]] = {
    "500": (500, b""),
    "503": (503, b""),
    "expired": (403, EXPIRED),
}


@dataclass(frozen=True)
class Request:
    """A request as a rule sees it."""

    method: str
    path: str
    access_key: str
    conditional: bool

    @property
    def upload(self) -> bool:
        """Whether it writes a part of a checkpoint, or a whole one."""
        return self.method == "PUT" and ".checkpoint" in self.path


def passed(_: Request) -> Action:
    """Disturb nothing."""
    return "pass"


class FaultyProxy:
    """Forward requests to a port; `rule` decides what happens to each."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.rule: Callable[[Request], Action] = passed
        self.ignored_condition = ""  # a header that a store without conditional writes ignores
        self.requests: list[Request] = []
        self.environment: dict[str, str] = {}  # of clients that go through it
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Handle the requests of one connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, proxy: FaultyProxy, *given: Any) -> None:
        self.proxy = proxy
        super().__init__(*given)

    def handle_one_request(self) -> None:
        """Handle a request of a client, which may be killed."""
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Handle a request as the rule says."""
        _, _, login = self.headers.get("authorization", "").partition("Credential=")
        conditional = "if-match" in self.headers or "if-none-match" in self.headers
        request = Request(self.command, self.path, login.partition("/")[0], conditional)
        self.proxy.requests.append(request)
        action = self.proxy.rule(request)
        length = int(self.headers.get("content-length") or 0)
        if action == "cut":  # in the middle of the upload
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        if action in ANSWERS:
            self.respond(*ANSWERS[action])
            return
        if isinstance(action, float):
            time.sleep(action)
        status, headers, data = self.forward(body)
        if action == "lose":
            self.close_connection = True
        elif status in {409, 412} and self.proxy.ignored_condition in self.headers:
            self.respond(200, b"", {"ETag": '"written"'})
        else:
            self.respond(status, data, headers)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - names of the base

    def respond(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send the request to the server, and return its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=30)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            dropped = {"connection", "transfer-encoding"}
            if self.command != "HEAD":
                dropped.add("content-length")
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in dropped}
            return answer.status, headers, answer.read()
        finally:
            connection.close()

    def log_message(self, *_: object) -> None:
        """Log nothing."""
