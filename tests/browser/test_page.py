"""The live page in a real browser: it loads, its curves move, and no text becomes HTML.

Pictures of it, light, dark and as on a phone, are kept where STREAMLEARN_SCREENSHOTS says;
.ci/run keeps them in build/screenshots, to be looked at.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.driver import Browser
from tests.missing import installed
from tests.telemetry.running import HOSTILE, running, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "STREAMLEARN_SCREENSHOTS"  # a directory to keep them in
LENGTH = "return document.querySelector('#c-loss path.line')?.getAttribute('d').length ?? 0"
NAMES = "return [...document.querySelectorAll('#weights .label')].map((e) => e.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    for program in ("chromium", "chromedriver"):
        installed(program)
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(given=settings(telemetry="show_events = true")) as (_, _, found):
        yield found


@pytest.mark.parametrize("name", ["light", "dark", "phone"])
def test_the_page(name: str, browser: Browser, address: str, tmp_path: Path) -> None:
    browser.prefer("dark" if name == "dark" else "light")
    browser.resize(*((390, 844) if name == "phone" else (1280, 900)))
    browser.open(f"{address}/")
    # it loads, and its curves move
    before = browser.until(LENGTH, lambda n: n > 20)
    browser.until(LENGTH, lambda n: n != before)
    assert browser.run("return document.querySelector('#state-text').textContent") == "learning"
    # no part of it is wider than the window
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    dark = browser.run("return document.documentElement.classList.contains('dark')")
    assert dark == (name == "dark")
    # search
    browser.until(NAMES, lambda names: len(names) > 50)
    browser.type("#search", "user=u1")
    found = browser.until(NAMES, lambda names: names and all("user=u1" in one for one in names))
    assert len(found) <= 11
    # names and events are hostile, and only ever text
    browser.run("document.querySelector('#search').value = ''")
    browser.type("#search", "<script")
    browser.until(NAMES, lambda names: names == [HOSTILE])
    browser.until("return document.querySelectorAll('#bad code').length > 0")
    assert HOSTILE[:20] in browser.run("return document.querySelector('#bad').textContent")
    assert browser.run("return document.title") == "streamlearn"
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.run("return document.images.length") == 0
    # a learner can be hidden, and the curve read with the keyboard
    browser.run("document.querySelector('#table button').click()")
    assert browser.run("return document.querySelector('#table button').ariaPressed") == "false"
    browser.until("return document.querySelectorAll('#c-loss path.line').length", lambda n: n == 1)
    browser.run(
        "const svg = document.querySelector('#c-loss svg'); svg.focus();"
        "svg.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}))"
    )
    assert "events:" in browser.run("return document.querySelector('#spoken').textContent")
    # all that can be pressed or typed into has a name
    assert not browser.run(
        "return [...document.querySelectorAll('button, select, input, svg[tabindex=\"0\"]')]"
        ".filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).length"
    )
    assert browser.console() == []
    kept = Path(os.environ.get(VARIABLE, tmp_path))
    kept.mkdir(parents=True, exist_ok=True)
    browser.run("document.querySelector('#table button').click(); document.activeElement.blur()")
    browser.run(
        "const search = document.querySelector('#search'); search.value = '';"
        "search.dispatchEvent(new Event('input'))"
    )
    browser.until(NAMES, lambda names: len(names) > 50)
    height = browser.run("return document.documentElement.scrollHeight")
    browser.resize(390 if name == "phone" else 1280, height)
    browser.screenshot(kept / f"page-{name}.png")
    assert (kept / f"page-{name}.png").stat().st_size > 20_000


def test_a_daemon_that_is_gone_is_said(browser: Browser) -> None:
    with running() as (_, _, address):
        browser.open(f"{address}/")
        browser.until(LENGTH, lambda n: n > 20)
    browser.until("return !document.querySelector('#notice').hidden")
    assert "does not answer" in browser.run("return document.querySelector('#notice').innerText")
