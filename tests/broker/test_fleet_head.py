"""A Ray cluster whose head dies: the daemon ends with its own code, and resumes on a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.process.exits import Exit
from streamlearn.fleet.cluster import SEVERAL_MACHINES
from tests.broker.daemons import fill
from tests.broker.test_workers import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic

TOKEN = "f" * 64
CLIENT = {"RAY_AUTH_TOKEN": TOKEN, "RAY_AUTH_MODE": "token", SEVERAL_MACHINES: "0"}
CODE = """
import os, sys, time
from streamlearn.fleet.cluster import connected
with connected("local", cpus=3, object_store_bytes=100 << 20) as ray:
    print(ray.get_runtime_context().gcs_address, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def cluster() -> Iterator[tuple[str, Any]]:
    """The address of a cluster of its own, and the process that started it."""
    environ = {**os.environ, **CLIENT}
    process = subprocess.Popen(
        [sys.executable, "-c", CODE], env=environ, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip(), process
    process.terminate()
    process.wait(30)
    process.stdout.close()


def head_process() -> int:
    """The process of the head of this test's cluster."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            own = TOKEN.encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if own and b"gcs_server" in command.split(b"\0")[0]:
            return int(process.name)
    raise AssertionError("there is no head")


@pytest.mark.nightly
def test_the_daemon_ends_with_its_code_when_the_head_dies(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    cluster: tuple[str, Any],
) -> None:
    topic = make_topic(2)
    fill(producer, topic, 2, 1000)
    daemons = make_any_daemons(topic, client="confluent")
    daemons.environ = CLIENT
    process = daemons.start(*SETTINGS, "--ray", cluster[0])
    daemons.wait_for(lambda: "workers learn" in daemons.log_text())
    daemons.wait_for(lambda: daemons.records() == 2000)
    os.kill(head_process(), signal.SIGKILL)
    died = time.monotonic()
    assert process.wait(50) == Exit.SOURCE, daemons.log_text()[-2000:]
    assert time.monotonic() - died < 30.0  # before Ray would end it
    assert daemons.records() == 2000
