"""A daemon with telemetry, and clients of its HTTP server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.log import Log
from tests.support.streams import ShuffledSource, make_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from streamlearn.daemon.loop import Loop
    from streamlearn.stream import Records

HOSTILE = "<script>document.title='hostile'</script><img src=x onerror=alert(1)>"


class Endless(ShuffledSource):
    """A stream that never ends, with hostile records."""

    def ended(self) -> bool:
        return False

    def poll(self, seconds: float) -> list[Records]:
        found = super().poll(seconds)
        for records in found:
            records.values = [
                value if i % 50 else self.hostile(i)
                for i, value in zip(records.offsets, records.values, strict=True)
            ]
        threading.Event().wait(0.01)
        return found

    @staticmethod
    def hostile(i: int) -> bytes:
        if i % 100:
            return json.dumps({HOSTILE: [1], "click": True}).encode()
        return json.dumps({HOSTILE: 9.0, "click": True}).encode()


class Silent(ShuffledSource):
    """A stream without any records yet."""

    def __init__(self) -> None:
        super().__init__(1, 1000)

    def poll(self, seconds: float) -> list[Records]:
        threading.Event().wait(min(seconds, 0.01))
        return []


def settings(text: str = "", telemetry: str = "", names: str = "default,sparse") -> config.Config:
    """A configuration for the daemon of `make_loop`."""
    learners = "".join(f'[[learner]]\nname = "{name}"\n' for name in names.split(","))
    source = '[source]\nkind = "synthetic"\n'
    return config.parse(f"{source}{learners}[telemetry]\nport = 0\n{telemetry}\n{text}")


def make_watched_loop(
    directory: Path | None, source: Any, given: config.Config | None = None, **policy: Any
) -> tuple[Loop, TelemetryCollector]:
    """Build a daemon and its telemetry, not yet running."""
    log = Log("json", "error")
    loop = make_loop(directory, source, log=log, **policy)
    watching = TelemetryCollector(settings() if given is None else given, log)
    watching.patience = 0.0  # no page waits for the end
    loop.pipeline.observers += [RegretTrackers(log, 1_000_000, 0, 0.5), watching]
    return loop, watching


@contextlib.contextmanager
def running(
    directory: Path | None = None,
    source: Any = None,
    given: config.Config | None = None,
    **policy: Any,
) -> Iterator[tuple[Loop, TelemetryCollector, str]]:
    """Run a daemon on a thread; yield it, its telemetry and its address."""
    source = Endless(3, 1_000_000) if source is None else source
    loop, watching = make_watched_loop(directory, source, given, until=None, **policy)
    up = threading.Event()
    start = watching.on_start

    def started(*facts: Any) -> None:
        start(*facts)
        up.set()

    setattr(watching, "on_start", started)  # noqa: B010 - a method of this one object
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        assert up.wait(20.0)
        yield loop, watching, f"http://127.0.0.1:{watching.server.port}"
    finally:
        loop.stop_requested.set()
        thread.join(20.0)
        assert not thread.is_alive()


def http_get(address: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Send a request; return the status and the body."""
    try:
        asked = urllib.request.Request(address, headers=dict(headers or {}))  # noqa: S310 - ours
        with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - ours
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def get_json(address: str) -> Any:
    """Send a request; return the JSON of the response, whatever its status."""
    return json.loads(http_get(address)[1])


def wait_until(condition: Any, seconds: float = 20.0) -> Any:
    """Wait until a condition holds, and return its value."""
    waiting = threading.Event()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        waiting.wait(0.02)
    raise AssertionError("timed out")
