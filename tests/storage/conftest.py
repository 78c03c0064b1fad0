"""All tests of stores are run on all servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Server


@pytest.fixture(scope="module", params=["minio", "azurite"])
def server(request: pytest.FixtureRequest) -> Server:
    """The server of an object store."""
    found: Server = request.getfixturevalue(request.param)
    return found
