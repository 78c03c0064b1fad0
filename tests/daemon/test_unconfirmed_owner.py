"""An owner that cannot confirm its lease learns nothing until it can, and not for ever."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon import loop as loop_module
from streamlearn.daemon.checkpointing.claim import UnconfirmedError
from streamlearn.daemon.process.exits import Exit
from tests.support.loops import MemoryLog, newest
from tests.support.streams import ShuffledSource, make_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlearn.daemon.loop import Loop


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "TICK_SECONDS", 0.001)


def unconfirmed(loop: Loop, fails: Callable[[int], bool]) -> list[int]:
    """Let some checks of the lease fail; return the records that were learned before each."""
    assert loop.ownership is not None
    check, counts, calls = loop.ownership.check, [], 0

    def checked() -> None:
        nonlocal calls
        calls += 1
        if fails(calls):
            counts.append(loop.pipeline.counts.records)
            raise UnconfirmedError("the store does not answer")
        check()

    loop.ownership.check = checked  # type: ignore[method-assign]
    return counts


def test_nothing_is_learned_until_the_lease_is_confirmed(tmp_path: Path) -> None:
    log = MemoryLog()
    loop = make_loop(tmp_path, ShuffledSource(3, 400), log=log)
    counts = unconfirmed(loop, lambda call: 3 <= call < 8)
    assert loop.run() == Exit.OK
    assert len(counts) == 5
    assert len(set(counts)) == 1
    assert 0 < counts[0] < 1200
    assert newest(tmp_path)["counts"]["records"] == 1200
    assert log.lines("lease not renewed")[0]["level"] == "warning"


def test_an_owner_that_is_unconfirmed_for_too_long_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 0.0

    def fails(call: int) -> bool:
        nonlocal later
        later = 0.0 if call < 4 else 99.0 if call < 6 else 101.0
        return call >= 3

    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + later, perf_counter=time.perf_counter, time=time.time
    )
    loop = make_loop(tmp_path, ShuffledSource(3, 10**9), max_age_seconds=100.0)
    counts = unconfirmed(loop, fails)
    monkeypatch.setattr(loop_module, "time", clock)
    assert loop.run() == Exit.CHECKPOINT
    assert len(counts) == 4
    assert set(counts) == {loop.pipeline.counts.records}


def test_a_stop_is_heard_while_the_lease_is_unconfirmed(tmp_path: Path) -> None:
    loop = make_loop(tmp_path, ShuffledSource(3, 10**9))

    def fails(call: int) -> bool:
        if call == 5:
            loop.stop_requested.set()
        return 3 <= call <= 5

    counts = unconfirmed(loop, fails)
    assert loop.run() == Exit.OK
    assert newest(tmp_path)["counts"]["records"] == counts[-1]


def test_what_fails_at_the_end_is_logged_and_the_rest_is_closed(tmp_path: Path) -> None:
    released: list[Any] = []

    class Stuck(ShuffledSource):
        def close(self) -> None:
            assert released  # a standby does not wait for a source that ends slowly
            raise OSError("not now")

    log = MemoryLog()
    loop = make_loop(tmp_path, Stuck(3, 400), log=log)
    assert loop.ownership is not None
    release = loop.ownership.release
    loop.ownership.release = lambda: released.append(release())  # type: ignore[method-assign]
    assert loop.run() == Exit.OK
    assert [line["error"] for line in log.lines("close failed")] == ["not now"]
    assert len(released) == 1
