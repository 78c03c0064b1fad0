"""A server in a process of its own, and a model for it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import streamlearn as sl
from streamlearn.serving import Version, directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 60.0


def model(seed: int = 0) -> sl.FTRLClassifier:
    """A model of two classes whose label depends on `user`."""
    found = sl.FTRLClassifier()
    for i in range(400):
        event = {"user": f"u{(i + seed) % 7}", "age": float(i % 5), "place": {"city": f"c{i % 3}"}}
        found.learn_one(event, i % 7 < 3)
    return found


def publish(path: Path, found: Any, version: int, learner: str = "default") -> None:
    """Write a snapshot as a daemon does."""
    path.mkdir(exist_ok=True)
    name = directory.SnapshotFile(1, version, learner).name
    fields = {"label": "clicked", "id": "id"}
    sl.serving.save(found, path / name, learner, version=Version(1, version), fields=fields)


class Server:
    """A running server."""

    def __init__(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "streamlearn", "serve", *arguments, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        match = re.search(r"url=(https?://[\d.]+:\d+)", line)
        assert match is not None, line + self.process.stderr.read()
        self.url = match[1]

    def wait_until_ready(self, client: httpx.Client) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(httpx.TransportError):
                if client.get(f"{self.url}/v2/health/ready").status_code == 200:
                    return
            time.sleep(0.05)
        raise TimeoutError

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[tuple[Server, httpx.Client]]:
    """Run a server, with a client of it."""
    server = Server(list(arguments))
    with httpx.Client(base_url=server.url, verify=False, timeout=30.0) as client:  # noqa: S501 - of a test
        try:
            server.wait_until_ready(client)
            yield server, client
        finally:
            server.process.kill()
            server.process.wait()
            if server.process.stderr is not None:
                server.process.stderr.close()


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with snapshots of two learners."""
    path = tmp_path_factory.mktemp("served") / "snapshots"
    publish(path, model(), 400)
    several = sl.LinearClassifier(sl.rules.DualAveraging())
    for i in range(90):
        several.learn_one({"age": float(i % 3)}, "abc"[i % 3])
    publish(path, several, 90, "several")
    return path


@pytest.fixture(scope="module")
def client(snapshots: Path) -> Iterator[httpx.Client]:
    """A client of a server of these snapshots."""
    with running(str(snapshots), "--learner", "default") as (_, found):
        yield found
