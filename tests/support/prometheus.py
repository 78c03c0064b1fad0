"""A real Prometheus, Debian's package, and what it says."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.broker.apache_kafka import HOST, free_port
from tests.support.missing import installed
from tests.support.running import told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def running_prometheus(directory: Path) -> Iterator[str]:
    """Run it with the configuration that is there; its address."""
    program, address = installed("prometheus"), f"{HOST}:{free_port()}"
    command = [
        program,
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(command) as process:
        try:
            yield address
        finally:
            process.terminate()


def query(address: str, what: str) -> Any:
    """What it answers; nothing while it starts."""
    try:
        return told(f"http://{address}/api/v1/{what}")["data"]
    except (OSError, ValueError, KeyError):
        return {"result": [], "groups": [], "alerts": []}


def data(address: str, expression: str) -> list[Any]:
    """The series that an expression has now."""
    found: list[Any] = query(address, f"query?query={quote(expression)}")["result"]
    return found


def firing(address: str) -> set[str]:
    """The alerts that fire."""
    alerts = query(address, "alerts")["alerts"]
    return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}
