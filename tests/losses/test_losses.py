"""Exact values of the losses ([Teo07] Tables 1 and 2), slopes at kinks, invalid parameters."""

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import streamlearn.losses as sl

E = math.e

# The thirteen rows of [Teo07] Table 1: loss, f, y, value, slope.
TABLE_1 = [
    (sl.Hinge(0), -0.5, 1, 0.5, -1),
    (sl.Hinge(0), 0.5, 1, 0, 0),
    (sl.SquaredHinge(0), -0.5, 1, 0.125, -0.5),
    (sl.SquaredHinge(0), 0.5, 1, 0, 0),
    (sl.Hinge(), 0.25, 1, 0.75, -1),
    (sl.Hinge(), 0.25, -1, 1.25, 1),
    (sl.SquaredHinge(), 0.5, -1, 1.125, 1.5),
    (sl.SquaredHinge(), 2, 1, 0, 0),
    (sl.Exponential(), 1, -1, E, E),
    (sl.Exponential(), 1, 1, 1 / E, -1 / E),
    (sl.Logistic(), 1, 1, math.log(1 + 1 / E), -1 / (1 + E)),
    (sl.Logistic(), 1, -1, math.log(1 + E), 1 / (1 + 1 / E)),
    (sl.Novelty(), 0.25, 1, 0.75, -1),  # the table prints the slope 0 from f = 0 on
    (sl.Novelty(), 1.5, 1, 0, 0),
    (sl.Squared(), 3, 1, 2, 2),
    (sl.Absolute(), 3, 1, 2, 1),
    (sl.Absolute(), -3, 1, 4, -1),
    (sl.Quantile(0.9), 0, 1, 0.9, -0.9),
    (sl.Quantile(0.9), 3, 1, 0.2, 0.1),
    (sl.EpsilonInsensitive(0.5), 3, 1, 1.5, 1),
    (sl.EpsilonInsensitive(0.5), 1.25, 1, 0, 0),
    (sl.Huber(), 1.5, 1, 0.125, 0.5),
    (sl.Huber(), -3, 1, 3.5, -1),
    (sl.Poisson(), 1, 2, E - 2, E - 2),
]


@pytest.mark.parametrize(("loss", "f", "y", "value", "slope"), TABLE_1)
def test_table_1(loss: Any, f: Any, y: Any, value: Any, slope: Any) -> None:
    assert loss.value(f, y) == pytest.approx(value, rel=1e-14)
    assert loss.slope(f, y) == pytest.approx(slope, rel=1e-14)


@pytest.mark.parametrize(
    ("loss", "f", "y", "slope"),
    [
        (sl.Hinge(), 1, 1, 0),
        (sl.Hinge(), -1, -1, 0),
        (sl.Hinge(2.5), -2.5, -1, 0),
        (sl.Hinge(0), 0, 1, -1),
        (sl.Hinge(0), 0, -1, 1),
        (sl.SquaredHinge(0), 0, 1, 0),
        (sl.Novelty(), 1, 1, 0),
        (sl.Novelty(0), 0, 1, 0),
        (sl.Absolute(), 2, 2, 0),
        (sl.Quantile(0.9), 2, 2, -0.9),  # [Teo07] Table 1: tau - 1 or tau, of f = y - p
        (sl.EpsilonInsensitive(0.5), 1.5, 1, 0),
        (sl.EpsilonInsensitive(0.5), 0.5, 1, 0),
    ],
)
def test_slope_at_the_kink(loss: Any, f: Any, y: Any, slope: Any) -> None:
    assert loss.slope(float(f), y) == slope


@pytest.mark.parametrize("way", ["implicit", "flow"])
@pytest.mark.parametrize(
    ("loss", "p", "y", "kink"),
    [
        (sl.Hinge(), -0.5, 1, 1),
        (sl.Hinge(0), 0.5, -1, 0),
        (sl.Novelty(2), 0.5, 1, 2),
        (sl.Absolute(), 3, 1, 1),
        (sl.Quantile(0.9), 0.5, 1, 1),
        (sl.EpsilonInsensitive(0.5), 3, 1, 1.5),
    ],
)
def test_a_long_step_ends_at_the_kink(loss: Any, p: Any, y: Any, kink: Any, way: Any) -> None:
    h = getattr(loss, way)(p, y, 100.0)
    assert p - 100 * h == pytest.approx(kink, abs=1e-12)
    assert getattr(loss, way)(kink, y, 100.0) == 0


def test_quantile_aims_at_its_quantile() -> None:
    labels = np.arange(1.0, 101.0)
    total = [sl.Quantile(0.9).value(p, labels).sum() for p in np.arange(0, 101, 0.5)]
    assert np.argmin(total) * 0.5 == pytest.approx(90, abs=1)


def excess(m: Any, b: Any, s: Any) -> Any:
    """Return s b + e^m (e^(s b) - 1) - b, which is 0 for the flow of Logistic."""
    m, b, s = Decimal(m), Decimal(b), Decimal(s)
    return s * b + m.exp() * ((s * b).exp() - 1) - b


@pytest.mark.parametrize("b", [1e-300, 1e-12, 1e-3, 1.0, 50.0, 1e6, 1e300])
def test_logistic_flow_is_exact(b: Any) -> None:
    with localcontext(prec=700):
        for m in (-1e6, -37.5, -36.5, -5.0, 0.7, 36.5, 37.5):
            s = -sl.Logistic().flow(m, 1.0, b)
            assert 0 < s <= 1
            assert excess(m, b, s * (1 - 1e-12)) < 0 < excess(m, b, s * (1 + 1e-12))


def test_extremes_go_on_along_the_tangent() -> None:
    loss = sl.Exponential()
    assert loss.slope(-1e6, 1) == loss.slope(-700.0, 1) == -math.exp(700)
    assert loss.value(-701.0, 1) == pytest.approx(2 * math.exp(700))
    assert sl.Poisson().slope(1e6, 0.0) == math.exp(700)
    assert sl.Logistic().value(-1e300, 1) == 1e300
    assert sl.Squared().value(1e300, 0.0) == np.finfo(float).max


def test_labels_and_responses() -> None:
    poisson = sl.Poisson()
    assert poisson.is_label(0.0)
    assert poisson.is_label(2.5)
    assert not poisson.is_label(-1.0)
    assert poisson.score(0.0) == -20
    assert poisson.score(5.0) == math.log(5)
    assert poisson.response(2.0) == math.exp(2)
    assert sl.Hinge().is_label(-1.0)
    assert not sl.Hinge().is_label(0.0)
    assert not sl.Squared().is_label(math.inf)
    assert sl.Novelty().is_label(0.0)


def test_declared_properties() -> None:
    assert [sl.Hinge(t).ball_proved for t in (0, 1, 1.5)] == [True, True, False]
    assert sl.Logistic().ball_proved
    assert sl.Exponential().ball_proved
    assert not sl.SquaredHinge().ball_proved
    assert not sl.SquaredHinge(0).leaves_zero
    assert sl.Hinge(0).leaves_zero
    assert sl.SquaredHinge(2.0).probability(1.0) == 0.75
    assert not sl.SquaredHinge(0).has_probability
    assert sl.Squared().score_is_label
    assert not sl.Poisson().score_is_label
    assert not sl.Logistic().score_is_label
    assert sl.MultiSquared([[2, 1], [1, 2]]).curvature_bound == pytest.approx(3)


@pytest.mark.parametrize(
    ("make", "argument", "parameter"),
    [
        (sl.Hinge, -0.5, "threshold"),
        (sl.Hinge, math.nan, "threshold"),
        (sl.Hinge, math.inf, "threshold"),
        (sl.SquaredHinge, "1", None),
        (sl.SquaredHinge, "one", "threshold"),
        (sl.SquaredHinge, None, "threshold"),
        (sl.Novelty, -1, "threshold"),
        (sl.Quantile, 0, "tau"),
        (sl.Quantile, 1.0, "tau"),
        (sl.Quantile, math.nan, "tau"),
        (sl.EpsilonInsensitive, -0.1, "epsilon"),
        (sl.Huber, 0, "delta"),
        (sl.Huber, -1.0, "delta"),
        (sl.MulticlassHinge, [[0, -1], [1, 0]], "cost"),
        (sl.MulticlassHinge, {"a": {"b": -1}}, "cost"),
        (sl.MulticlassHinge, {"a": {"a": 2}}, "cost"),
        (sl.MulticlassHinge, [[0, 1, 2]], "cost"),
        (sl.MulticlassHinge, "cost", "cost"),
        (sl.MulticlassHinge, {"a": 1}, "cost"),
        (sl.MulticlassHinge, [[0, math.nan], [1, 0]], "cost"),
        (sl.MultiSquared, [[1, 2], [2, 1]], "metric"),
        (sl.MultiSquared, [[1, 1], [0, 1]], "metric"),
        (sl.MultiSquared, [1, 2], "metric"),
        (sl.MultiSquared, [[math.inf]], "metric"),
    ],
)
def test_invalid_parameters_are_named(make: Any, argument: Any, parameter: Any) -> None:
    if parameter is None:
        assert make(argument) == make(float(argument))
        return
    with pytest.raises(ValueError, match=parameter):
        make(argument)


def test_rescale_is_checked() -> None:
    with pytest.raises(ValueError, match="rescale"):
        sl.MulticlassHinge(rescale=-1)
    with pytest.raises(ValueError, match="cost"):
        sl.MulticlassHinge([[0.0, 1e9], [1.0, 0.0]], 100.0)


COST: list[list[float]] = [[0, 1, 4], [0.5, 0, 2], [3, 1, 0]]
F = [0.2, -0.3, 0.1]


def test_multiclass_hinge() -> None:
    loss = sl.MulticlassHinge()
    assert loss.value(F, 1) == pytest.approx(1.5)
    assert loss.slope(F, 1).tolist() == [1, -1, 0]
    assert loss.value([3.0, 0.0, 0.0], 0) == 0
    assert loss.slope([1.0, 0.0, -1.0], 0).tolist() == [0, 0, 0]  # the kink: a tie with the truth


def test_multiclass_hinge_with_costs() -> None:
    loss = sl.MulticlassHinge(COST)
    assert loss.value(F, 0) == pytest.approx(3.9)
    assert loss.slope(F, 0).tolist() == [-1, 0, 1]
    assert loss.value(F, 1) == pytest.approx(2.4)
    assert loss.slope(F, 1).tolist() == [0, -1, 1]


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_multiclass_hinge_rescaled(beta: Any) -> None:
    loss = sl.MulticlassHinge(COST, beta)
    for y in range(3):
        terms = [COST[y][i] ** beta * (F[i] - F[y] + COST[y][i]) for i in range(3)]
        best = int(np.argmax(terms))
        assert loss.value(F, y) == pytest.approx(max(terms))
        expected = COST[y][best] ** beta * (np.eye(3)[best] - np.eye(3)[y])
        np.testing.assert_allclose(loss.slope(F, y), expected)


def test_costs_by_label() -> None:
    loss = sl.MulticlassHinge({"a": {"b": 4.0, "z": 9.0}, "c": {"a": 0.5}}, rescale=1)
    with pytest.raises(ValueError, match="bound"):
        loss.value(F, 0)
    bound = loss.bound(["c", "a", "b"])
    assert bound.cost == ((0, 0.5, 1), (1, 0, 4), (1, 1, 0))
    assert bound.rescale == 1
    assert bound.bound([1, 2, 7]).cost == ((0, 4, 1), (1, 0, 1), (1, 1, 0))
    assert loss.bound([]) is loss
    assert sl.MulticlassHinge().bound(["a", "b"]) == sl.MulticlassHinge()
    assert loss.params == {"cost": {"a": {"b": 4.0, "z": 9.0}, "c": {"a": 0.5}}, "rescale": 1.0}


def test_costs_cannot_be_changed() -> None:
    costs = {"a": {"b": 4.0}}
    loss = sl.MulticlassHinge(costs)
    costs["a"]["b"] = 5.0
    loss.params["cost"]["a"]["b"] = 6.0
    handed_out: Any = loss.cost
    handed_out["a"]["b"] = 7.0
    assert loss == sl.MulticlassHinge({"a": {"b": 4.0}})


def test_softmax_keeps_its_digits() -> None:
    slope = sl.Softmax().slope([50.0, 0.0], 0)
    assert slope[1] == pytest.approx(math.exp(-50), rel=1e-14)
    assert slope[0] == -slope[1]
    assert sl.Softmax().value([1000.0, 0.0], 1) == 1000


def test_metric() -> None:
    metric = np.array([[2.0, -0.5], [-0.5, 1.0]])
    r = np.array([1.5, -2.0])
    loss = sl.MultiSquared(metric)
    assert loss.value(r + 1, np.ones(2)) == pytest.approx(0.5 * r @ metric @ r)
    np.testing.assert_allclose(loss.slope(r + 1, np.ones(2)), metric @ r)
    assert sl.MultiSquared().value(r, [0.0, 0.0]) == pytest.approx(0.5 * r @ r)


def test_base_classes_are_abstract() -> None:
    for cls in (sl.Loss, sl.VectorLoss):
        with pytest.raises(TypeError, match="abstract"):
            cls()
