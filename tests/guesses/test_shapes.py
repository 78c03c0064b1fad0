"""Shapes of numbers, at the limits where they change."""

from __future__ import annotations

import numpy as np
import pytest

from streamlearn.guesses import shapes, times


def with_repeats(distinct: int, n: int, spread: float) -> np.ndarray:
    """Return n whole numbers over a range, so many of them distinct."""
    values = np.linspace(0.0, spread, distinct).round()
    assert len(np.unique(values)) == distinct
    return np.concatenate([values, np.zeros(n - distinct)])


@pytest.mark.parametrize(
    ("n", "distinct", "spread", "key"),
    [
        (100, 100, 498.0, True),  # 10.02 pairs by chance
        (100, 100, 499.0, False),  # 10.0
        (100, 96, 99.0, True),  # 4 repeats of 50 by chance
        (100, 95, 99.0, False),
        (100, 20, 99.0, False),
    ],
)
def test_keys_repeat_less_than_a_tenth_of_what_chance_would(
    n: int, distinct: int, spread: float, key: bool
) -> None:
    assert shapes.is_key(with_repeats(distinct, n, spread), distinct) == key


@pytest.mark.parametrize(
    ("x", "even"),
    [
        (np.linspace(5.0, 5.0 + 1e8, 101), True),
        (np.linspace(5.0, 5.0 + 1e8, 101)[::-1], True),
        (np.linspace(5.0, 5.0 + 1e8 - 1.0, 101), False),
        (1e9 * np.linspace(0.0, 1.0, 101) ** 1.2, False),  # .067 beside the line
        (1e9 * np.linspace(0.0, 1.0, 101) ** 1.1, True),  # .035
    ],
)
def test_numbers_are_spread_evenly_over_a_large_range(x: np.ndarray, even: bool) -> None:
    assert shapes.is_spread_evenly(x) == even


@pytest.mark.parametrize(
    ("x", "straight"),
    [
        (np.arange(9.0), True),
        (np.arange(9.0)[::-1], True),
        (np.array([0.0, 1.0, 1.0, 2.0]), True),
        (np.array([0.0, 2.0, 1.0, 3.0]), False),
        (np.zeros(4), False),
        (np.arange(101.0) + 4.9 * (np.arange(101) == 50), False),  # it turns back
        (np.linspace(0.0, 1.0, 101) ** 1.1, True),
        (np.linspace(0.0, 1.0, 101) ** 1.2, False),
    ],
)
def test_row_numbers_grow_by_a_straight_line(x: np.ndarray, straight: bool) -> None:
    assert shapes.is_straight(x) == straight


def counted(*counts: int) -> np.ndarray:
    """Return the numbers 1, 2, ... as often as this."""
    return np.repeat(np.arange(1.0, len(counts) + 1.0), counts)


@pytest.mark.parametrize(
    ("x", "irregular"),
    [
        (counted(900, 5, 700, 3, 800, 4, 600, 2, 500, 9), True),
        (counted(90, 91, 92, 93, 92, 91, 90, 89, 88, 87), False),
        (counted(900), False),  # one value has no shape
        (counted(900, 5, 3), False),  # each digit is a third
        (counted(900, 5, 3, 700), True),
        (np.concatenate([np.zeros(5000), counted(90, 91, 92, 93, 92)]), False),  # 0 is apart
        (10.0 * counted(900, 5, 700, 3, 800, 4, 600, 2, 500, 9), False),  # rounded by people
    ],
)
def test_codes_occur_far_more_often_than_their_neighbors(x: np.ndarray, irregular: bool) -> None:
    assert shapes.is_irregular(x) == irregular


@pytest.mark.parametrize(
    ("x", "heavy"),
    [
        (np.concatenate([np.ones(98), np.full(2, 8.1)]), True),
        (np.concatenate([np.ones(98), np.full(2, 8.0)]), False),
        (np.concatenate([np.ones(47), np.full(2, 9.0)]), False),  # too few
        (np.concatenate([np.ones(48), np.full(2, 9.0)]), True),
        (np.concatenate([np.zeros(9), np.ones(48), np.full(2, 9.0)]), True),
        (np.concatenate([[-1.0], np.ones(48), np.full(2, 9.0)]), False),
    ],
)
def test_a_heavy_tail_is_far_above_the_median(x: np.ndarray, heavy: bool) -> None:
    assert shapes.has_heavy_tail(x) == heavy


@pytest.mark.parametrize("n", [1, times.CHECKED, times.CHECKED + 1, 10 * times.CHECKED])
def test_a_sample_is_in_order_and_has_both_ends(n: int) -> None:
    found = list(times.sample(range(n)))
    assert len(found) == min(n, times.CHECKED)
    assert (found[0], found[-1]) == (0, n - 1)
    assert sorted(set(found)) == found
