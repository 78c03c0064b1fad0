"""The live page in a real browser: it loads, its curves move, and no text becomes HTML.

Pictures of it, light, dark and as on a phone, are kept where STREAMLEARN_SCREENSHOTS says;
.ci/run keeps them in build/screenshots, to be looked at.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamlearn.telemetry.page import source
from tests.serving.test_prometheus import served
from tests.support.browser import Browser
from tests.support.missing import require_program
from tests.support.running import HOSTILE, Endless, Silent, running, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "STREAMLEARN_SCREENSHOTS"  # a directory to keep them in
LENGTH = "return document.querySelector('#c-loss path.line')?.getAttribute('d').length ?? 0"
STATE = "return document.querySelector('#state-text').textContent"
SAID = "return document.querySelector('#c-{} .empty').innerText"
NAMES = "return [...document.querySelectorAll('#weights .label')].map((e) => e.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    for program in ("chromium", "chromedriver"):
        require_program(program)
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(given=settings(telemetry="show_invalid_records = true")) as (_, _, found):
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
    browser.until("return document.querySelectorAll('#invalid code').length > 0")
    assert HOSTILE[:20] in browser.run("return document.querySelector('#invalid').textContent")
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


def test_before_the_first_event_nothing_is_claimed(browser: Browser) -> None:
    with running(source=Silent()) as (_, _, address):
        browser.open(f"{address}/")
        browser.until(STATE, lambda text: text == "waiting for events")
        # learners are there, and nothing is known of them
        assert browser.run("return document.querySelectorAll('#table tbody tr').length") == 2
        lines = "#c-loss path.line, #c-nonzero path.line, #c-mixture path.line, #c-regret path"
        assert browser.run(f"return document.querySelectorAll('{lines}:not(.empty *)').length") == 0
        assert browser.run("return document.querySelectorAll('.fine').length") == 0
        shown = {name: browser.run(SAID.format(name)) for name in ("loss-0", "regret", "mixture")}
        assert all("begins" in text for text in shown.values()), shown
        assert browser.run("return document.querySelectorAll('#table .lead').length") == 0
        assert "once events are learned" in browser.run(
            "return document.querySelector('#weights-hint').textContent"
        )


def test_a_regret_that_is_not_followed_is_told_so(browser: Browser) -> None:
    with running(given=settings("[regret]\nenabled = false")) as (_, _, address):
        browser.open(f"{address}/")
        browser.until(LENGTH, lambda n: n > 20)
        assert "regret.enabled is false" in browser.run(SAID.format("regret"))


def test_losses_of_other_kinds_have_axes_of_their_own(browser: Browser) -> None:
    names = "default,sparse,svm"
    with running(given=settings(names=names), names=names) as (_, _, address):
        browser.open(f"{address}/")
        found = browser.until(
            "return [...document.querySelectorAll('#c-loss > div')].map((one) => "
            "[one.querySelector('h3').textContent, one.querySelectorAll('path.line').length])",
            lambda found: found and all(lines for _, lines in found),
        )
        assert found == [["Logistic()", 2], ["Hinge(threshold=1.0)", 1]]
        # the one of its kind is not the best of all, however small its loss
        assert not browser.run(
            "return document.querySelectorAll('#table tbody tr')[2].cells[1].className"
        )


def test_a_learner_that_skips_events_is_not_the_best(browser: Browser) -> None:
    with running() as (loop, _, address):
        browser.resize(1280, 900)
        browser.open(f"{address}/")
        best = "return [...document.querySelectorAll('#table .lead')].length"
        row = "return document.querySelectorAll('#table tbody tr')[{}].innerText"
        browser.until(best)
        for learner in loop.pipeline.learners:
            learner.diverged = 2509
        browser.until(row.format(0), lambda text: "2,509 diverged" in text)
        browser.until(f"{best} + 1", lambda n: n == 1)
        # a long name is broken
        browser.run("document.querySelector('#table .name span').textContent = 'long-'.repeat(12)")
        table = "document.querySelector('#table').parentElement"
        assert browser.run(f"return {table}.scrollWidth <= {table}.clientWidth")


def test_lines_and_numbers_can_be_told_apart(browser: Browser) -> None:
    functions = source("format.js")
    strokes = browser.run(f"{functions}; return [...Array(64).keys()].map(stroke)")
    assert len(set(strokes)) == 64
    numbers = "[count(4.71e154), figure(-6.5e156), mark(2.5e15), count(2e12)]"
    assert browser.run(f"{functions}; return {numbers}") == [
        "4.71e+154", "\u22126.50e+156", "2.5e+15", "2.00 T",
    ]  # fmt: skip


def test_a_regret_is_drawn_with_its_bracket(browser: Browser) -> None:
    with running(given=settings(names="svm"), names="svm") as (_, _, address):
        browser.open(f"{address}/")
        browser.until("return document.querySelectorAll('#c-regret path.edge').length")
        assert browser.run("return document.querySelectorAll('#c-regret path.edge').length") == 2
        assert browser.run("return document.querySelectorAll('#c-regret path.band').length") == 1
        assert browser.run("return document.querySelectorAll('#c-regret path.line').length") == 1
        cell = browser.run(
            "return [...document.querySelectorAll('#table tbody td')].at(-2).innerText"
        )
        ends = [float(text.replace("\u2212", "-")) for text in cell.split(" \u2026 ")]
        assert ends == sorted(ends)


def test_a_run_that_ends_is_told_with_its_last_numbers(browser: Browser) -> None:
    end = threading.Event()

    class Ends(Endless):
        def ended(self) -> bool:
            return end.is_set()

    with running(source=Ends(1, 10**9)) as (loop, watching, address):
        browser.open(f"{address}/")
        browser.until(LENGTH, lambda n: n > 20)
        end.set()  # it waits for more, as a daemon on a file does
        browser.until(STATE, lambda text: text == "all events are learned")
        watching.patience = 5.0
        loop.stop_requested.set()
        browser.until(STATE, lambda text: text == "stopped: stop requested")
        browser.until("return !document.querySelector('#notice').hidden")
        assert browser.run(STATE) == "stopped: stop requested"
        assert "has stopped" in browser.run("return document.querySelector('#notice').innerText")
        learned = browser.run("return document.querySelector('#tiles dd').textContent")
        assert int(learned.replace(",", "")) == loop.pipeline.counts.learned
        # the mark of the state is one line high, whatever it is
        browser.run("document.querySelector('#state').className = 'state bad'")
        assert browser.run("return document.querySelector('#state').offsetHeight") < 60
    browser.console()  # which says that nobody answers


def test_a_daemon_that_is_gone_is_said(browser: Browser) -> None:
    with running() as (_, _, address):
        browser.open(f"{address}/")
        browser.until(LENGTH, lambda n: n > 20)
    browser.until("return !document.querySelector('#notice').hidden")
    assert browser.run(STATE) == "unreachable"
    assert "does not answer" in browser.run("return document.querySelector('#notice').innerText")


def test_what_was_served(browser: Browser) -> None:
    with running() as (loop, _, address):
        browser.resize(1280, 900)
        browser.open(f"{address}/")
        hidden = "return document.querySelector('#served-card').hidden"
        assert browser.until(f"{hidden} ? 1 : 0", lambda n: n == 1)
        loop.pipeline.learners.served = served()
        browser.until(f"{hidden} ? 1 : 0", lambda n: n == 0)
        rows = "return [...document.querySelectorAll('#served tbody tr')].map((e) => e.innerText)"
        first, second = browser.until(rows, lambda found: len(found) == 2)
        assert first.split("\t")[:3] == ["one", "one", "500"]
        assert float(second.split("\t")[3]) > float(first.split("\t")[3])


def test_workers(browser: Browser, tmp_path: Path) -> None:
    with running() as (_, watching, address):
        browser.open(f"{address}/")
        browser.until("return document.querySelector('#workers-card').hidden")
        board = watching.board
        for number, lag in (("0", 120), ("1", 7_000_000)):
            board.set("worker_partitions", 6, number)
            board.set("worker_events_per_second", 812_345.6, number)
            board.set("worker_lag_events", lag, number)
            board.set("worker_round_timestamp_seconds", time.time() - 8, number)
        board.set("worker_partitions", 0, "2")
        board.set("rounds_merged_total", 1234)
        board.set("rounds_refused_total", 3, "position")
        board.set("workers_replaced_total", 2)
        board.set("round_merge_seconds", 0.123)
        rows = (
            "return [...document.querySelectorAll('#workers tbody tr')]"
            ".map((row) => [...row.children].map((cell) => cell.textContent))"
        )
        found = browser.until(rows, lambda rows: len(rows) == 3)
        assert [row[:2] for row in found] == [["0", "6"], ["1", "6"], ["2", "0"]]
        assert found[2][4] == "none yet"
        said = browser.run("return document.querySelector('#rounds').textContent")
        assert "3 for its position" in said
        kept = Path(os.environ.get(VARIABLE, tmp_path))
        kept.mkdir(parents=True, exist_ok=True)
        browser.resize(1280, browser.run("return document.documentElement.scrollHeight"))
        browser.screenshot(kept / "page-workers.png")
