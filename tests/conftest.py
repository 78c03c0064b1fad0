"""Setup for all tests."""

from __future__ import annotations

import secrets
import signal
from typing import TYPE_CHECKING

import pytest

from tests.broker.apache_kafka import Unavailable
from tests.support.faulty_proxy import FaultyProxy
from tests.support.minio import BUCKET, PASSWORD, USER, MinIO
from tests.support.missing import skip_unless_ci

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shell starts background jobs with SIGINT ignored. Processes that tests start would inherit that,
# and could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinIO]:
    """An S3 server, which the environment names from then on."""
    try:
        server = MinIO(tmp_path_factory.mktemp("minio"))
    except Unavailable as reason:
        skip_unless_ci(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", USER)
        patch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
        patch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        patch.setenv("AWS_REGION", "us-east-1")
        yield server
    server.stop()


@pytest.fixture
def bucket(minio: MinIO) -> str:  # noqa: ARG001 - it must run
    """A prefix that nobody has used."""
    return f"s3://{BUCKET}/{secrets.token_hex(4)}"


@pytest.fixture
def proxy(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy in front of the S3 server, which the environment names instead."""
    with FaultyProxy(minio.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy
