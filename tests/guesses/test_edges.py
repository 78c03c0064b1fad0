"""Both sides of the limits by which numbers are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from streamlearn.features.fields import Category, Number
from streamlearn.guesses import numbers, shapes, texts
from streamlearn.guesses.column import Column
from streamlearn.guesses.numbers import COMMON_ZERO, EACH, EACH_CODE, FEW

Rule = Any


def guessed(rule: Rule, values: list[Any]) -> Any:
    """What a rule makes of numbers; None: nothing."""
    column = Column("a", values)
    x = column.numbers
    assert x is not None
    found = rule(column, x)
    return None if found is None else found.field


@pytest.mark.parametrize(
    ("distinct", "rows", "few"),
    [
        (FEW, EACH * FEW, True),
        (FEW + 1, EACH * (FEW + 1), False),
        (FEW, EACH * FEW - 1, False),
        (2, 2 * EACH, True),
    ],
)
def test_few_integers(distinct: int, rows: int, *, few: bool) -> None:
    values = [i % distinct for i in range(rows)]
    assert (guessed(numbers.few_integers, values) is not None) == few
    assert guessed(numbers.few_integers, [one + 0.5 for one in values]) is None


@pytest.mark.parametrize(("repeated", "code"), [(50, False), (51, True)])
def test_codes_repeat_in_more_than_half_of_the_rows(
    monkeypatch: pytest.MonkeyPatch, repeated: int, *, code: bool
) -> None:
    monkeypatch.setattr(shapes, "is_irregular", lambda _: True)
    rows = EACH * FEW // 100 * 100 + 100
    many = rows * repeated // 100
    values = [*range(0, 10 * (rows - many), 10), *([5] * many)]
    assert (guessed(numbers.code, values) is not None) == code
    monkeypatch.setattr(shapes, "is_irregular", lambda _: False)
    assert guessed(numbers.code, values) is None


@pytest.mark.parametrize(
    ("least", "spread", "rows", "code"),
    [
        (301, 100, EACH_CODE * 101 + 140, True),  # more than three times the spread from 0
        (300, 100, EACH_CODE * 101 + 140, False),
        (1000, 200, EACH_CODE * 201, True),
        (1000, 200, EACH_CODE * 201 - 1, False),  # too few of each
        (3001, 1, EACH * FEW, True),
        (3001, 1, EACH * FEW - 1, False),
    ],
)
def test_codes_far_from_zero(
    monkeypatch: pytest.MonkeyPatch, least: int, spread: int, rows: int, *, code: bool
) -> None:
    monkeypatch.setattr(shapes, "is_irregular", lambda _: False)
    values = [least + i % (spread + 1) for i in range(rows)]
    assert (guessed(numbers.code, values) is not None) == code


@pytest.mark.parametrize(("zeros", "counts"), [(50, False), (51, True)])
def test_counts_are_mostly_zero(zeros: int, *, counts: bool) -> None:
    values = [0.0] * zeros + [float(i + 1) for i in range(100 - zeros)]
    assert (guessed(numbers.count, values) is not None) == counts
    assert guessed(numbers.count, [-one for one in values]) is None


def as_number(values: list[Any]) -> Number:
    found = guessed(numbers.quantity, values)
    assert isinstance(found, Number)
    return found


def test_where_numbers_are_centered() -> None:
    around = [10.0 + 0.1 * (-1) ** i for i in range(100)]
    assert as_number(around).center == pytest.approx(10.0)
    assert as_number([x - 10.0 for x in around]).center == 0.0  # it is already
    assert as_number([-1.0, 3.0] * 50).center == 0.0  # the mean is half of the spread
    assert as_number([-0.99, 3.01] * 50).center == pytest.approx(1.0)
    for share, centered in ((COMMON_ZERO, False), (COMMON_ZERO - 0.01, True)):
        zeros = round(100 * share)
        values = [0.0] * zeros + around[zeros:]
        assert bool(as_number(values).center) == centered


@pytest.mark.parametrize(
    ("missing", "indicator", "centered"),
    [(0, False, True), (1, True, True), (50, True, True), (51, False, False)],
)
def test_missing_numbers(missing: int, *, indicator: bool, centered: bool) -> None:
    around: list[float | None] = [10.0 + 0.1 * (-1) ** i for i in range(100 - missing)]
    found = as_number(around + [None] * missing)
    assert found.indicator == indicator
    assert bool(found.center) == centered


def test_a_few_integers_are_categories() -> None:
    assert isinstance(guessed(numbers.few_integers, [1, 2] * EACH), Category)


@pytest.mark.parametrize(("links", "prose"), [(90, False), (91, True)])
def test_links_are_nearly_all_of_their_field(links: int, *, prose: bool) -> None:
    values = [f"https://x.org/{i}" for i in range(links)] + ["x"] * (100 - links)
    assert (texts.prose(Column("a", values)) is not None) == prose
