"""What must hold for every rule with every penalty and loss it takes."""

import copy
import dataclasses
import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import streamlearn as sl
from tests.reference import REFERENCE
from tests.reference.losses import Loss
from tests.support.members import (
    LOSSES,
    RULES,
    VECTOR_LOSSES,
    N,
    allowed,
    averages_of,
    batches,
    brief,
    close,
    dense,
    dense_loss,
    dense_penalty,
    estimator,
    know_all,
    maker,
    pairs,
    stream_for,
    turn,
)

PAIRS = pairs()
each_pair = pytest.mark.parametrize(("rule", "penalty"), PAIRS, ids=brief)
CHECKPOINTS = (1, 7, 30, 61, 72)


def follow(rule: Any, penalty: Any, loss: Any, batch: int) -> None:
    """Sparse and dense side by side."""
    data = stream_for(loss)
    model = estimator(rule, penalty, loss, batch=batch)
    slow = dense(rule, penalty, loss)
    complete = dict(batches(data, batch))
    start = 0
    before: list[float] = []
    for stop in CHECKPOINTS:
        scores = model.progressive_rows(
            data.rows[start:stop], data.y[start:stop], data.w[start:stop]
        )
        before = []
        for i in range(start, stop):
            p = float(data.X[i] @ slow.w)
            if i + 1 in complete:
                rows = complete[i + 1]
                slow.step(data.X[rows], data.y[rows], data.w[rows])
                p = float(getattr(slow, "score", p))
            before.append(p)
        counted = data.w[start:stop] > 0
        close(scores[counted], np.array(before)[counted])
        close(model.coef(N), slow.w)
        assert model.steps == slow.t
        # exact zeros, and their exact number
        w = model.coef(N)
        assert np.all(w[slow.w == 0.0] == 0.0)
        assert not np.signbit(w[w == 0.0]).any()
        assert model.nonzero == np.count_nonzero(w)
        assert model.weights == {j: w[j] for j in np.flatnonzero(w)}
        assert model.penalty_value == pytest.approx(slow.penalty.value(slow.w), rel=1e-8, abs=1e-12)
        start = stop


def some_losses(rule: Any, penalty: Any) -> list[Any]:
    """One example of every loss that is allowed, another one for the next penalty."""
    place = turn(rule, penalty)
    found: dict[str, list[Any]] = {}
    for loss in LOSSES:
        if allowed(rule, penalty, loss):
            found.setdefault(type(loss).__name__, []).append(loss)
    return [same[place % len(same)] for same in found.values()]


@each_pair
def test_sparse_is_dense(rule: Any, penalty: Any) -> None:
    for loss in some_losses(rule, penalty):
        follow(rule, penalty, loss, 1)


@pytest.mark.parametrize(
    ("rule", "penalty"), [pair for pair in PAIRS if not pair[0].learns_events], ids=brief
)
def test_batches_are_dense_batches(rule: Any, penalty: Any) -> None:
    for loss in (sl.losses.Logistic(), sl.losses.Squared()):
        if allowed(rule, penalty, loss):
            follow(rule, penalty, loss, 3)


def test_every_rule_has_a_reference() -> None:
    assert {type(rule).__name__ for rule in RULES} <= set(REFERENCE)


ONE_LOSS = pairs(sl.losses.Logistic())
each_logistic = pytest.mark.parametrize(("rule", "penalty"), ONE_LOSS, ids=brief)
# for what happens before rules and penalties have their turn: half of each rule's penalties
HALF = [p for k, p in enumerate(ONE_LOSS) if k % 2 == 0 or p[0] != ONE_LOSS[k - 1][0]]
each_second = pytest.mark.parametrize(("rule", "penalty"), HALF, ids=brief)
LOGISTIC = sl.losses.Logistic()


@each_second
def test_order_within_a_row_is_irrelevant(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC)
    rng = np.random.default_rng(3)
    order = data.rows.copy()
    for a, b in itertools.pairwise(order.indptr):
        shuffled = rng.permutation(b - a)
        order.indices[a:b] = order.indices[a:b][shuffled]
        order.data[a:b] = order.data[a:b][shuffled]
    order.has_sorted_indices = False
    plain, turned = (estimator(rule, penalty, LOGISTIC) for _ in range(2))
    plain.learn_rows(data.rows, data.y, data.w)
    turned.learn_rows(order, data.y, data.w)
    close(turned.coef(N), plain.coef(N))


@each_second
def test_all_ways_in_agree(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC)
    wide = data.rows.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    rounded = data.rows.astype(np.float32)
    same = np.asarray(rounded.toarray(), dtype=float)
    models = [estimator(rule, penalty, LOGISTIC, batch=1) for _ in range(6)]
    rows, dense_rows, long, small, exact, single = models
    rows.learn_rows(data.rows, data.y, data.w)
    dense_rows.learn_rows(data.X, data.y, data.w)
    long.learn_rows(wide, data.y, data.w)
    small.learn_rows(rounded, data.y, data.w)
    exact.learn_rows(same, data.y, data.w)
    # all columns known first
    know_all(single)
    single.learn_rows(data.rows[:1], data.y[:1], data.w[:1])
    for x, y, w in list(zip(data.X, data.y, data.w, strict=True))[1:]:
        single.learn_one({int(j): float(x[j]) for j in np.flatnonzero(x)}, y, w)
    for model in (dense_rows, long, single):
        close(model.coef(N), rows.coef(N))
    close(small.coef(N), exact.coef(N))
    some = {int(j): float(data.X[-1][j]) for j in np.flatnonzero(data.X[-1])}
    assert rows.score_one(some) == pytest.approx(rows.score_rows(data.rows[-1:])[0], rel=1e-9)
    assert rows.score_rows(data.X)[-1] == pytest.approx(rows.score_one(some), rel=1e-9)


@each_second
def test_data_frames_are_events(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC, events=20)
    if penalty.on_simplex:
        return  # its weights depend on which columns are known when
    frame = pd.DataFrame(data.X, columns=[f"f{j}" for j in range(N)])
    many, one = (estimator(rule, penalty, LOGISTIC) for _ in range(2))
    many.learn_many(frame, pd.Series(data.y))
    for x, y in zip(data.X, data.y, strict=True):
        one.learn_one({f"f{j}": v for j, v in enumerate(x)}, y)
    assert many.weights == one.weights


@each_logistic
def test_weight_zero_changes_nothing(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC)
    model = estimator(rule, penalty, LOGISTIC, batch=1 if rule.learns_events else 2)
    model.learn_rows(data.rows[:31], data.y[:31])
    before = flat(model.state())
    model.learn_rows(data.rows[31:], data.y[31:], np.zeros(len(data) - 31))
    model.learn_one({0: 5.0, "never seen": 1.0}, "nor this", 0.0)
    assert same(before, flat(model.state()))


def test_a_label_of_weight_0_is_not_met() -> None:
    model = estimator(sl.rules.Pegasos(), sl.penalties.L2(0.1), LOGISTIC)
    model.learn_rows(np.eye(3), np.array(["a", "b", "c"]), np.array([1.0, 1.0, 0.0]))
    assert model.labels == ["a", "b"]


@each_pair
@pytest.mark.parametrize("great", [1e155, 1e200, 1e308])
def test_state_stays_finite(rule: Any, penalty: Any, great: float) -> None:
    """A row that would overflow is rejected and changes nothing, or the rule can learn it.

    Its values have the signs of the weights, so that its score overflows; one of the labels is on
    the other side.
    """
    loss = some_losses(rule, penalty)[0]
    data = stream_for(loss)
    model = estimator(rule, penalty, loss)
    model.learn_rows(data.rows[:20], data.y[:20])
    labels = {data.y.min(), data.y.max()}
    for label in sorted(labels):
        signs = np.sign(model.coef(N))
        before = flat(model.state())
        try:
            model.learn_one({j: great * signs[j] for j in np.flatnonzero(signs).tolist()}, label)
        except sl.DivergenceError:
            assert same(before, flat(model.state()))
        assert np.isfinite(model.coef(N)).all()
        assert finite(model.state())
    model.learn_rows(data.rows[20:], data.y[20:])
    assert np.isfinite(model.coef(N)).all()


def finite(state: Any) -> bool:
    """Return whether no number in a state is NaN."""
    if isinstance(state, dict):
        return all(map(finite, state.values()))
    if isinstance(state, list | tuple):
        return all(map(finite, state))
    if isinstance(state, np.ndarray) and state.dtype == float:
        return not np.isnan(state).any()
    return not (isinstance(state, float) and math.isnan(state))


# -- resume ---------------------------------------------------------------------------------------


def flat(state: Any) -> Any:
    """State as a list of arrays and plain values."""
    if isinstance(state, dict):
        return [(key, flat(state[key])) for key in sorted(state)]
    if isinstance(state, list | tuple):
        return [flat(item) for item in state]
    return state


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def resumed_alike(model: Any, data: Any, cut: int, path: Any) -> None:
    model.learn_rows(data.rows[:cut], data.y[:cut], data.w[:cut])
    model.save(path)
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), type(model).load(path)]
    scores = model.progressive_rows(data.rows[cut:], data.y[cut:], data.w[cut:])
    state = flat(model.state())
    for twin in twins:
        again = twin.progressive_rows(data.rows[cut:], data.y[cut:], data.w[cut:])
        np.testing.assert_array_equal(again, scores)
        np.testing.assert_array_equal(twin.coef(N), model.coef(N))
        assert twin.weights == model.weights
        assert twin.intercept == model.intercept
        assert same(state, flat(twin.state()))


RESUMED = [pair for i, pair in enumerate(PAIRS) if i % 2 == 0 or pair[0].learns_events]


@pytest.mark.parametrize(("rule", "penalty"), RESUMED, ids=brief)
def test_resume_is_uninterrupted(rule: Any, penalty: Any, tmp_path: Path) -> None:
    place = turn(rule, penalty)
    for k, average in enumerate(averages_of(penalty)):
        loss = some_losses(rule, penalty)[(place + k) % len(some_losses(rule, penalty))]
        model = estimator(
            rule,
            penalty,
            loss,
            average=average,
            batch=1 if rule.learns_events else 3,
            seed=5,
            fit_intercept=not penalty.on_simplex,
        )
        resumed_alike(model, stream_for(loss), 20 + (place + 7 * k) % 30, tmp_path / "model")


@pytest.mark.parametrize("loss", [LOGISTIC, *VECTOR_LOSSES], ids=brief)
@pytest.mark.parametrize("average", ["last", "uniform", "tail", "random"])
def test_resume_of_several_outputs(loss: Any, average: str, tmp_path: Path) -> None:
    data = classes(loss)
    for rule in (sl.rules.DualAveraging(), sl.rules.Pegasos(), sl.rules.AdaGrad(0.1)):
        penalty = sl.penalties.L2(0.3)
        model = estimator(rule, penalty, loss, average=average, seed=5, batch=2, fit_intercept=True)
        resumed_alike(model, data, 25, tmp_path / "model")


@pytest.mark.parametrize("at", [1021, 1022, 1023, 1024, 1025])
@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.Mixture(), sl.penalties.Zero()),
        (sl.rules.DualAveraging(), sl.penalties.L1(0.01)),
        (sl.rules.ForwardBackward(0.1), sl.penalties.L1(0.01)),
        (sl.rules.Pegasos(), sl.penalties.L2(0.1)),
        (sl.rules.AcceleratedDualAveraging(), sl.penalties.L1(0.01)),
    ],
    ids=brief,
)
def test_resume_where_the_ledger_is_full(rule: Any, penalty: Any, at: int, tmp_path: Path) -> None:
    data = stream_for(LOGISTIC, events=1040, weighed=False)
    model = estimator(rule, penalty, LOGISTIC, average="uniform")
    resumed_alike(model, data, at, tmp_path / "model")


# -- intercepts -----------------------------------------------------------------------------------


def with_ones(data: Any) -> Any:
    return dataclasses.replace(data, X=np.hstack([np.ones((len(data), 1)), data.X]))


@each_logistic
def test_a_penalised_intercept_is_a_column_of_ones(rule: Any, penalty: Any) -> None:
    if penalty.on_simplex:
        return
    data = stream_for(LOGISTIC)
    ones = with_ones(data)
    inside = estimator(rule, penalty, LOGISTIC, fit_intercept="penalized")
    column = estimator(rule, penalty, LOGISTIC)
    inside.learn_rows(data.rows, data.y, data.w)
    column.learn_rows(ones.rows, ones.y, ones.w)
    close(np.r_[inside.intercept, inside.coef(N)], column.coef(N + 1))
    if rule.intercept == "inside":
        true = estimator(rule, penalty, LOGISTIC, fit_intercept=True)
        true.learn_rows(data.rows, data.y, data.w)
        np.testing.assert_array_equal(true.coef(N), inside.coef(N))


@pytest.mark.parametrize("rho", [0.0, 0.03])
def test_a_free_intercept_has_threshold_0(rho: float) -> None:
    """[Xiao10] Algorithm 2, the note on the bias: no truncation, the same steps."""
    data = with_ones(stream_for(LOGISTIC))
    gamma, strength = 0.7, 0.03
    model = estimator(
        sl.rules.DualAveraging(gamma, rho), sl.penalties.L1(strength), LOGISTIC, fit_intercept=True
    )
    model.learn_rows(data.rows[:, 1:], data.y, data.w)
    w, s, t = np.zeros(N + 1), np.zeros(N + 1), 0
    for x, y, weight in zip(data.X, data.y, data.w, strict=True):
        if weight > 0.0:
            t += 1
            s = s - weight * y / (1.0 + np.exp(y * (x @ w))) * x
            threshold = np.full(N + 1, t * strength + gamma * rho * np.sqrt(t))
            threshold[0] = 0.0
            w = -np.sign(s) * np.maximum(0.0, np.abs(s) - threshold) / (gamma * np.sqrt(t))
    close(np.r_[model.intercept, model.coef(N)], w)
    assert (w[1:] == 0.0).any()


# -- classes --------------------------------------------------------------------------------------


@each_logistic
def test_classes_are_mirrored(rule: Any, penalty: Any) -> None:
    data = stream_for(LOGISTIC, weighed=False)
    positive = data.y > 0
    free = not penalty.on_simplex
    average = "uniform" if "uniform" in averages_of(penalty) else "last"
    expected: Any = None
    for labels in (
        data.y,
        positive,
        positive.astype(int),
        np.where(positive, 7.5, -3.0),
        np.where(positive == positive[0], "a", "b"),
    ):
        model = estimator(rule, penalty, LOGISTIC, fit_intercept=free, average=average)
        model.learn_rows(data.rows, labels, data.w)
        scores = model.score_rows(data.rows)
        expected = scores if expected is None else expected
        if labels.dtype.kind == "U" and positive[0]:
            scores = -scores if free else scores  # of strings the second one is the positive one
        if free or labels.dtype.kind != "U":
            close(scores, expected)
    if free:
        model = estimator(rule, penalty, LOGISTIC, fit_intercept=True, average=average)
        model.learn_rows(data.rows, -data.y, data.w)
        close(model.score_rows(data.rows), -expected)


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.Pegasos(), sl.penalties.L2(0.3)),
        (sl.rules.DualAveraging(0.7), sl.penalties.L1(0.02)),
        (sl.rules.AdaGrad(0.1), sl.penalties.L1(0.02)),
        (sl.rules.Mixture(), sl.penalties.Zero()),
    ],
    ids=brief,
)
def test_one_versus_the_rest(rule: Any, penalty: Any) -> None:
    """Each class is learned as if alone; the third one from when it appears."""
    data = classes(LOGISTIC)
    model = estimator(rule, penalty, LOGISTIC)
    model.learn_rows(data.rows, data.y)
    coefficients = model.coef(N)
    assert coefficients.shape == (3, N)
    for k, label in enumerate(model.labels):
        start = 0 if k < 2 else int(np.flatnonzero(data.y == label)[0])
        alone = estimator(rule, penalty, LOGISTIC)
        alone.learn_rows(data.rows[start:], np.where(data.y[start:] == label, 1, -1))
        close(coefficients[k], alone.coef(N))


@pytest.mark.parametrize("loss", VECTOR_LOSSES, ids=brief)
@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.Pegasos(0.5), sl.penalties.L2(0.3)),
        (sl.rules.DualAveraging(0.7), sl.penalties.L1(0.02)),
        (sl.rules.DualAveraging(0.7), sl.penalties.LpSquared(0.2, 1.4)),
        (sl.rules.AdaGrad(0.1), sl.penalties.L1(0.02)),
        (sl.rules.Adaptive(1.0), sl.penalties.L2(0.3)),
    ],
    ids=brief,
)
def test_several_outputs_are_one_vector(rule: Any, penalty: Any, loss: Any) -> None:
    """The reference on the flattened matrix, with the gradient of the vector loss."""
    data = classes(loss)
    k = int(loss.outputs or 3)
    model = estimator(rule, penalty, loss)
    if loss.kind == "multiclass":
        # every class known first, at no step
        order = [int(np.flatnonzero(data.y == label)[0]) for label in range(k)]
        for i in order:
            model._add_label(int(data.y[i]))
    model.learn_rows(data.rows, data.y, data.w)
    slow = maker(rule)(k * N, Flat(), dense_penalty(penalty))
    for x, y, weight in zip(data.X, data.y, data.w, strict=True):
        if weight > 0.0:
            f = slow.w.reshape(k, N) @ x
            slope = dense_loss(loss).slope(f, int(y) if loss.kind == "multiclass" else y)
            slow.step(np.outer(slope, x).ravel(), 0.0, weight)
    close(model.coef(N), slow.w.reshape(k, N))


class Flat(Loss):
    """Rows that are gradients already."""

    def value(self, p: Any, y: Any) -> Any:
        return np.zeros_like(np.asarray(p) + y)

    def slope(self, p: Any, y: Any) -> Any:
        return np.ones_like(np.asarray(p) + y)


def classes(loss: Any) -> Any:
    """Three classes (or as many as the loss has), or targets."""
    k = int(getattr(loss, "outputs", 0) or 3)
    data = dataclasses.replace(stream_for(LOGISTIC, seed=4))
    rng = np.random.default_rng(8)
    y: Any = rng.normal(size=(len(data), k))
    if loss.kind != "multitarget":
        y = np.argmax(data.X @ rng.normal(size=(N, k)) + 0.3 * y, axis=1)
    data.y = y
    if loss.kind == "binary":
        data.w = np.ones(len(data))
    return data
