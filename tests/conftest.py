"""Setup for all tests."""

from __future__ import annotations

import secrets
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.broker.apache_kafka import Unavailable
from tests.support.azurite import Azurite
from tests.support.faulty_proxy import FaultyProxy
from tests.support.minio import MinIO
from tests.support.missing import skip_unless_ci

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A shell starts background jobs with SIGINT ignored. Processes that tests start would inherit that,
# and could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


Server = MinIO | Azurite


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinIO]:
    """An S3 server, which the environment names from then on."""
    yield from started(MinIO, tmp_path_factory.mktemp("minio"))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """A server of Azure Blob Storage, which the environment names from then on."""
    yield from started(Azurite, tmp_path_factory.mktemp("azurite"))


def started(kind: type[Server], directory: Path) -> Iterator[Any]:
    """Start a server, and name it in the environment until it ends."""
    try:
        server = kind(directory)
    except Unavailable as reason:
        skip_unless_ci(reason)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment(server.port).items():
            patch.setenv(name, value)
        yield server
    server.stop()


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Server:
    """The server of an object store: S3, or as the tests are parametrized."""
    found: Server = request.getfixturevalue(getattr(request, "param", "minio"))
    return found


@pytest.fixture
def bucket(server: Server) -> str:
    """A prefix that nobody has used."""
    return f"{server.root}/{secrets.token_hex(4)}"


@pytest.fixture
def proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy in front of the server, which the environment names instead."""
    with FaultyProxy(server.port) as proxy:
        proxy.environment = server.environment(proxy.server.server_port)
        for name, value in proxy.environment.items():
            monkeypatch.setenv(name, value)
        yield proxy
