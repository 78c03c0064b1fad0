"""Weights as they are shown: all of them counted, the largest ones named, now and then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.daemon.collectors import weights
from streamlearn.telemetry import Board, Weight

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.features import Reader


class Team(list[Any]):
    """Learners with these coefficients, and the labels of their outputs."""

    def __init__(self, reader: Reader, coefficients: dict[str, Array], labels: Any = ()) -> None:
        self.reader = reader
        for name, found in coefficients.items():
            model = SimpleNamespace(coefficients=lambda found=found: found, _labels=labels)
            self.append(SimpleNamespace(name=name, model=model, learned=1))


class Clock:
    """All clocks of the module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.cpu = 1000.0, [0.0, 0.0]
        self._calls = 0
        module = SimpleNamespace(monotonic=self, thread_time=self.thread_time)
        monkeypatch.setattr(weights, "time", module)

    def __call__(self) -> float:
        return self.now

    def thread_time(self) -> float:
        self._calls += 1
        return self.cpu[1 - self._calls % 2]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def collector(clock: Clock) -> weights.WeightsCollector:
    return weights.WeightsCollector(Board(), clock)


def names(count: int) -> Reader:
    model = sl.LinearClassifier()
    model.learn_one({f"f{k}": 1.0 for k in range(count)}, True)
    return model.reader


def test_weights_are_counted_and_the_largest_are_named(clock: Clock) -> None:
    draw = np.random.default_rng(0)
    size = weights.TOP + 7
    given = draw.normal(size=(1, size)) * (draw.random((1, size)) < 0.999)
    one = collector(clock)
    one.measure_if_due(Team(names(size), {"a": given, "b": np.array([[0.0, -2.0, 1.0]])}))  # type: ignore[arg-type]
    board = one.board
    assert board.value("nonzero_weights", "a") == np.count_nonzero(given)
    assert board.value("weights_norm", "a") == pytest.approx(np.linalg.norm(given))
    assert board.value("weights_norm", "b") == pytest.approx(np.sqrt(5.0))
    assert board.value("weights_timestamp_seconds", "b") == clock.now
    assert board.value("slots") == size
    largest = np.argsort(-np.abs(given[0]), kind="stable")[: weights.TOP]
    shown = board.weights["a"]
    assert shown == [Weight(f"f{k}", float(given[0, k])) for k in largest]
    assert [row.name for row in board.weights["b"]] == ["f1", "f2"]


def test_weights_of_several_outputs_have_their_labels(clock: Clock) -> None:
    one = collector(clock)
    given = np.array([[1.0, 0.0], [0.0, -3.0], [2.0, 0.0]])
    one.measure_if_due(Team(names(2), {"a": given}, ["x", "y"]))  # type: ignore[arg-type]
    shown = [(row.name, row.value) for row in one.board.weights["a"]]
    assert shown == [("f1 → y", -3.0), ("f0 → 2", 2.0), ("f0 → x", 1.0)]


def test_a_table_is_as_full_as_all_learners_make_it(clock: Clock) -> None:
    wide, narrow = np.zeros((1, 8)), np.zeros((2, 4))
    wide[0, [0, 7]], narrow[0, 1], narrow[1, [0, 1]] = 1.0, 1.0, -1.0
    for order in ({"a": wide, "b": narrow}, {"b": narrow, "a": wide}):
        one = collector(clock)
        one.measure_if_due(Team(sl.Hashing(bits=4), order))  # type: ignore[arg-type]
        assert one.board.value("hash_load_ratio") == 3 / 16
    assert collector(clock).board.value("hash_load_ratio") is None


def test_long_names_are_cut_and_the_fields_of_an_interaction_joined() -> None:
    most = weights.MAX_LENGTH
    assert weights.display_name(("a", 5)) == "a & 5"
    assert weights.display_name("x" * most) == "x" * most
    assert weights.display_name("x" * (most + 1)) == "x" * most + "…"


def test_weights_are_measured_when_due(clock: Clock) -> None:
    one, given = collector(clock), np.array([[1.0]])
    team = Team(names(1), {"a": given})

    def measured() -> bool:
        given[0, 0] += 1.0
        one.measure_if_due(team)  # type: ignore[arg-type]
        return one.board.value("weights_norm", "a") == float(given[0, 0])

    team[0].learned = 0
    assert not measured()
    team[0].learned = 1
    assert measured()
    clock.now += 0.9 * weights.SECONDS
    assert not measured()
    clock.now += 0.1 * weights.SECONDS
    assert measured()
    # what takes long is done less often: it has a share of the time
    clock.now += weights.SECONDS
    clock.cpu = [0.0, 30.0 * weights.MAX_SHARE]
    assert measured()
    clock.now += 29.0
    assert not measured()
    clock.now += 2.0
    assert measured()


def test_names_are_looked_up_while_they_are_viewed_and_now_and_then(clock: Clock) -> None:
    one, given = collector(clock), np.array([[1.0]])
    team = Team(names(1), {"a": given})

    def named(later: float, viewed: float | None = None) -> bool:
        clock.now += later
        given[0, 0] += 1.0
        if viewed is not None:
            one.board.weights_wanted = clock.now - viewed
        one.measure_if_due(team)  # type: ignore[arg-type]
        return one.board.weights["a"][0].value == float(given[0, 0])

    assert named(0.0)
    assert not named(2.0)
    assert named(2.0, viewed=weights.VIEWED_SECONDS - 1.0)
    assert not named(2.0, viewed=weights.VIEWED_SECONDS)
    assert not named(weights.UNVIEWED_SECONDS - 2.0)
    assert named(2.1)
