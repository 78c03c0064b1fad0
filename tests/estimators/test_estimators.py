"""Promises of estimators, for all rules, losses and penalties."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from river import datasets, evaluate, linear_model, metrics, preprocessing

import streamlearn as sl
from streamlearn.estimators import model_file

if TYPE_CHECKING:
    from collections.abc import Callable

L, P, R = sl.losses, sl.penalties, sl.rules


def state_of(model: Any) -> bytes:
    return model_file.pack(model.state())


def dense(n: int = 60, d: int = 5, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, d)) * (draw.random((n, d)) < 0.6)
    return X, X @ np.arange(1.0, d + 1.0) + 0.1 * draw.normal(size=n)


def event(row: Any) -> dict[int, float]:
    return {j: float(x) for j, x in enumerate(row) if x != 0.0}


# -- river ------------------------------------------------------------------------------------


def test_estimators_replace_those_of_a_river_pipeline() -> None:
    rates = []
    for last in (linear_model.LogisticRegression(), sl.LinearClassifier()):
        model = preprocessing.StandardScaler() | last
        rates.append(
            evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get()
        )
    assert rates[1] >= rates[0] - 0.01


# -- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        (False, True),
        (0, 1),
        (-1, 1),
        (2, 5),
        (np.int64(0), np.int64(1)),
        (np.False_, np.True_),
        (-1.0, 1.0),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("loss", [L.Logistic(), L.Hinge()])
def test_greater_label_is_positive(negative: Any, positive: Any, first: int, loss: Any) -> None:
    model = sl.LinearClassifier(R.DualAveraging(), loss)
    for i in range(20):
        good = (i + first) % 2 == 0
        model.learn_one({"a": 1.0 if good else -1.0}, positive if good else negative)
    assert model.labels == [negative, positive]
    assert model.score_one({"a": 1.0}) > 0.0 > model.score_one({"a": -1.0})
    assert model.predict_one({"a": 1.0}) == positive
    assert model.predict_one({"a": -1.0}) == negative
    assert model.predict_proba_one({"a": 1.0})[positive] > 0.5


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_order_of_labels_does_not_matter(order: tuple[int, int]) -> None:
    """Weights learned from the first class alone change sign if it turns out to be positive."""
    X, y = dense()
    first = sorted(range(len(y)), key=lambda i: (y[i] > 0) != order[0])
    one, other = sl.LinearClassifier(), sl.LinearClassifier()
    for i in first:
        one.learn_one(event(X[i]), int(y[i] > 0))
        other.learn_one(event(X[i]), bool(y[i] > 0))
    assert one.weights == other.weights != {}


@pytest.mark.parametrize(
    "labels",
    [("ham", "spam"), (("a", 1), ("b", 2)), (b"x", b"y"), (np.str_("u"), np.str_("v")), (0, "n")],
)
def test_labels_of_any_hashable_type(labels: tuple[Any, Any]) -> None:
    one, many = sl.LinearClassifier(), sl.LinearClassifier()
    X, y = dense()
    targets = [labels[int(value > 0)] for value in y]
    for row, label in zip(X, targets, strict=True):
        one.learn_one(event(row), label)
    many.learn_rows(X, targets)
    assert one.labels == many.labels
    assert set(one.labels) == set(labels)
    assert {one.predict_one(event(row)) for row in X} == set(labels)
    assert one.weights == pytest.approx(many.weights)


def test_classes_may_appear_over_time() -> None:
    draw = np.random.default_rng(0)
    model = sl.LinearClassifier()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({}) == {}
    model.learn_one({"c0": 1.0}, "c0")
    assert model.predict_one({"a": 1.0}) == "c0"
    assert model.predict_proba_one({}) == {"c0": 1.0}
    for classes in (2, 3, 5):
        for _ in range(200):
            k = int(draw.integers(classes))
            model.learn_one({f"c{k}": 1.0, "noise": draw.normal()}, f"c{k}")
        assert set(model.labels) == {f"c{k}" for k in range(classes)}
        for k in range(classes):
            shares = model.predict_proba_one({f"c{k}": 1.0})
            assert sum(shares.values()) == pytest.approx(1.0)
            assert model.predict_one({f"c{k}": 1.0}) == max(shares, key=shares.__getitem__)
            assert model.predict_one({f"c{k}": 1.0}) == f"c{k}"
    assert set(model.weights) == set(model.labels) == set(model.intercept)
    assert set(model.score_one({})) == set(model.labels)


@pytest.mark.parametrize("loss", [sl.losses.Logistic(), sl.losses.Hinge()])
@pytest.mark.parametrize("classes", [3, 10])
def test_probabilities_of_several_classes(loss: Any, classes: int) -> None:
    draw = np.random.default_rng(0)
    y = draw.integers(classes, size=5000)
    X = draw.normal(size=(classes, 20))[y] * 0.7 + draw.normal(size=(5000, 20))
    model = sl.LinearClassifier(loss=loss)
    learned = model.progressive_rows(X[:4000], y[:4000])
    assert learned.shape == (4000, classes)
    scores = np.array([list(model.score_one(dict(enumerate(row))).values()) for row in X[4000:]])
    shares = model.predict_proba_many(pd.DataFrame(X[4000:]))[model.labels].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), scores.argmax(axis=1))
    place = np.array([model.labels.index(label) for label in y[4000:]])
    alone = 0.5 * (1.0 + np.tanh(0.5 * scores))  # of each class on its own
    alone /= alone.sum(axis=1, keepdims=True)
    rows = np.arange(len(place))
    assert -np.log(shares[rows, place]).mean() < -0.95 * np.log(alone[rows, place]).mean()


def test_probabilities_of_extreme_scores() -> None:
    model = sl.LinearClassifier()
    for label in "abc":
        model.learn_one({}, label)
    assert np.isfinite(
        model._probabilities(np.array([[800.0, 0.0, -800.0], [-1e300, -2e300, 0.0]]))
    ).all()
    # All classes are unlikely, and one is less so.
    assert model._probabilities(np.array([[-800.0, -802.0, -900.0]]))[0].tolist() == pytest.approx(
        [1.0 / (1.0 + np.exp(-4.0 / 3.0)), 1.0 / (1.0 + np.exp(4.0 / 3.0)), 0.0]
    )
    np.testing.assert_allclose(model._probabilities(np.full((1, 3), -3.0)), 1.0 / 3.0)


@pytest.mark.parametrize("label", [None, float("nan"), [1], {}, np.nan])
def test_invalid_label_changes_nothing(label: Any) -> None:
    model = sl.LinearClassifier()
    model.learn_one({"a": 1.0}, "x")
    before = state_of(model)
    with pytest.raises(sl.InvalidEventError):
        model.learn_one({"new": 1.0}, label)
    rows = np.empty(2, dtype=object)
    rows[:] = ["x", label]
    with pytest.raises(sl.InvalidEventError):
        model.learn_rows(np.ones((2, 3)), rows)
    assert state_of(model) == before


@pytest.mark.parametrize("kind", [sl.LinearClassifier, sl.LinearRegressor])
def test_invalid_event_changes_nothing(kind: type[Any]) -> None:
    regression = kind is sl.LinearRegressor
    y1, y2 = (1.0, 2.0) if regression else ("x", "new")
    model = kind()
    model.learn_one({"a": 1.0}, y1)
    before = state_of(model)
    nan = float("nan")
    matrix = np.ones((2, 3))
    attempts: list[Any] = [
        lambda: model.learn_one({"b": nan}, y2),
        lambda: model.learn_one({"b": 1.0, "c": object()}, y2),
        lambda: model.learn_one({"b": 1.0}, y2, w=-1.0),
        lambda: model.learn_one({"b": 1.0}, y2, w=nan),
        lambda: model.learn_rows(np.array([[1.0, nan], [1.0, 1.0]]), [y1, y2]),
        lambda: model.learn_rows(matrix, [y2]),
        lambda: model.learn_rows(matrix, [y1, y2], [1.0]),
        lambda: model.learn_rows(matrix, [y1, y2], [1.0, -1.0]),
        lambda: model.learn_rows(matrix, [y1, y2], [1.0, nan]),
        lambda: model.learn_rows(matrix[0], [y1]),
        lambda: model.learn_rows(np.array([["a"]]), [y1]),
        lambda: model.learn_rows(matrix + 1j, [y1, y2]),
        lambda: model.learn_many(pd.DataFrame({"z": [1.0, np.inf]}), pd.Series([y1, y2])),
        lambda: model.learn_many(pd.DataFrame({"z": [1.0, 2.0]}), pd.Series([y2])),
    ]
    if regression:
        attempts += [
            lambda: model.learn_one({"b": 1.0}, nan),
            lambda: model.learn_one({"b": 1.0}, "1.5"),
            lambda: model.learn_rows(matrix, [1.0, np.inf]),
            lambda: model.learn_rows(matrix, ["1", "2"]),
        ]
    for attempt in attempts:
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
            attempt()
        assert state_of(model) == before


@pytest.mark.parametrize("kind", [sl.LinearClassifier, sl.PegasosClassifier])
def test_zero_weight_changes_nothing(kind: type[Any]) -> None:
    model = kind(class_weight={"never": 0.0})
    model.learn_one({"a": 1.0}, "x")
    before = state_of(model)
    model.learn_one({"b": 1.0}, "y", w=0.0)
    model.learn_one({"b": 1.0}, "never")
    model.learn_rows(np.ones((2, 3)), ["y", "z"], [0.0, 0.0])
    assert state_of(model) == before
    model.learn_rows(np.ones((2, 3)), ["x", "y"], [1.0, 0.0])
    assert model.labels == ["x"]
    assert model.steps == 2


def test_class_weights_equal_event_weights() -> None:
    X, y = dense()
    labels = (y > 0).tolist()
    one = sl.DualAveragingClassifier(class_weight={True: 3.0})
    other, rows = sl.DualAveragingClassifier(), sl.DualAveragingClassifier(class_weight={1: 3.0})
    for row, label in zip(X, labels, strict=True):
        one.learn_one(event(row), label)
        other.learn_one(event(row), label, w=3.0 if label else 1.0)
    rows.learn_rows(X, labels)
    assert one.weights == other.weights == pytest.approx(rows.weights)


# -- events, rows and data frames -------------------------------------------------------------

WAYS = [
    (sl.LinearClassifier, {}, 2),
    (sl.LinearClassifier, {}, 4),
    (sl.DualAveragingClassifier, {"l1": 0.01}, 2),
    (sl.DualAveragingClassifier, {"batch": 4}, 3),
    (sl.PegasosClassifier, {"batch": 7, "average": "tail"}, 2),
    (sl.FTRLClassifier, {"features": sl.Hashing(bits=2)}, 2),
    (sl.LinearClassifier, {"rule": R.AdaGrad(0.1), "loss": L.Softmax(), "batch": 3}, 4),
    (sl.LinearClassifier, {"rule": R.AdaGrad(0.1), "loss": L.MulticlassHinge()}, 3),
    (sl.LinearRegressor, {}, 0),
    (sl.PegasosRegressor, {"batch": 3, "average": "uniform"}, 0),
]


@pytest.mark.parametrize(("kind", "options", "classes"), WAYS)
def test_events_rows_and_frames_agree(
    kind: type[Any], options: dict[str, Any], classes: int
) -> None:
    X, y = dense(n=61)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    one, rows, mixed = kind(**options), kind(**options), kind(**options)
    for i in range(len(y)):
        one.learn_one(event(X[i]), y[i])
    rows.learn_rows(sp.csr_array(X), y)
    for i in range(5):
        mixed.learn_one(event(X[i]), y[i])
    mixed.learn_rows(X[5:20], y[5:20])
    mixed.learn_many(pd.DataFrame(X[20:33]), pd.Series(y[20:33]))
    mixed.learn_rows(sp.csr_array(X[33:50]), y[33:50])
    for i in range(50, len(y)):
        mixed.learn_one(event(X[i]), y[i])
    for other in (rows, mixed):
        assert other.steps == one.steps
        assert np.allclose(other.coef(5), one.coef(5), rtol=1e-9, atol=1e-12)
        assert np.allclose(other.score_rows(X), one.score_rows(X), rtol=1e-9, atol=1e-12)
    for i in range(5):
        score = one.score_one(event(X[i]))
        values = list(score.values()) if isinstance(score, dict) else score
        assert np.allclose(one.score_rows(X)[i], values)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [1, 0, 2], [2, 1, 0], [True, False, True]])
@pytest.mark.parametrize("loss", [None, L.Softmax()])
def test_progressive_scores_precede_learning(labels: list[Any], loss: Any) -> None:
    X, _ = dense(n=30)
    y = [labels[i // 3 % 3] for i in range(30)]
    model = sl.LinearClassifier(R.AdaGrad(0.1), loss)
    scores = model.progressive_rows(X, y)
    slow = sl.LinearClassifier(R.AdaGrad(0.1), loss)
    for i in range(30):
        if len(slow.labels) == len(model.labels):
            expected = slow.score_rows(X[i : i + 1])[0]
            assert np.allclose(scores[i], expected, rtol=1e-9, atol=1e-12)
        slow.learn_one(event(X[i]), y[i])


def test_interactions_refuse_matrices() -> None:
    model = sl.LinearClassifier(features=sl.Names({"a^b": "interaction"}))
    with pytest.raises(ValueError, match="declared"):
        model.learn_rows(np.ones((2, 2)), [0, 1])


# -- matrices ---------------------------------------------------------------------------------


DAMAGE: dict[str, Any] = {
    "a start is missing": lambda X: setattr(X, "indptr", X.indptr[:-1]),
    "a start too many": lambda X: setattr(X, "indptr", np.append(X.indptr, X.indptr[-1])),
    "starts beyond the items": lambda X: X.indptr.__setitem__(slice(2, None), X.nnz + 1),
    "starts that decrease": lambda X: X.indptr.__setitem__(1, X.indptr[2] + 1),
    "a negative start": lambda X: X.indptr.__setitem__(0, -1),
    "fewer columns than values": lambda X: setattr(X, "indices", X.indices[:-1]),
    "fewer values than columns": lambda X: setattr(X, "data", X.data[:-1]),
    "a column too large": lambda X: X.indices.__setitem__(3, X.shape[1]),
    "a negative column": lambda X: X.indices.__setitem__(3, -1),
    "a large column between others": lambda X: X.indices.__setitem__(4, 1 << 30),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_damaged_matrix_is_refused(kind: str, index: Any) -> None:
    """Compiled code would read beyond its arrays."""
    dense = np.arange(1.0, 13.0).reshape(4, 3)
    model = sl.LinearRegressor()
    model.learn_rows(dense, np.ones(4))
    before = model.coef(3)
    for use in (lambda X: model.learn_rows(X, np.ones(4)), model.score_rows):
        X = sp.csr_array(dense)
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
        assert X.has_canonical_format  # which SciPy remembers
        DAMAGE[kind](X)
        with pytest.raises(ValueError, match="not a valid CSR matrix"):
            use(X)
    np.testing.assert_array_equal(model.coef(3), before)


def formats(X: Any) -> list[Any]:
    """Return the same matrix in many formats."""
    csr = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (
            np.repeat(csr.data / 2.0, 2),
            np.repeat(csr.indices, 2),
            2 * csr.indptr,
        ),
        shape=csr.shape,
    )
    full = sp.csr_matrix(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), X.shape[1] * np.arange(len(X) + 1)),
        shape=X.shape,
    )
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    strided = sp.csr_matrix(X)
    strided.data = np.repeat(strided.data, 2)[::2]
    strided.indices = np.repeat(strided.indices, 2)[::2]
    return [
        X.tolist(),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1][::-1],
        X.astype(">f8"),
        X.astype(np.longdouble),
        csr,
        sp.csr_array(X),
        sp.csc_matrix(X),
        sp.coo_array(X),
        sp.lil_matrix(X),
        twice,
        full,
        wide,
        strided,
    ]


@pytest.mark.parametrize("case", range(15))
def test_matrix_formats(case: int) -> None:
    X, y = dense()
    labels = y > 0
    plain = sl.DualAveragingClassifier(l1=0.01)
    plain.learn_rows(X, labels)
    other = sl.DualAveragingClassifier(l1=0.01)
    clothed = formats(X)[case]
    other.learn_rows(clothed, labels)
    assert np.allclose(other.coef(5), plain.coef(5), rtol=1e-9)
    assert np.allclose(other.score_rows(clothed), plain.score_rows(X), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.bool_, np.uint16])
def test_matrix_dtypes(dtype: Any) -> None:
    X = (np.abs(dense()[0]) * 3).astype(dtype)
    y = dense()[1] > 0
    one, other = sl.DualAveragingClassifier(), sl.DualAveragingClassifier()
    one.learn_rows(X, y)
    other.learn_rows(sp.csr_array(X.astype(float)), y)
    assert np.allclose(one.coef(5), other.coef(5))


def test_empty_matrices() -> None:
    model = sl.LinearClassifier()
    assert model.score_rows(np.empty((0, 3))).shape == (0,)
    model.learn_rows(np.empty((0, 3)), [])
    model.learn_rows(sp.csr_array((0, 3)), [])
    model.learn_rows(np.empty((2, 0)), [0, 1])
    assert model.steps == 2
    assert model.score_rows(np.empty((2, 0))).shape == (2,)
    for X in ([], [1.0, 2.0], np.float64(3.0), np.ones((2, 2, 2))):
        with pytest.raises(ValueError, match="two dimensions"):
            model.score_rows(X)


def test_numbers_of_columns_may_change() -> None:
    X, y = dense()
    model = sl.DualAveragingClassifier()
    model.learn_rows(X[:, :3], y > 0)
    wide = model.score_rows(X)
    assert np.allclose(wide, model.score_rows(X[:, :3]))
    assert np.allclose(model.score_rows(X[:, :2]), X[:, :2] @ model.coef(2) + model.intercept)
    assert model.coef(6)[3:].tolist() == [0.0, 0.0, 0.0]


def test_hashing_with_more_columns_than_slots() -> None:
    X, y = dense()
    model, folded = (sl.DualAveragingClassifier(features=sl.Hashing(bits=2)) for _ in range(2))
    model.learn_rows(X, y > 0)
    sums = X[:, :4].copy()
    sums[:, 0] += X[:, 4]
    folded.learn_rows(sums, y > 0)
    assert np.allclose(model.coef(4), folded.coef(4))
    assert np.allclose(model.score_rows(X), folded.score_rows(sums))


def test_label_containers() -> None:
    X, y = dense()
    labels = (y > 0).astype(int)
    expected = None
    for form in (
        labels,
        labels.tolist(),
        tuple(labels),
        pd.Series(labels),
        labels.astype(object),
        labels.astype(bool),
        labels.astype(np.uint8),
        labels.astype(">i4"),
        np.repeat(labels, 2)[::2],
    ):
        model = sl.DualAveragingClassifier()
        model.learn_rows(X, form)
        expected = model.weights if expected is None else expected
        assert model.weights == expected


# -- weights ----------------------------------------------------------------------------------


def test_weights_counts_and_scores_agree() -> None:
    X, y = dense(n=300)
    model = sl.DualAveragingClassifier(l1=0.1, l2=0.01)
    model.learn_rows(X, y > 0)
    coef = model.coef(5)
    assert model.weights == {j: w for j, w in enumerate(coef) if w != 0.0}
    assert model.nonzero == np.count_nonzero(coef) == len(model.weights)
    assert 0 < model.nonzero < 5
    assert model.penalty_value == pytest.approx(0.1 * abs(coef).sum() + 0.005 * (coef @ coef))
    assert model.steps == 300
    assert np.allclose(model.score_rows(X), X @ coef + model.intercept)


def test_untrained_estimators() -> None:
    for kind in (sl.LinearClassifier, sl.LinearRegressor, sl.PegasosClassifier):
        model = kind()
        assert model.score_one({"a": 1.0}) == 0.0
        assert model.score_rows(np.ones((2, 3))).tolist() == [0.0, 0.0]
        assert model.weights == {}
        assert (model.intercept, model.nonzero, model.steps, model.penalty_value) == (0, 0, 0, 0)
        assert model.coef(2).tolist() == [0.0, 0.0]


# -- losses -----------------------------------------------------------------------------------


def test_several_targets() -> None:
    model = sl.LinearRegressor(R.AdaGrad(1.0), L.MultiSquared())
    draw = np.random.default_rng(0)
    for _ in range(500):
        x = float(draw.normal())
        model.learn_one({"x": x}, {"up": 2.0 * x + 1.0, "down": -x})
    assert model.predict_one({"x": 1.0}) == pytest.approx({"up": 3.0, "down": -1.0}, abs=0.1)
    assert set(model.weights) == {"up", "down"}
    before = state_of(model)
    for bad in ({"up": 1.0}, 1.0, {"up": 1.0, "down": None}, {"up": 1.0, "down": float("nan")}):
        with pytest.raises(sl.InvalidEventError):
            model.learn_one({"x": 1.0}, bad)
    for columns in (1, 3):
        with pytest.raises(sl.InvalidEventError):
            model.learn_rows(np.ones((2, 1)), np.ones((2, columns)))
    assert state_of(model) == before
    model.learn_rows(np.ones((2, 1)), np.ones((2, 2)))


def test_novelty_scores_known_events_higher() -> None:
    model = sl.LinearClassifier(R.DualAveraging(), L.Novelty(), P.L2(0.01), fit_intercept=False)
    for _ in range(200):
        model.learn_one({"a": 1.0, "b": 1.0}, True)
    assert model.score_one({"a": 1.0, "b": 1.0}) > 0.9
    assert model.score_one({"c": 1.0}) == 0.0


def test_costs_move_the_decision_boundary() -> None:
    draw = np.random.default_rng(0)
    costs = {"b": {"a": 9.0}}
    models = [
        sl.LinearClassifier(R.AdaGrad(0.1), L.MulticlassHinge(cost, 1.0)) for cost in (None, costs)
    ]
    for _ in range(1000):
        label = "ab"[int(draw.random() < 0.3)]
        x = {"x": float(draw.normal() + (label == "b"))}
        for model in models:
            model.learn_one(x, label)
    counts = [
        sum(model.predict_one({"x": x}) == "b" for x in np.linspace(-3, 3)) for model in models
    ]
    assert counts[1] > counts[0]


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_quantile_loss_predicts_the_quantile(tau: float) -> None:
    draw = np.random.default_rng(0)
    model = sl.LinearRegressor(R.DualAveraging(gamma=0.2), L.Quantile(tau))
    y = draw.normal(size=5000)
    model.learn_rows(np.empty((5000, 0)), y)
    assert np.mean(y < model.predict_one({})) == pytest.approx(tau, abs=0.08)


def test_poisson_predicts_counts() -> None:
    draw = np.random.default_rng(0)
    model = sl.LinearRegressor(R.AdaGrad(0.1), L.Poisson())
    for _ in range(3000):
        x = float(draw.random())
        model.learn_one({"x": x}, int(draw.poisson(np.exp(1.0 + x))))
    assert model.predict_one({"x": 0.5}) == pytest.approx(np.exp(1.5), rel=0.15)
    for bad in (-1.0, float("nan")):
        with pytest.raises(sl.InvalidEventError):
            model.learn_one({"x": 1.0}, bad)
        with pytest.raises(sl.InvalidEventError):
            model.learn_rows(np.ones((1, 1)), [bad])


# -- refusals ---------------------------------------------------------------------------------

REFUSED = [
    (sl.LinearClassifier, {"rule": R.Pegasos()}, "L2"),
    (
        sl.LinearClassifier,
        {"rule": R.Pegasos(), "penalty": P.ElasticNet(0.1, 0.1)},
        "DualAveraging",
    ),
    (sl.LinearClassifier, {"penalty": P.Berhu(0.1, 0.2)}, "DualAveraging"),
    (sl.LinearClassifier, {"rule": R.CoinBetting(), "penalty": P.Berhu(0.1, 0.2)}, "DualAveraging"),
    (sl.LinearRegressor, {"loss": L.Hinge()}, "LinearClassifier"),
    (sl.LinearRegressor, {"loss": L.Softmax(), "rule": R.AdaGrad(0.1)}, "LinearClassifier"),
    (sl.LinearClassifier, {"loss": L.Squared()}, "LinearRegressor"),
    (sl.LinearClassifier, {"loss": L.MultiSquared(), "rule": R.AdaGrad(0.1)}, "LinearRegressor"),
    (sl.LinearClassifier, {"loss": L.Softmax()}, "AdaGrad"),
    (sl.LinearClassifier, {"batch": 2}, "batch=1"),
    (
        sl.LinearClassifier,
        {"rule": R.ExponentiatedDualAveraging(), "penalty": P.Simplex()},
        "fit_intercept=False",
    ),
    (sl.LinearClassifier, {"rule": R.ExponentiatedDualAveraging()}, "Simplex"),
    (sl.LinearClassifier, {"rule": R.DualAveraging(), "loss": L.SquaredHinge(0)}, "threshold > 0"),
    (sl.LinearClassifier, {"rule": R.DualAveraging(schedule="zero")}, "strongly convex"),
    (sl.LinearClassifier, {"rule": R.PrimalGradient(), "penalty": P.L2(0.1)}, "LpSquared"),
    (
        sl.LinearClassifier,
        {"rule": R.AcceleratedDualAveraging(), "loss": L.Hinge()},
        "SquaredHinge",
    ),
    (sl.LinearClassifier, {"average": "mean"}, "uniform"),
    (sl.LinearClassifier, {"batch": 0}, "batch"),
    (sl.LinearClassifier, {"batch": "4"}, "batch"),
    (sl.LinearClassifier, {"batch": None}, "batch"),
    (sl.LinearClassifier, {"seed": -1}, "seed"),
    (sl.LinearClassifier, {"fit_intercept": "penalised"}, "penalized"),
    (sl.LinearClassifier, {"class_weight": {0: -1.0}}, "class_weight"),
    (sl.LinearClassifier, {"class_weight": "balanced"}, "class_weight"),
    (sl.LinearClassifier, {"rule": P.L2(0.1)}, "not a rule"),
    (sl.LinearClassifier, {"features": 20}, "Hashing"),
    (sl.PegasosClassifier, {"l2": 0.0}, "L2"),
]


@pytest.mark.parametrize(("kind", "options", "remedy"), REFUSED)
def test_incompatible_options_name_a_remedy(
    kind: type[Any], options: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(sl.IncompatibleError, match=remedy):
        kind(**options)


def test_unsupported_third_class_is_refused() -> None:
    model = sl.LinearClassifier(R.DualAveraging(), L.Novelty(), P.L2(0.1))
    model.learn_one({"a": 1.0}, "x")
    model.learn_one({"a": 1.0}, "y")
    before = state_of(model)
    with pytest.raises(sl.InvalidEventError, match="Logistic"):
        model.learn_one({"b": 1.0}, "z")
    with pytest.raises(sl.InvalidEventError, match="Logistic"):
        model.learn_rows(np.ones((2, 2)), ["x", "z"])
    assert state_of(model) == before


def test_cost_matrix_needs_numbered_labels() -> None:
    model = sl.LinearClassifier(R.AdaGrad(0.1), L.MulticlassHinge([[0, 2], [1, 0]]))
    with pytest.raises(sl.InvalidEventError, match="mapping"):
        model.learn_one({"a": 1.0}, "ham")
    model.learn_one({"a": 1.0}, 1)
    model.learn_one({"a": -1.0}, 0)
    assert model.predict_one({"a": 1.0}) == 1


# -- randomness, divergence, threads ----------------------------------------------------------


def test_seed_makes_random_averages_reproducible() -> None:
    X, y = dense()
    shown = []
    for seed in (1, 1, 2):
        model = sl.DualAveragingClassifier(average="random", seed=seed)
        model.learn_rows(X, y > 0)
        shown.append(model.weights)
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize("average", ["last", "uniform"])
def test_divergence_is_raised(average: str) -> None:
    model = sl.LinearRegressor(R.GradientDescent(1e200), average=average)
    model.learn_one({"a": 1e50}, 1e50)
    with pytest.raises(sl.DivergenceError):  # noqa: PT012 - the step at which it shows is not known
        for _ in range(5):
            before = state_of(model)
            model.learn_one({"a": 1e50}, 1e50)
    assert state_of(model) == before
    with pytest.raises(sl.DivergenceError):
        model.learn_rows(np.full((3, 1), 1e300), [1.0, 2.0, 3.0])


def test_divergence_of_a_single_class_is_raised() -> None:
    model = sl.LinearClassifier(R.GradientDescent(0.1), L.SquaredHinge())
    for label in "abcabc":
        model.learn_one({"x": 1.0, "y": 0.5}, label)
    assert len(model.rules) == 3
    with pytest.raises(sl.DivergenceError):
        model.learn_one({"x": 1e160}, "a")
    with pytest.raises(sl.DivergenceError):
        model.learn_rows(np.full((3, 1), 1e300), ["a", "b", "c"])


@pytest.mark.parametrize(
    "model",
    [
        sl.LinearRegressor(R.GradientDescent(0.1)),
        sl.LinearRegressor(R.AdaGrad(), fit_intercept="penalized"),
        sl.LinearRegressor(R.DualAveraging(), average="uniform"),
        sl.LinearRegressor(R.Pegasos(), penalty=P.L2(0.1), batch=3),
        sl.LinearRegressor(R.FTRLProximal(), features=sl.Names({"a^new": "interaction"})),
        sl.LinearClassifier(R.DualAveraging(), L.SquaredHinge()),
        sl.LinearClassifier(R.DualAveraging(), L.Softmax()),
        sl.LinearRegressor(R.AdaGrad(), L.MultiSquared()),
    ],
    ids=str,
)
def test_diverging_event_adds_no_names(model: Any) -> None:
    """It changes nothing else either: later events are learned as if it had not occurred."""
    vector = isinstance(model.objective.loss, L.MultiSquared)
    kinds = [{"t": 1.0, "u": 2.0}, {"t": 0.5, "u": 0.0}, {"t": -1.0, "u": 3.0}] if vector else None
    model, twin = model.clone(), model.clone()
    for turn, name in enumerate(("a", "b", "new", "c", "new", "d")):
        label = kinds[turn % 3] if kinds is not None else (0, 1, 1, 0, 2, 0)[turn]
        before = state_of(model)
        if turn in {2, 3}:
            with pytest.raises(sl.DivergenceError):
                model.learn_one({"a": 1.0, name: 1e200, ("pair", turn): 1.0, f"{turn}": 0}, label)
            assert state_of(model) == before
            continue
        for one in (model, twin):
            one.learn_one({"a": 1.0, name: 0.5 + turn}, label)
    assert state_of(model) == state_of(twin)
    assert "c" not in model.reader.names()


@pytest.mark.parametrize("loss", [L.SquaredHinge(), L.Softmax()], ids=repr)
def test_diverging_event_with_a_new_label_adds_no_names(loss: Any) -> None:
    model = sl.LinearClassifier(R.DualAveraging(), loss)
    for label in "abc":
        with pytest.raises(sl.DivergenceError):
            model.learn_one({f"great {label}": 1e200}, label)
        model.learn_one({"x": 1.0}, label)
    assert model.reader.names() == ["x"]


@pytest.mark.parametrize(
    "model",
    [
        sl.AdaptiveRegressor(),
        sl.FTRLRegressor(),
        sl.PrimalGradientRegressor(),
        sl.LinearRegressor(R.AcceleratedDualAveraging()),
        sl.LinearClassifier(R.DualAveraging(), L.Softmax()),
    ],
    ids=str,
)
@pytest.mark.parametrize("great", [1e160, 1e300, sys.float_info.max])
def test_gradient_too_large_to_square_is_not_learned(model: Any, great: float) -> None:
    """Learning it would make all later weights NaN."""
    model = model.clone()
    for i in range(4):
        model.learn_one({"a": 1.0 + i, "b": 1.0}, i % 2)
    before = state_of(model)
    with pytest.raises(sl.DivergenceError):
        model.learn_one({"a": great, "b": 1.0}, 1)
    assert state_of(model) == before
    model.learn_one({"a": 1.0, "b": 1.0}, 1)
    assert np.isfinite(model.coefficients()).all()


@pytest.mark.parametrize("great", [1e160, 1e300, sys.float_info.max, -sys.float_info.max])
def test_default_accepts_numbers_of_any_size(great: float) -> None:
    for rule in (None, *sl.rules.Mixture().rules):
        model = sl.LinearClassifier(rule)
        for i in range(100):
            model.learn_one({"a": float(i % 3), "b": great if i == 50 else 1.0}, i % 3 > 0)
        assert np.isfinite(list(model.weights.values())).all()
        assert model.predict_one({"a": 2.0, "b": 1.0})


def test_two_estimators_in_two_threads() -> None:
    X, y = dense(n=2000, d=20)
    models = [sl.LinearClassifier() for _ in range(2)]
    threads = [threading.Thread(target=m.learn_rows, args=(X, y > 0)) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = sl.LinearClassifier()
    alone.learn_rows(X, y > 0)
    assert [state_of(m) for m in models] == [state_of(alone)] * 2


def test_one_estimator_in_two_threads_is_refused() -> None:
    """It cannot be copied or saved either while another thread learns."""
    X, y = np.ones((200_000, 20)), np.zeros(200_000)
    y[::2] = 1.0
    model = sl.LinearClassifier()
    model.learn_rows(X[:2], y[:2])
    thread = threading.Thread(target=model.learn_rows, args=(X, y))
    thread.start()
    refused = unsaved = 0
    while thread.is_alive():
        try:
            model.__getstate__()
        except RuntimeError:
            unsaved += 1
        try:
            model.learn_one({0: 1.0}, 1.0)
        except RuntimeError:
            refused += 1
            for attempt in (
                lambda: model.score_one({0: 1.0}),
                lambda: model.score_rows(X[:2]),
                lambda: model.learn_rows(X[:2], y[:2]),
            ):
                with contextlib.suppress(RuntimeError):
                    attempt()
    thread.join()
    assert refused > 0
    assert unsaved > 0
    assert model.predict_one({0: 1.0}) in {0.0, 1.0}


def test_new_class_is_refused_while_another_thread_learns() -> None:
    X, y = np.ones((300_000, 20)), np.zeros(300_000)
    y[::2] = 1.0
    model = sl.LinearClassifier()
    model.learn_rows(X[:2], y[:2])
    thread = threading.Thread(target=model.learn_rows, args=(X, y))
    thread.start()
    busy = False
    while not busy and thread.is_alive():
        try:
            model.engine.raise_if_busy()
        except RuntimeError:
            busy = True
    with pytest.raises(RuntimeError, match="another thread"):
        model.learn_one({0: 1.0}, "third")
    thread.join()
    assert model.labels == [0.0, 1.0]
    assert model.steps == 300_002


@pytest.mark.parametrize(
    ("column", "features"),
    [
        (pd.Series(["x", None], dtype="string"), ["a=x"]),
        (pd.Series(["x", None], dtype="category"), ["a=x"]),
        (pd.Series([2, None], dtype="Int64"), ["a"]),
        (pd.Series([True, None], dtype="boolean"), ["a"]),
        (pd.Series([1.5, np.nan]).convert_dtypes(), ["a"]),
    ],
)
def test_missing_values_of_nullable_columns(column: Any, features: list[str]) -> None:
    frame = pd.DataFrame({"a": column})
    many, one = sl.LinearClassifier(), sl.LinearClassifier()
    many.learn_many(frame, pd.Series([True, False]))
    one.learn_one({"a": column.iloc[0]}, True)
    one.learn_one({}, False)
    assert sorted(many.weights) == features
    assert many.weights == one.weights
    assert many.predict_proba_many(frame)[True].tolist() == [
        one.predict_proba_one(x)[True] for x in ({"a": column.iloc[0]}, {})
    ]


def test_invalid_labels_frames_and_matrices() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    labels = pd.Series([True, None], dtype="boolean")
    for model in (sl.LinearClassifier(), sl.LinearRegressor()):
        with pytest.raises(sl.InvalidEventError, match="NA"):
            model.learn_one({"a": 1.0}, pd.NA)
        with pytest.raises(sl.InvalidEventError, match="label"):
            model.learn_many(frame, labels)
        with pytest.raises(sl.InvalidEventError, match="label"):
            model.learn_rows(frame.to_numpy(), labels)
        with pytest.raises(ValueError, match="learn_rows"):
            model.learn_many(frame.to_numpy(), labels)
        for weight in (None, "2", -1.0, 1e101, float("nan")):
            with pytest.raises(ValueError, match="weight"):
                model.learn_one({"a": 1.0}, True, weight)  # type: ignore[arg-type]
        for weight in (-1.0, 1e101, float("nan")):
            for given in (weight, [1.0, weight]):
                with pytest.raises(ValueError, match="weight"):
                    model.learn_rows(np.ones((2, 1)), [0, 1], given)
        with pytest.raises(sl.InvalidEventError, match="masked"):
            model.learn_rows(np.ma.masked_less(np.ones((2, 2)) * [0.0, 1.0], 0.5), [0, 1])
        assert model.steps == 0
    with pytest.raises(sl.InvalidEventError, match="row 1: nan"):
        sl.LinearRegressor().learn_rows(frame.to_numpy(), [1.0, np.nan])


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), 1e101, "2", None])
def test_invalid_class_weights_are_refused(factor: Any) -> None:
    with pytest.raises(ValueError, match="class_weight of 'a'"):
        sl.LinearClassifier(class_weight={"a": factor})


@pytest.mark.parametrize("n", [-1, 2.5, "a", True])
def test_coef_needs_an_integer(n: Any) -> None:
    model = sl.LinearClassifier()
    model.learn_rows(np.ones((2, 3)), [0, 1])
    with pytest.raises(ValueError, match="n, "):
        model.coef(n)
    assert len(model.coef(0)) == 0
    assert len(model.coef(5)) == 5


@pytest.mark.parametrize(
    "label",
    [lambda t: 2.0 * t + 1.0, lambda t: -3.0 * t, lambda t: t * t],
    ids=["rising", "falling", "faster"],
)
def test_regression_follows_drifting_labels(label: Callable[[float], float]) -> None:
    model = sl.LinearRegressor()
    for t in range(1500):
        model.learn_one({"t": t}, label(t))
    assert np.isfinite(list(model.weights.values())).all()
    assert model.predict_one({"t": 1500}) == pytest.approx(label(1500), rel=0.01)


def test_outliers_do_not_dominate() -> None:
    rng = np.random.default_rng(0)
    X = np.exp(2.0 * rng.standard_normal((4000, 5))) * rng.choice([-1.0, 1.0], (4000, 5))
    y = X @ np.array([1.0, -2.0, 1.0, -1.0, 2.0]) > 0.0
    right = (sl.LinearClassifier().progressive_rows(X, y) > 0.0) == y
    assert right[1000:].mean() > 0.97


def explained_models() -> list[Any]:
    """Return models with one and several outputs, and every placement of the intercept."""
    l1 = sl.penalties.L1(1e-3)
    rule = R.DualAveraging()
    return [
        sl.DualAveragingClassifier(l1=1e-3),
        sl.LinearClassifier(rule, penalty=l1, fit_intercept="penalized", average="uniform"),
        sl.LinearClassifier(rule, penalty=l1, features=sl.Hashing(bits=12), fit_intercept=False),
        sl.LinearClassifier(R.AdaGrad(), L.Softmax(), fit_intercept="penalized"),
        sl.LinearClassifier(R.AdaGrad(), features=sl.Names({"a^c": "interaction"})),
        sl.LinearRegressor(R.GradientDescent(0.01)),
        sl.LinearRegressor(R.AdaGrad(), L.MultiSquared()),
    ]


@pytest.mark.parametrize("model", explained_models(), ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_add_up_to_the_score(model: Any, classes: int) -> None:
    model = model.clone()
    for i in range(60):
        y: Any = "xyz"[i % classes]
        if isinstance(model, sl.LinearRegressor):
            y = float(i % 7) if model._single_output() else {"s": i % 7, "t": -i % 5}
        model.learn_one({"a": i % 3, "b": -1.5, "c": f"v{i % classes}"}, y)
    x = {"a": 2, "b": 0.5, "c": "v1", "new": 7.0}
    scores = model.score_one(x)
    outputs = model.outputs if isinstance(scores, dict) else [None]
    for output in outputs:
        rows = model.explain_one(x, output)
        score = scores if output is None else scores[output]
        assert sum(one.contribution for one in rows) == pytest.approx(score, rel=1e-12)
        assert all(one.contribution == one.value * one.weight for one in rows)
        sizes = [abs(one.contribution) for one in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert {"a", "b", "c=v1", "new", None} <= {one.name for one in rows}
    assert (
        model.explain_one(x)[0][:3]
        == max(model.explain_one(x), key=lambda one: abs(one.contribution))[:3]
    )
    head, *rows = (line.split() for line in model.debug_one(x, decimals=3).splitlines())
    assert head == ["Name", "Value", "Weight", "Contribution"]
    assert [row[0] for row in rows] == [one.name or "Intercept" for one in model.explain_one(x)]
    for row, one in zip(rows, model.explain_one(x), strict=True):
        assert [float(text) for text in row[1:]] == pytest.approx(one[1:], abs=5e-4)
    if isinstance(scores, dict):
        with pytest.raises(ValueError, match="not one of"):
            model.explain_one(x, "unknown")
