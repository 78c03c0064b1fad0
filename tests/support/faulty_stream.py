"""A stream that may fall ill: each fault that an alert is for, caused on a daemon that runs."""

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
    from streamlearn.telemetry import Server

# what each alert is for, and a test causes; in health its expression has no data
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


class Ill(Synthetic):
    """Mails with a hint that tells which are clicked: sound, but for its faults."""

    def __init__(self, rate: float) -> None:
        super().__init__(Clicks("spam", seed=5), rate=rate, batch=500)
        self.faults: set[str] = set()
        self.since = 0.0  # when it fell behind

    def cause(self, *faults: str) -> None:
        """From now on these, and no others."""
        self.faults = set(faults)
        self.since = time.monotonic()

    def poll(self, seconds: float) -> list[Records]:
        """The next events, with what is wrong with them."""
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
        """One record."""
        if "garbage" in self.faults and i % 10 == 0:
            return b"{"
        words, _, label = (value or b"").partition(b',"label":')
        clicked = label == b'"spam"}'
        told = clicked != ("misled" in self.faults and i * 2654435761 % 4093 < 2046)
        text = b'%s,"click":%s,"hint":"h%d"}' % (words, str(clicked).lower().encode(), told)
        if "relabeled" in self.faults and i % 50 == 1:
            text = b'{"click":"perhaps"}'
        if "identifiers" in self.faults:
            text = b'{"session":"s%d",%s' % (i, text[1:])
        return text

    def lag(self) -> dict[Partition, int | None]:
        """A few; when it has fallen behind, more and more."""
        behind = "behind" in self.faults
        waiting = 20_000 + int(10_000 * (time.monotonic() - self.since)) if behind else 10
        return dict.fromkeys(super().lag(), waiting)


class Output(Sink):
    """Takes everything; while its stream is `unsaved` it refuses to be flushed."""

    largest: int | None = None

    def __init__(self, stream: Ill) -> None:
        self.stream = stream

    def send(self, value: bytes | None, **_: Any) -> None:
        """Forget it."""

    def flush(self, seconds: float) -> None:
        """Without this no checkpoint is durable."""
        if "unsaved" in self.stream.faults:
            raise SinkError(f"not within {seconds} s")

    def close(self) -> None:
        """Nothing to give back."""


@contextlib.contextmanager
def silent(server: Server) -> Iterator[None]:
    """A daemon that does not answer for a while."""
    server.stop()
    yield
    server.start()


@contextlib.contextmanager
def unproved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A theorem that claims more than is true."""
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "_bound", lambda _: (-1e12, None))
        yield
