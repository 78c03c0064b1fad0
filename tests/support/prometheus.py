"""A real Prometheus server and queries to it."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.broker.apache_kafka import HOST, free_port
from tests.support.missing import require_program
from tests.support.running import get_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def running_prometheus(directory: Path) -> Iterator[str]:
    """Run Prometheus with the configuration in a directory, and yield its address."""
    program, address = require_program("prometheus"), f"{HOST}:{free_port()}"
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
    """Return the answer to a query; an empty one while the server starts."""
    try:
        return get_json(f"http://{address}/api/v1/{what}")["data"]
    except (OSError, ValueError, KeyError):
        return {"result": [], "groups": [], "alerts": []}


def data(address: str, expression: str) -> list[Any]:
    """Return the current series of an expression."""
    found: list[Any] = query(address, f"query?query={quote(expression)}")["result"]
    return found


def firing(address: str) -> set[str]:
    """Return the names of the firing alerts."""
    alerts = query(address, "alerts")["alerts"]
    return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}
