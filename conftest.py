"""A time limit for every test: a test that hangs fails with the stacks of all threads.

The limit is a minute for a test, five minutes for its setup, which may download and start a
server, and a minute for its teardown. `@pytest.mark.timeout(300)` raises it. At the limit, the main
thread is interrupted and the test fails. If it cannot be interrupted (compiled code that never
returns, cleanup that hangs too), the process exits after another quarter of the limit, which
pytest-xdist reports as a failure of the test.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

collect_ignore = ["docs/getting-started.md"]  # tests/project/test_tutorials.py runs it in order
SECONDS, SETUP_SECONDS, NIGHTLY_SECONDS = 60.0, 300.0, 3600.0
STDERR = pytest.StashKey[int]()  # the real one, even while output is captured


def pytest_configure(config: pytest.Config) -> None:
    """Save the real standard error."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        config.stash[STDERR] = os.dup(2)


def limit(item: pytest.Item) -> float:
    """Return the time limit of a test in seconds."""
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0])
    return SECONDS if item.get_closest_marker("nightly") is None else NIGHTLY_SECONDS


def limited(item: pytest.Item, seconds: float) -> Generator[None, object, object]:
    """Run a phase of a test within its limit."""

    def interrupt(*_: object) -> None:
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            pytest.fail(f"timed out after {seconds:g} s\n{file.read()}")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(1.25 * seconds, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        pytest_enter_pdb()
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Limit the setup of a test."""
    return (yield from limited(item, max(limit(item), SETUP_SECONDS)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Limit a test."""
    return (yield from limited(item, limit(item)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Limit the teardown of a test."""
    return (yield from limited(item, limit(item)))


def pytest_enter_pdb() -> None:
    """Cancel the limit while a debugger is active."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    faulthandler.cancel_dump_traceback_later()
