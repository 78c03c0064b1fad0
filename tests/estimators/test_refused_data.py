"""Labels and parts that a model refuses, in each form that data come in; nothing is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamlearn as sl
from streamlearn.errors import IncompatibleError, InvalidEventError, ModelFileError
from streamlearn.estimators.frames import Frame
from streamlearn.estimators.merging import ModelSnapshot, merge
from streamlearn.estimators.parameter_data import decode_param

if TYPE_CHECKING:
    from collections.abc import Callable


Model = sl.LinearClassifier | sl.LinearRegressor
HUGE = 10**400  # no float
X = np.array([[1.0, 2.0], [3.0, 4.0]])
FRAME = pd.DataFrame(X, columns=["a", "b"])


def several(**metric: Any) -> sl.LinearRegressor:
    return sl.LinearRegressor(sl.rules.AdaGrad(), loss=sl.losses.MultiSquared(**metric))


def objects(*values: Any) -> np.ndarray:
    """Return values as they are, whatever they are."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


LABELS: list[tuple[Callable[[], Model], list[Any]]] = [
    (sl.LinearClassifier, [True, [1]]),
    (sl.LinearClassifier, [True, {}]),
    (sl.LinearRegressor, [1.0, HUGE]),
    (sl.LinearRegressor, [1.0, "x"]),
    (sl.LinearRegressor, [1.0, float("inf")]),
    (sl.LinearRegressor, [1.0, object()]),
    (several, [{"a": 1.0, "b": 2.0}, {"a": HUGE, "b": 2.0}]),
    (several, [{"a": 1.0, "b": 2.0}, {"a": "x", "b": 2.0}]),
    (several, [{"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}]),
    (several, [{"a": 1.0, "b": 2.0}, {"a": 1.0}]),
    (several, [{"a": 1.0, "b": 2.0}, {}]),
    (several, [{"a": 1.0, "b": 2.0}, 5.0]),
    (lambda: several(metric=np.eye(3)), [[1.0, 2.0, 3.0], [1.0, 2.0]]),
]


@pytest.mark.parametrize(("make", "labels"), LABELS)
def test_a_label_that_is_none_is_refused_and_nothing_is_learned(
    make: Callable[[], Model], labels: list[Any]
) -> None:
    good, bad = labels
    model = make()
    model.learn_one({"a": 1.0}, good)
    before = model.predict_one({"a": 1.0, "b": 1.0})
    with pytest.raises(InvalidEventError):
        model.learn_one({"a": 1.0, "b": 1.0}, bad)
    with pytest.raises(InvalidEventError):
        model.learn_rows(X, objects(good, bad))
    with pytest.raises(InvalidEventError):
        model.learn_many(FRAME, pd.Series(objects(good, bad)))
    assert model.steps == 1
    assert model.predict_one({"a": 1.0, "b": 1.0}) == before


def test_targets_by_name_are_learned_alike_one_by_one_and_by_rows() -> None:
    named = [{"a": 1.0, "b": 2.0}, {"b": 3.0, "a": 4.0}]
    one, rows, frame = several(), several(), several()
    for x, y in zip(X.tolist(), named, strict=True):
        one.learn_one({0: x[0], 1: x[1]}, y)
    rows.learn_rows(X, objects(*named))
    frame.learn_many(FRAME, pd.Series(named))
    assert one.outputs == rows.outputs == frame.outputs == ["a", "b"]
    wanted = [one.predict_one({0: x[0], 1: x[1]}) for x in X.tolist()]
    assert [rows.predict_one({0: x[0], 1: x[1]}) for x in X.tolist()] == wanted
    assert [frame.predict_one({"a": x[0], "b": x[1]}) for x in X.tolist()] == wanted


@pytest.mark.parametrize("part", ["rule", "penalty", "loss"])
def test_a_part_of_another_kind_is_refused(part: str) -> None:
    wrong: dict[str, Any] = {part: sl.Names()}
    for make in (sl.LinearClassifier, sl.LinearRegressor):
        with pytest.raises(IncompatibleError, match=part):
            make(**wrong)


@pytest.mark.parametrize("count", [3, 5])
def test_labels_of_columns_that_come_in_parts_are_one_for_each_row(count: int) -> None:
    part = pa.record_batch({"a": [1.0, 2.0]})
    labels = [True, False, True, False, True]

    def parts() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(part.schema, [part] * 2)

    sl.LinearClassifier().learn_many(parts(), labels[:4])
    with pytest.raises(ValueError, match=f"{count} labels"):
        sl.LinearClassifier().learn_many(parts(), labels[:count])


@pytest.mark.parametrize("n", [-1, 1.0, True, None])
def test_the_number_of_columns_is_an_integer(n: Any) -> None:
    with pytest.raises(ValueError, match="integer"):
        sl.LinearClassifier().coef(n)
    assert len(sl.LinearClassifier().coef(0)) == 0


def test_a_frame_is_one_of_a_library() -> None:
    with pytest.raises(ValueError, match="ndarray"):
        Frame(X)


def test_models_of_other_labels_are_not_merged() -> None:
    base, other = (
        sl.LinearClassifier(sl.rules.DualAveraging()),
        sl.LinearClassifier(sl.rules.DualAveraging()),
    )
    base.know_labels([0, 1])
    other.know_labels([0, 1])
    before = ModelSnapshot(other)
    for label in (0, 1, 2):
        other.learn_one({"a": 1.0}, label)
    with pytest.raises(IncompatibleError):
        merge(base, [before.moved()])


def test_a_model_of_a_class_that_is_not_known_here_is_refused() -> None:
    with pytest.raises(ModelFileError, match="Unheard"):
        decode_param({"spec": "Unheard", "params": {}})


def test_readers_that_learned_other_buckets_are_not_shared() -> None:
    def taught(low: float) -> sl.LinearRegressor:
        model = sl.LinearRegressor(features=sl.Names({"x": "buckets(2, warmup=10)"}))
        for k in range(12):
            model.learn_one({"x": low + k}, 1.0)
        return model

    one, other = taught(0.0), taught(50.0)
    with pytest.raises(ValueError, match="buckets"):
        one.share_features(other.reader)
    one.share_features(one.reader)  # its own
    alike = taught(0.0)
    one.share_features(alike.reader)
    assert one.reader is alike.reader
    fresh = other.reader.fresh()
    other.share_features(fresh)
    assert fresh.frozen() == taught(50.0).reader.frozen()
    with pytest.raises(ValueError, match="features"):
        one.share_features(sl.Names())


def test_bounds_are_against_weights_by_name_or_by_column() -> None:
    by_name, by_row = sl.PegasosClassifier(l2=0.1), sl.PegasosClassifier(l2=0.1)
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(50, 3))
    for row in rows:
        by_name.learn_one({"a": row[0], "b": row[1], "c": row[2]}, bool(row[0] > 0.0))
    by_row.learn_rows(rows, rows[:, 0] > 0.0)
    weights = np.array([0.5, -0.25, 0.0])
    want = by_row.regret_bound(weights)
    assert want is not None
    assert by_name.regret_bound({"a": 0.5, "b": -0.25}) == pytest.approx(want)
    assert by_name.regret_bound({"b": -0.25, "a": 0.5, "c": 0.0}) == pytest.approx(want)
    # of a feature that is not known yet
    more = by_row.regret_bound(np.array([0.5, -0.25, 0.0, 3.0]))
    assert by_name.regret_bound({"a": 0.5, "b": -0.25, "new": 3.0}) == pytest.approx(more)
    assert by_name.why_no_bound({"a": 0.5}) is None
