"""The paths that are served, and who may access them.

/metrics      metrics for Prometheus
/healthz      liveness;           /readyz   readiness: learning, or able to take over
/             the live page
/api/status   current values;     ?config=1 with the configuration
/api/series   curves;             ?after=EVENTS&stride=S only new points
/api/weights  largest weights;    ?learner=NAME&top=50&q=TEXT    as of `time`: up to half a
              minute old at the first request, then current

A token, if configured, is passed as `Authorization: Bearer TOKEN`, or by a browser as the password
of any user.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.telemetry import page, views
from streamlearn.telemetry.metrics import BoardCollector, Exposition
from streamlearn.telemetry.server import Request, Response, error_response

if TYPE_CHECKING:
    from streamlearn.telemetry.board import Board
    from streamlearn.telemetry.health import Health
    from streamlearn.telemetry.history import History
    from streamlearn.telemetry.recent import LastMinutes

PUBLIC_PATHS = {"/healthz", "/readyz"}
CHALLENGE = 'Basic realm="streamlearn", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Access:
    """The access rules."""

    token: str | None = None
    metrics: bool = False  # whether /metrics requires the token too
    page: bool = True  # whether page and API are served
    local: bool = True  # whether the server listens only on this machine

    def denial(self, request: Request) -> Response | None:
        """Return the error response if the request is denied, or None."""
        path = request.path
        if path in PUBLIC_PATHS:
            return None
        if not self.page and path != "/metrics":
            return error_response(
                HTTPStatus.NOT_FOUND, "the live page is disabled (telemetry.page)"
            )
        if self.local and path != "/metrics" and not local(request.headers.get("host", "")):
            # DNS rebinding: a page of another site must not read data of this machine
            return error_response(
                HTTPStatus.MISDIRECTED_REQUEST,
                "available on this machine only; use http://127.0.0.1 or http://localhost",
            )
        guarded = self.token is not None and (self.metrics or path != "/metrics")
        if guarded and not self.accepts(request.headers.get("authorization", "")):
            return error_response(
                HTTPStatus.UNAUTHORIZED, "token required", WWW_Authenticate=CHALLENGE
            )
        return None

    def accepts(self, authorization: str) -> bool:
        """Return whether the header has the token, as a bearer token or as a password."""
        scheme, _, credentials = authorization.partition(" ")
        token = credentials.strip().encode("latin-1", "replace")
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return self.token is not None and hmac.compare_digest(token, self.token.encode())


def local(host: str) -> bool:
    """Return whether a Host header names this machine.

    >>> local("127.0.0.1:9464"), local("[::1]:9464"), local("localhost"), local("evil.example")
    (True, True, True, False)
    """
    name = host[: host.rfind("]") + 1].strip("[]") if "]" in host else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Routes:
    """Responds to requests from the board, the curves and the loop's health."""

    def __init__(
        self, board: Board, history: History, recent: LastMinutes, health: Health, access: Access
    ) -> None:
        self.board = board
        self.history = history
        self.recent = recent
        self.health = health
        self.access = access
        self.exposition = Exposition(BoardCollector(board))

    def answer(self, request: Request) -> Response:
        """Respond to a request."""
        denial = self.access.denial(request)
        if denial is not None:
            return denial
        handler = {
            "/": self.page,
            "/metrics": self.metrics,
            "/healthz": self.alive,
            "/readyz": self.ready,
            "/api/status": self.status,
            "/api/series": self.series,
            "/api/weights": self.weights,
        }.get(request.path)
        if handler is None:
            return error_response(HTTPStatus.NOT_FOUND, "not found; the live page is at /")
        return handler(request)

    def page(self, _: Request) -> Response:
        """Return the live page."""
        return Response(page.HTML, "text/html; charset=utf-8", headers=page.HEADERS)

    def metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        text, kind = self.exposition.text(request.headers.get("accept", ""))
        return Response(text, kind)

    def alive(self, _: Request) -> Response:
        """Return the liveness."""
        alive, reason = self.health.alive(self.board.about.state)
        return json_response({"status": "ok" if alive else "failing", "reason": reason}, ok=alive)

    def ready(self, _: Request) -> Response:
        """Return the readiness."""
        about = self.board.about
        ready, reason = self.health.ready(about, self.board.unknown)
        role = "standby" if about.state == "standby" else "owner"
        status = "ready" if ready else "not ready"
        return json_response({"status": status, "role": role, "reason": reason}, ok=ready)

    def status(self, request: Request) -> Response:
        """Return the current values."""
        self.board.looked_at = time.monotonic()
        found = views.status(self.board, config="config" in request.query)
        ready, reason = self.health.ready(self.board.about, self.board.unknown)
        return json_response({**found, "ready": ready, "why": reason, "time": time.time()})

    def series(self, request: Request) -> Response:
        """Return the curves, or only new points."""
        after = number(request, "after", -1)
        life = self.history.snapshot(after, number(request, "stride", 0))
        if self.board.about.state == "stopped":
            self.board.end_shown.set()  # the page requests the curves last
        return json_response({**life, "recent": self.recent.since(number(request, "recent", 0))})

    def weights(self, request: Request) -> Response:
        """Return the largest weights, by name."""
        self.board.weights_wanted = time.time()  # the next response is then current
        learner = request.query.get("learner", "")
        top = min(max(number(request, "top", 50), 1), 1000)
        found = views.weights(self.board, learner, top, request.query.get("q", ""))
        if found is None:
            return error_response(HTTPStatus.NOT_FOUND, "no learner has this name")
        return json_response(found)


def number(request: Request, name: str, otherwise: int) -> int:
    """Return an integer of the query; anything else counts as not given."""
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else otherwise


def json_response(data: dict[str, Any], *, ok: bool = True) -> Response:
    """Build a JSON response."""
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Response(msgspec.json.encode(data), status=status)
