"""The time that solves in the background may take: a limit, and a share of a core."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from streamlearn.regret import comparator
from streamlearn.regret.comparator import Budget

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """A clock that only passes while somebody works or sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.slept = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(comparator, "time", clock)

    def work(self, seconds: float) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0.0
        self.now += seconds
        self.slept += seconds


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_work_is_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    clock = Clock(monkeypatch)
    budget, worked = Budget(100.0, share), 0.0
    for seconds in (0.5, 2.0, 0.25):
        clock.work(seconds)
        worked += seconds
        assert not budget.spent()
        assert worked == pytest.approx(share * clock.now)
        assert budget.left == pytest.approx(100.0 - clock.now)


def test_it_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(10.0, 0.5)
    clock.work(4.0)
    assert not budget.spent()
    clock.work(1.5)
    assert budget.spent()  # it sleeps no longer than that
    assert clock.now == 10.0
    assert budget.stopped
    assert budget.spent()


@pytest.mark.parametrize("cancelled", [lambda: True, lambda: False])
def test_it_ends_when_cancelled(
    monkeypatch: pytest.MonkeyPatch, cancelled: Callable[[], bool]
) -> None:
    Clock(monkeypatch)
    assert Budget(10.0, 1.0, cancelled).spent() == cancelled()
