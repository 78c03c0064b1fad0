"""Start Ray on this machine, or connect to a cluster.

Ray runs whatever code its clients send, so it asks them for a token (`RAY_AUTH_MODE`, unless set
otherwise). A cluster that is started here gets a random one, which only its processes know, and
listens on the loopback interface alone. Ray's dashboard and usage statistics stay off.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamlearn.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO = "auto"  # the cluster of RAY_ADDRESS, or one that is started on this machine
LOCAL = "local"  # what Ray calls the latter
OBJECT_STORE_BYTES = 256 << 20  # of a cluster that is started on this machine
CONNECT_SECONDS = 5.0
# Ray listens on the loopback interface where clusters of several machines are not enabled, which is
# its default except on Linux.
SEVERAL_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def is_installed() -> bool:
    """Return whether Ray can be imported."""
    return importlib.util.find_spec("ray") is not None


@contextmanager
def connected(
    address: str = AUTO, *, cpus: int | None = None, object_store_bytes: int = OBJECT_STORE_BYTES
) -> Iterator[Any]:
    """Yield the module `ray`, connected; a connection that existed before is used and kept.

    Parameters
    ----------
    address
        `"auto"`, or the address of a cluster, HOST:PORT.
    cpus, object_store_bytes
        Resources of a cluster that is started here; `cpus=None`: the machine's cores.
    """
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS", LOCAL)
    ray = imported(address)
    if ray.is_initialized():
        yield ray
        return
    connect(ray, address, cpus, object_store_bytes)
    try:
        yield ray
    finally:
        with kept_signals():
            ray.shutdown()


def imported(address: str = LOCAL) -> Any:
    """Import Ray for use of this cluster; FleetError if it is not installed."""
    # Ray reads these when it is imported.
    if address == LOCAL:
        os.environ.setdefault(SEVERAL_MACHINES, "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray  # noqa: PLC0415 - optional, takes half a second
    except ImportError as error:
        raise FleetError(f"needs Ray ({error}); run pip install 'streamlearn[ray]'") from error
    return ray


def connect(ray: Any, address: str, cpus: int | None, object_store_bytes: int) -> None:
    """Connect to the cluster, or start one."""
    resources: dict[str, Any] = {}
    problem = f"Ray at {address} does not answer"
    remedy = "; check the address, and RAY_AUTH_TOKEN"
    if address == LOCAL:
        problem, remedy = "Ray does not start on this machine", ""
        resources = {
            "num_cpus": cpus,
            "object_store_memory": object_store_bytes,
            "include_dashboard": False,
        }
        if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    else:
        require_answer(address)
    with kept_signals():
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False, **resources)
        except Exception as error:  # ray.init raises many kinds
            raise FleetError(f"{problem}: {first_line(error)}{remedy}") from error


def require_answer(address: str) -> None:
    """Raise FleetError if nothing listens at HOST:PORT: Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except ValueError:
        raise FleetError(f"Ray at {address}: expected HOST:PORT") from None
    except OSError as error:
        raise FleetError(f"Ray at {address} does not answer: {error.strerror or error}") from error


@contextmanager
def kept_signals() -> Iterator[None]:
    """Keep this process's handlers of signals, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
