"""One Ray cluster for all tests of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.fleet.cluster import connected

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Ray, started on this machine."""
    with connected("local", cpus=4, object_store_bytes=200 << 20) as module:
        yield module
