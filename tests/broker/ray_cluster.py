"""A Ray cluster in a process of its own, whose head may die."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from streamlearn.fleet.cluster import SEVERAL_MACHINES

CODE = """
import time
from streamlearn.fleet.cluster import connected
with connected("local", cpus=5, object_store_bytes=100 << 20) as ray:
    print(ray.get_runtime_context().gcs_address, flush=True)
    time.sleep(3600)
"""


def ray_processes(name: bytes, token: str) -> list[int]:
    """The processes of a cluster whose command begins with this name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")[0]
            own = token.encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if own and Path(command.decode()).name.startswith(name.decode()):
            found.append(int(process.name))
    return found


class RayCluster:
    """A cluster, which is started anew after the death of its head."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(32)
        self.environ = {"RAY_AUTH_TOKEN": self.token, "RAY_AUTH_MODE": "token"}
        self.environ[SEVERAL_MACHINES] = "0"
        self.start()

    def start(self) -> None:
        """Start it; the address is a new one."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            env={**os.environ, **self.environ},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def kill_head(self) -> None:
        """Kill the head."""
        [head] = ray_processes(b"gcs_server", self.token)
        os.kill(head, signal.SIGKILL)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
