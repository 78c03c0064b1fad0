"""With checkpoints in an object store, whatever fails, every record is learned exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.faults import STEPS
from streamlearn.estimators import checkpoints
from tests.daemon.test_kills import (
    KILLED,
    Daemons,
    alive,
    assert_learned_once,
    look_until,
    newer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlearn.estimators.checkpoints import CheckpointId
    from tests.conftest import Server
    from tests.support.faulty_proxy import Action, FaultyProxy, Request
    from tests.support.minio import MinIO

LENGTH = 600


# S3 at every change, Azure each night
everywhere = pytest.mark.parametrize(
    "server", ["minio", pytest.param("azurite", marks=pytest.mark.nightly)], indirect=True
)


@pytest.fixture(scope="module")
def daemons(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    """Start daemons that know the server from their environment."""
    assert server.environment(server.port).items() <= os.environ.items()
    found = Daemons(tmp_path_factory.mktemp("log") / "stderr")
    yield found
    found.close()


@everywhere
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(step: str, tmp_path: Path, bucket: str, daemons: Daemons) -> None:
    assert daemons.run(tmp_path, 0, f"{step}:1:kill", location=bucket) in KILLED
    assert daemons.run(tmp_path, 9, location=bucket) == Exit.OK
    assert_learned_once(tmp_path, location=bucket)


@everywhere
@pytest.mark.timeout(180)
def test_killed_at_random(tmp_path: Path, bucket: str, daemons: Daemons) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)  # noqa: T201 - shown if it fails
    draw = random.Random(seed)
    length, kills = 3000, 0
    for run in range(12):
        before = checkpoints.all_ids(bucket)[:1]
        pid = daemons.start(tmp_path, run, length=length, location=bucket)
        wanted = draw.randrange(1, 3)  # how many checkpoints it may write
        deadline = time.monotonic() + 60.0
        while newer(bucket, before) < wanted and alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(draw.random() * 0.02)
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
        kills += daemons.finished(pid) in KILLED
    assert kills
    assert daemons.run(tmp_path, 99, length=length, location=bucket) == Exit.OK
    assert_learned_once(tmp_path, length, location=bucket)


@everywhere
def test_frozen_owner_is_replaced_and_exits_as_fenced(
    tmp_path: Path, bucket: str, daemons: Daemons
) -> None:
    length = 2000
    owner = daemons.start(tmp_path, 1, length=length, batch="8", location=bucket)
    seen: list[tuple[CheckpointId, int]] = []
    look_until(bucket, seen, lambda: len(seen) > 2)
    os.kill(owner, signal.SIGSTOP)
    standby = daemons.start(tmp_path, 2, length=length, batch="8", location=bucket)
    look_until(bucket, seen, lambda: seen[-1][0].epoch == 2)
    os.kill(owner, signal.SIGCONT)
    look_until(bucket, seen, lambda: not alive(owner))
    assert daemons.finished(owner) == Exit.FENCED
    assert daemons.finished(standby) == Exit.OK
    assert seen == sorted(seen)
    assert [records for _, records in seen] == sorted(records for _, records in seen)
    assert_learned_once(tmp_path, length, location=bucket)


def every(
    period: int, action: Action, of: Callable[[Request], bool]
) -> Callable[[Request], Action]:
    """Return a rule that disturbs every so many of some requests."""
    counts = iter(range(1_000_000))

    def rule(request: Request) -> Action:
        return action if of(request) and next(counts) % period == 0 else "pass"

    return rule


RULES: dict[str, Callable[[], Callable[[Request], Action]]] = {
    "slow": lambda: lambda _: 0.05,
    "very slow uploads": lambda: every(2, 1.0, lambda request: request.upload),
    "500": lambda: every(3, "500", lambda _: True),
    "503": lambda: every(3, "503", lambda request: not request.conditional),
    "cut uploads": lambda: every(2, "cut", lambda request: request.upload),
    "lost answers": lambda: every(3, "lose", lambda _: True),
}


@everywhere
@pytest.mark.parametrize("fault", RULES)
def test_faulty_network(
    fault: str, tmp_path: Path, bucket: str, daemons: Daemons, proxy: FaultyProxy
) -> None:
    through = {"location": bucket, **proxy.environment}
    pid = daemons.start(tmp_path, 1, length=LENGTH, **through)
    until(lambda: bool(checkpoints.epochs(bucket)))  # without a fault, it may refuse to start
    proxy.rule = RULES[fault]()
    if fault != "slow":
        until(lambda: len(checkpoints.all_ids(bucket)) > 1 or not alive(pid))
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
        assert daemons.finished(pid) in {*KILLED, Exit.OK}
        proxy.rule = lambda _: "pass"
        pid = daemons.start(tmp_path, 2, length=LENGTH, **through)
        until(lambda: len(checkpoints.epochs(bucket)) > 1)
        proxy.rule = RULES[fault]()
    until(lambda: not alive(pid))
    assert daemons.finished(pid) in {Exit.OK, Exit.UNSAVED}
    proxy.rule = lambda _: "pass"
    assert daemons.run(tmp_path, 3, length=LENGTH, **through) == Exit.OK
    assert_learned_once(tmp_path, LENGTH, location=bucket)


@pytest.mark.parametrize("fault", ["500", "expired"])
def test_outage_longer_than_the_lease(
    fault: Action, tmp_path: Path, bucket: str, daemons: Daemons, proxy: FaultyProxy
) -> None:
    length = 2000
    through = {"location": bucket, **proxy.environment}
    pid = daemons.start(tmp_path, 1, length=length, batch="8", **through)
    until(lambda: len(checkpoints.all_ids(bucket)) > 1)
    proxy.rule = lambda _: fault
    until(lambda: sizes_are_constant(tmp_path / "predictions.jsonl"))
    assert alive(pid)
    proxy.rule = lambda _: "pass"
    assert daemons.finished(pid) == Exit.OK
    assert checkpoints.epochs(bucket) == [1]
    assert_learned_once(tmp_path, length, location=bucket)


@everywhere
def test_stop_during_an_outage_loses_nothing(
    tmp_path: Path, bucket: str, daemons: Daemons, proxy: FaultyProxy
) -> None:
    length = 2000
    through = {"location": bucket, **proxy.environment}
    pid = daemons.start(tmp_path, 1, length=length, batch="8", **through)
    until(lambda: len(checkpoints.all_ids(bucket)) > 1)
    proxy.rule = lambda _: "503"
    until(lambda: sizes_are_constant(tmp_path / "predictions.jsonl"))
    os.kill(pid, signal.SIGTERM)
    assert daemons.finished(pid) == Exit.UNSAVED
    proxy.rule = lambda _: "pass"
    assert daemons.run(tmp_path, 2, length=length, **through) == Exit.OK
    assert_learned_once(tmp_path, length, location=bucket)


class ContainerCredentials:
    """The endpoint from which containers get credentials that expire every second."""

    def __init__(self, minio: MinIO) -> None:
        self.given: dict[str, float] = {}  # until when, by access key
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                expires = time.time() + 1.0
                found = minio.temporary_credentials()
                outer.given[found["AccessKeyId"]] = expires
                stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires + 1.0))
                body = json.dumps({**found, "Expiration": stamp}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def rule(self, request: Request) -> Action:
        """Refuse what is signed with credentials that have expired."""
        expires = self.given.get(request.access_key)
        return "expired" if expires is not None and expires < time.time() else "pass"


def test_credentials_that_expire(
    tmp_path: Path, bucket: str, daemons: Daemons, proxy: FaultyProxy, minio: MinIO
) -> None:
    length = 2000
    credentials = ContainerCredentials(minio)
    token = tmp_path / "token"
    token.write_text("not checked")
    proxy.rule = credentials.rule
    pid = daemons.start(
        tmp_path,
        1,
        length=length,
        batch="8",
        location=bucket,
        **{**proxy.environment, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://127.0.0.1:{credentials.server.server_port}/",
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token),
    )
    until(lambda: len(credentials.given) > 2 or not alive(pid))
    assert daemons.finished(pid) == Exit.OK
    credentials.server.shutdown()
    credentials.server.server_close()
    assert_learned_once(tmp_path, length, location=bucket)


def sizes_are_constant(path: Path) -> bool:
    """Tell whether nothing is published for a second."""
    before = path.stat().st_size
    time.sleep(1.0)
    return path.stat().st_size == before


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
