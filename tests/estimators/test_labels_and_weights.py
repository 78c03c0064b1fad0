"""Labels and weights of any type: what they are taken for, and what is refused."""

from __future__ import annotations

import enum
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamlearn as sl
from streamlearn.core.weights import MAX_WEIGHT
from streamlearn.stream import Fields, JSONDecoder
from tests.support.formats import read


@pytest.mark.parametrize("labels", [[True, False], ["a", "b"], [1, 2], [1.5, 2.5]])
@pytest.mark.parametrize("made", [pl.Series, pd.Series, pa.array, lambda y: pa.chunked_array([y])])
def test_labels_are_python_objects_whatever_holds_them(made: Any, labels: list[Any]) -> None:
    values = labels * 3
    for learn in ("learn_many", "learn_rows"):
        model, expected = sl.LinearClassifier(), sl.LinearClassifier()
        rows: Any = np.arange(6.0)[:, None]
        rows = pl.DataFrame(rows) if learn == "learn_many" else rows
        getattr(model, learn)(rows, made(values))
        getattr(expected, learn)(rows, values)
        assert model.labels == expected.labels
        assert [type(label) for label in model.labels] == [type(labels[0])] * 2
        assert model.weights == expected.weights


@pytest.mark.parametrize(
    "labels",
    [["a", "a\0"], [0.5, 2**53, 2**53 + 1], [2**63 + 1, 2**63, -1], [1, True, 2], [b"a", "a"]],
)
def test_different_labels_of_a_list_stay_different(labels: list[Any]) -> None:
    model, expected = sl.LinearClassifier(), sl.LinearClassifier()
    model.learn_rows(np.eye(len(labels)), labels)
    for k, label in enumerate(labels):
        expected.learn_one({k: 1.0}, label)
    assert sorted(map(repr, model.labels)) == sorted(map(repr, expected.labels))


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


def test_a_label_may_be_an_enum_of_texts() -> None:
    model = sl.LinearClassifier()
    for color in Color:
        model.learn_one({color.value: 1.0}, color)
    assert model.predict_one({"blue": 1.0}) is Color.BLUE


@pytest.mark.parametrize(
    "weight", [np.float32("inf"), np.float16("nan"), Decimal("NaN"), "1", b"1", 10**400, None, [1]]
)
def test_what_is_no_weight_is_refused(weight: Any) -> None:
    model = sl.LinearRegressor()
    with pytest.raises(ValueError, match="weight"):
        model.learn_one({"a": 1.0}, 1.0, weight)
    assert model.steps == 0


def test_a_weight_may_be_of_any_type_of_numbers() -> None:
    expected = sl.LinearRegressor()
    expected.learn_one({"a": 1.0}, 1.0, 2.5)
    kinds: list[Any] = [np.float16, np.float32, np.longdouble, Decimal, Fraction]
    for kind in kinds:
        model = sl.LinearRegressor()
        model.learn_one({"a": 1.0}, 1.0, kind(2.5))
        assert model.weights == expected.weights


@pytest.mark.parametrize(
    ("weight", "valid"),
    [(0.0, True), (MAX_WEIGHT, True), (np.nextafter(MAX_WEIGHT, np.inf), False), (-1e-300, False)],
)
def test_the_largest_weight_is_the_same_for_all_ways_to_learn(weight: float, valid: bool) -> None:
    def one() -> None:
        sl.LinearClassifier().learn_one({"x": 1.0}, True, weight)

    def rows() -> None:
        sl.LinearClassifier().learn_rows(np.ones((2, 1)), np.array([True, False]), [weight, 1.0])

    def classes() -> None:
        sl.LinearClassifier(class_weight={True: weight}).learn_one({"x": 1.0}, True)

    for learn in (one, rows, classes):
        if valid:
            learn()
        else:
            with pytest.raises(ValueError, match="weight"):
                learn()
    decoder = JSONDecoder(sl.Names(), Fields(label="y", weight="w"))
    events = read(decoder, [json.dumps({"x": 1.0, "y": True, "w": weight}).encode()])
    assert (len(events), len(events.invalid)) == ((1, 0) if valid else (0, 1))
