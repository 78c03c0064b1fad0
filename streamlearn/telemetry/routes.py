"""What is served under which address, and to whom.

/metrics      for Prometheus
/healthz      alive?    /readyz   learning, or a standby that could?
/             the live page
/api/status   everything of now;  ?config=1 with the configuration
/api/series   the curves;         ?after=EVENTS&stride=S only what is new
/api/weights  the largest;        ?learner=NAME&top=50&q=TEXT    as of `time`: up to half a
              minute ago for who asks for the first time, then as of now

A token, if there is one, is shown as `Authorization: Bearer TOKEN`, or by a browser as the password
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
from streamlearn.telemetry.metrics import Exposition
from streamlearn.telemetry.server import Answer, Request, refusal

if TYPE_CHECKING:
    from streamlearn.telemetry.board import Board
    from streamlearn.telemetry.health import Health
    from streamlearn.telemetry.history import History
    from streamlearn.telemetry.recent import LastMinutes

OPEN = {"/healthz", "/readyz"}
CHALLENGE = 'Basic realm="streamlearn", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read what."""

    token: str | None = None
    metrics: bool = False  # whether /metrics asks for it too
    page: bool = True  # whether page and API are served
    local: bool = True  # whether only this machine is listened to

    def refuses(self, request: Request) -> Answer | None:
        """The answer to whom it is not for."""
        path = request.path
        if path in OPEN:
            return None
        if not self.page and path != "/metrics":
            return refusal(HTTPStatus.NOT_FOUND, "the live page is switched off: telemetry.page")
        if self.local and path != "/metrics" and not local(request.headers.get("host", "")):
            # a page of another site, whose name leads here, must not read what is for this machine
            return refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                "served to this machine alone: ask for http://127.0.0.1 or http://localhost",
            )
        guarded = self.token is not None and (self.metrics or path != "/metrics")
        if guarded and not self.knows(request.headers.get("authorization", "")):
            return refusal(HTTPStatus.UNAUTHORIZED, "a token is needed", WWW_Authenticate=CHALLENGE)
        return None

    def knows(self, shown: str) -> bool:
        """Whether this is the token, as a bearer's or as a password."""
        scheme, _, given = shown.partition(" ")
        said = given.strip().encode("latin-1", "replace")
        if scheme.lower() == "basic":
            try:
                said = base64.b64decode(said, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return self.token is not None and hmac.compare_digest(said, self.token.encode())


def local(host: str) -> bool:
    """Whether a Host header names this machine.

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
    """Answers requests from the board, the curves and the loop's health."""

    def __init__(
        self, board: Board, history: History, recent: LastMinutes, health: Health, access: Access
    ) -> None:
        self.board = board
        self.history = history
        self.recent = recent
        self.health = health
        self.access = access
        self.exposition = Exposition(board)

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        refused = self.access.refuses(request)
        if refused is not None:
            return refused
        found = {
            "/": self.page,
            "/metrics": self.metrics,
            "/healthz": self.alive,
            "/readyz": self.ready,
            "/api/status": self.status,
            "/api/series": self.series,
            "/api/weights": self.weights,
        }.get(request.path)
        if found is None:
            return refusal(HTTPStatus.NOT_FOUND, "there is nothing here; the live page is at /")
        return found(request)

    def page(self, _: Request) -> Answer:
        """The live page."""
        return Answer(page.HTML, "text/html; charset=utf-8", headers=page.HEADERS)

    def metrics(self, request: Request) -> Answer:
        """What Prometheus scrapes."""
        text, kind = self.exposition.text(request.headers.get("accept", ""))
        return Answer(text, kind)

    def alive(self, _: Request) -> Answer:
        """Whether the loop goes round."""
        alive, reason = self.health.alive(self.board.about.state)
        return told({"status": "ok" if alive else "failing", "reason": reason}, ok=alive)

    def ready(self, _: Request) -> Answer:
        """Whether it learns, or is a standby."""
        about = self.board.about
        ready, reason = self.health.ready(about, self.board.unknown)
        role = "standby" if about.state == "standby" else "owner"
        said = {"status": "ready" if ready else "not ready", "role": role, "reason": reason}
        return told(said, ok=ready)

    def status(self, request: Request) -> Answer:
        """Everything of now."""
        self.board.looked_at = time.monotonic()
        found = views.status(self.board, config="config" in request.query)
        ready, reason = self.health.ready(self.board.about, self.board.unknown)
        return told({**found, "ready": ready, "why": reason, "time": time.time()})

    def series(self, request: Request) -> Answer:
        """The curves, or what is new of them."""
        after = number(request, "after", -1)
        life = self.history.snapshot(after, number(request, "stride", 0))
        if self.board.about.state == "stopped":
            self.board.end_shown.set()  # a page asks for the curves last
        return told({**life, "recent": self.recent.since(number(request, "recent", 0))})

    def weights(self, request: Request) -> Answer:
        """The largest weights, by name."""
        self.board.weights_wanted = time.time()  # so that the next ones are of now
        learner = request.query.get("learner", "")
        top = min(max(number(request, "top", 50), 1), 1000)
        found = views.weights(self.board, learner, top, request.query.get("q", ""))
        if found is None:
            return refusal(HTTPStatus.NOT_FOUND, "there is no learner of that name")
        return told(found)


def number(request: Request, name: str, otherwise: int) -> int:
    """A whole number that was asked with; what is none counts as not given."""
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else otherwise


def told(data: dict[str, Any], *, ok: bool = True) -> Answer:
    """An answer in JSON."""
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(msgspec.json.encode(data), status=status)
