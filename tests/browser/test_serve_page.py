"""The server's page for trying a prediction, in a real browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import streamlearn as sl
from streamlearn.serving import Version, directory
from tests.serving.conftest import model, running
from tests.support.browser import Browser
from tests.support.missing import require_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "<script>document.title='hostile'</script><img src=x onerror=alert(1)>"
FILL = "document.querySelector('#event').value = {}; document.querySelector('#send').click()"
SHOWN = "return document.querySelector('#result').hidden ? '' : document.querySelector('{}').{}"
STATUS = "return document.querySelector('#status').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    for program in ("chromium", "chromedriver"):
        require_program(program)
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def test_try_a_prediction(browser: Browser, tmp_path: Path) -> None:
    name = directory.SnapshotFile(1, 400, "default").name
    sl.serving.save(model(), tmp_path / name, "default", version=Version(1, 400))
    with running(str(tmp_path)) as (server, _):
        browser.open(f"{server.url}/")
        browser.until("return document.querySelector('#learner').value", lambda v: v == "default")
        event = {"user": "u1", "age": 3.0, HOSTILE: HOSTILE}
        browser.run(FILL.format(json.dumps(json.dumps(event))))
        assert browser.until(SHOWN.format("#label", "textContent")) == "true"
        assert "version 1-400" in browser.run(SHOWN.format("#detail", "textContent"))
        assert HOSTILE in browser.run(SHOWN.format("#reasons", "textContent"))
        assert browser.run("return document.title") != "hostile"
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.console() == []
        browser.run(FILL.format(json.dumps("{")))
        assert "JSON" in browser.until(STATUS)
