"""Ray is started and connected to safely."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streamlearn.errors import FleetError
from streamlearn.fleet import cluster


def test_a_cluster_asks_for_a_token(ray: Any) -> None:
    with cluster.connected() as again:
        assert again is ray
    assert ray.is_initialized(), "a connection that existed before is kept"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) >= 32
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize(
    ("text", "line"), [("a\nb", "a"), ("\n  a \nb\n", "a"), ("", "OSError"), (" \n", "OSError")]
)
def test_the_first_line_of_an_error(text: str, line: str) -> None:
    assert cluster.first_line(OSError(text)).strip() == line


def listening(process: Path) -> set[str]:
    """The addresses, in hexadecimal, on which a process listens."""
    links = []
    for one in process.glob("fd/*"):
        with suppress(OSError):
            links.append(str(one.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in links:
                found.add(local.split(":")[0])
    return found


def test_a_cluster_that_is_started_listens_on_the_loopback_interface_alone() -> None:
    code = """
import os, sys
from streamlearn.fleet.cluster import connected
with connected(cpus=1):
    print(os.environ["RAY_AUTH_TOKEN"], flush=True)
    sys.stdin.read()
"""
    # a process of its own, because Ray reads how to listen when it is imported
    fresh = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=fresh
    ) as run:
        assert run.stdout is not None
        token = run.stdout.readline().strip()
        assert token
        own, addresses = 0, set()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if token in (process / "environ").read_bytes():
                    addresses |= listening(process)
                    own += 1
        run.communicate(b"")
    assert own >= 3  # the head, a node and its agents
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert addresses
    assert addresses <= loopback


@pytest.mark.nightly  # Ray tries for 20 s
def test_clients_without_the_token_are_refused(ray: Any) -> None:
    address = ray.get_runtime_context().gcs_address
    code = (
        "from streamlearn.fleet.cluster import connected\n"
        f"with connected({address!r}) as ray: print(ray.cluster_resources())\n"
    )
    wrong = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=wrong
    )
    assert run.returncode != 0
    assert run.stdout == ""


def test_signals_stay_with_the_process(ray: Any) -> None:  # noqa: ARG001 - it was started
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FleetError, match=r"streamlearn\[ray\]"):
        cluster.imported()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_a_wrong_address_is_named(address: str) -> None:
    with pytest.raises(FleetError, match=address):
        cluster.require_answer(address)
