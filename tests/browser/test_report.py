"""The report of a tested model in a real browser: it fits a phone, and follows the color scheme."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamlearn.cli.main import main
from streamlearn.stream import Clicks
from tests.support.browser import Browser
from tests.support.missing import require_program

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "STREAMLEARN_SCREENSHOTS"  # a directory to keep pictures in
WIDTHS = "return [document.documentElement.scrollWidth, window.innerWidth]"
PAPER = "return getComputedStyle(document.body).backgroundColor"
SMALLEST = """return Math.min(...[...document.querySelectorAll('svg text')].map(
    (e) => e.getBoundingClientRect().height))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    for program in ("chromium", "chromedriver"):
        require_program(program)
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    files = [place / name for name in ("train.jsonl", "test.jsonl")]
    for i, path in enumerate(files):
        path.write_bytes(b"\n".join(Clicks("clicks", 2).values(5000 * i, 5000)))
    model, found = str(place / "a.model"), place / "a.html"
    assert main(["train", str(files[0]), "--label", "clicked", "--save", model]) == 0
    assert main(["test", model, str(files[1]), "--report", str(found)]) == 0
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (360, 740)])
def test_the_page_fits(browser: Browser, page: Path, scheme: str, width: int, height: int) -> None:
    browser.prefer(scheme)
    browser.resize(width, height)
    browser.open(page.as_uri())
    content, window = browser.run(WIDTHS)
    assert content <= window
    assert browser.run(SMALLEST) > 9.0
    light = [int(part) for part in browser.run(PAPER)[4:-1].split(",")]
    assert (min(light) > 200) == (scheme == "light")
    assert browser.console() == []
    if VARIABLE in os.environ:
        browser.screenshot(Path(os.environ[VARIABLE]) / f"report-{scheme}-{width}.png")


def test_it_prints_on_two_pages(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    printed = base64.b64decode(browser.devtools("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") == 2
    if VARIABLE in os.environ:
        (Path(os.environ[VARIABLE]) / "report.pdf").write_bytes(printed)
