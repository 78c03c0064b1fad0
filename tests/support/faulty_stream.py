"""A stream with faults: each one that an alert detects, injected into a running daemon."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from streamlearn.errors import SinkError
from streamlearn.regret import Tracker
from streamlearn.stream import Clicks, Partition, Synthetic
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from streamlearn.stream import Records
    from streamlearn.telemetry import TelemetryServer

# the fault that each alert detects; without it the alert's expression has no data
FAULTS = {
    "StreamlearnDown": "silent",
    "StreamlearnNoProgress": "stalled",
    "StreamlearnLagGrowing": "behind",
    "StreamlearnInvalidRecords": "garbage",
    "StreamlearnLabelsRejected": "relabeled",
    "StreamlearnLossJump": "misled",
    "StreamlearnRegretAboveBound": "unproved",
    "StreamlearnNonzeroWeightsDoubled": "identifiers",
    "StreamlearnCheckpointStale": "unsaved",
}


class FaultyStream(Synthetic):
    """Mails with a hint of which ones are clicked, and with the injected faults."""

    def __init__(self, rate: float) -> None:
        super().__init__(Clicks("spam", seed=5), rate=rate, batch=500)
        self.faults: set[str] = set()
        self.since = 0.0  # start of the current faults

    def cause(self, *faults: str) -> None:
        """Inject these faults, and no others, from now on."""
        self.faults = set(faults)
        self.since = time.monotonic()

    def poll(self, seconds: float) -> list[Records]:
        """Return the next events, with their faults."""
        found = super().poll(seconds)
        if "stalled" in self.faults:
            return []
        for records in found:
            records.values = [
                self.changed(i, value)
                for i, value in zip(records.offsets, records.values, strict=True)
            ]
        return found

    def changed(self, i: int, value: bytes | None) -> bytes:
        """Change one record."""
        if "garbage" in self.faults and i % 10 == 0:
            return b"{"
        words, _, label = (value or b"").partition(b',"label":')
        clicked = label == b'"spam"}'
        hint = clicked != ("misled" in self.faults and i * 2654435761 % 4093 < 2046)
        text = b'%s,"click":%s,"hint":"h%d"}' % (words, str(clicked).lower().encode(), hint)
        if "relabeled" in self.faults and i % 50 == 1:
            text = b'{"click":"perhaps"}'
        if "identifiers" in self.faults:
            text = b'{"session":"s%d",%s' % (i, text[1:])
        return text

    def lag(self) -> dict[Partition, int | None]:
        """Return a small lag; with the fault `behind` a growing one."""
        behind = "behind" in self.faults
        waiting = 20_000 + int(10_000 * (time.monotonic() - self.since)) if behind else 10
        return dict.fromkeys(super().lag(), waiting)


class Output(Sink):
    """Accept everything; fail to flush while the stream has the fault `unsaved`."""

    max_bytes: int | None = None

    def __init__(self, stream: FaultyStream) -> None:
        self.stream = stream

    def send(self, value: bytes | None, **_: Any) -> None:
        """Discard the record."""

    def flush(self, seconds: float) -> None:
        """Fail if no checkpoint may become durable."""
        if "unsaved" in self.stream.faults:
            raise SinkError(f"not within {seconds} s")

    def close(self) -> None:
        """Do nothing."""


@contextlib.contextmanager
def silent(server: TelemetryServer) -> Iterator[None]:
    """Stop the server for a while."""
    server.stop()
    yield
    server.start()


@contextlib.contextmanager
def unproved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the regret bound by a wrong one."""
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "_bound", lambda *_: (-1e12, None))
        yield
