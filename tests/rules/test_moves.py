"""What a rule has learned since some moment, as the slots that changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.rules.moves import Move, Snapshot, put, take


def make(rule: Any = None, penalty: Any = None, size: int = 50) -> Any:
    found = (rule or sl.rules.Mixture()).bind(penalty or sl.penalties.Zero(), sl.losses.Logistic())
    found.extend(size)
    return found


def changed(rule: Any, slots: list[int], value: float) -> Move:
    """A move of these slots to a number."""
    start = take(rule, np.array(slots, dtype=np.int32))
    rows = tuple(np.full_like(rows, value) for rows in start.rows)
    return Move(rule.n, start.slots, rows, start.scalars)


@pytest.mark.parametrize(
    ("slots", "sent"),
    [([], []), ([3, 49], [3, 49]), (list(range(49)), None), (list(range(50)), None)],
)
def test_slots_that_changed_are_sent_or_all_if_that_is_smaller(slots: Any, sent: Any) -> None:
    rule = make()
    base = Snapshot(rule)
    put(rule, changed(rule, slots, 2.0))
    move = base.moved()
    assert sent == (move.slots if move.slots is None else move.slots.tolist())
    assert move.nbytes < 50 * 16 * 8


def test_bits_count_not_values() -> None:
    rule = make(sl.rules.DualAveraging())
    put(rule, changed(rule, [4], 0.0))
    base = Snapshot(rule)
    put(rule, changed(rule, [4], -0.0))
    assert base.moved().places().tolist() == [4]


def test_a_number_that_is_none_is_found() -> None:
    rule = make()
    assert not changed(rule, [1, 2], np.inf).has_nan
    assert changed(rule, [1, 2], np.nan).has_nan
    for scalars in ({"t": float("nan")}, {"regrets": np.array([1.0, np.nan])}):
        start = take(rule, None)
        assert Move(50, None, start.rows, {**start.scalars, **scalars}).has_nan


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.Mixture(), sl.penalties.Zero()),
        (sl.rules.AdaGrad(), sl.penalties.L1(0.1)),
        (sl.rules.Pegasos(), sl.penalties.L2(0.1)),
    ],
)
def test_new_slots_are_learned_and_forgotten(rule: Any, penalty: Any) -> None:
    mine, other = make(rule, penalty, 5), make(rule, penalty, 5)
    base = Snapshot(mine)
    mine.extend(9)
    put(mine, changed(mine, [2, 8], 1.5))
    learned = base.moved()
    assert {2, 5, 6, 7, 8} <= set(learned.places().tolist())
    put(other, learned)
    assert model_file.pack(other.state()) == model_file.pack(mine.state())
    base.restore()
    expected = make(rule, penalty, 9)
    assert model_file.pack(mine.state()) == model_file.pack(expected.state())
    put(mine, changed(mine, [1, 7], 2.5))  # again, now that there are so many slots
    assert {1, 7} <= set(base.moved().places().tolist())
    base.restore()
    assert model_file.pack(mine.state()) == model_file.pack(expected.state())
    base.advance(learned)
    assert model_file.pack(other.state()) == model_file.pack(mine.state())
