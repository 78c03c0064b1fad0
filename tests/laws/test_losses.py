"""What must hold for every loss; members are discovered, so a new one is covered."""

import copy
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import streamlearn.losses
from streamlearn.losses import Loss, VectorLoss

Vector = np.ndarray[Any, Any]


def leaves(cls: Any) -> list[Any]:
    below = cls.__subclasses__()
    return [leaf for sub in below for leaf in leaves(sub)] if below else [cls]


SCALAR = [loss for cls in leaves(Loss) for loss in cls.examples()]
VECTOR = [loss for cls in leaves(VectorLoss) for loss in cls.examples()]
scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)
vector = pytest.mark.parametrize("loss", VECTOR, ids=repr)
every = pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)

SCORES = np.linspace(-4, 4, 161) + 0.013
STEPS = [1e-9, 1e-3, 0.1, 1.0, 7.0, 1e3]
EXTREMES = [
    sign * size
    for sign in (-1.0, 1.0)
    for size in (0.0, 5e-324, 1e-300, 1e-9, 0.5, 1.0, 36.9, 37.1, 699.9, 701.0, 1e6, 5e18, 1e155)
] + [1e300, -1e300, 1.7e308, -1.7e308]
LENGTHS = [0.0, 5e-324, 1e-300, 1e-20, 1e-7, 0.5, 3.0, 40.0, 1e6, 1e30, 1e300, 1.7e308]


def labels(loss: Any) -> list[float]:
    if loss.kind == "one-class":
        return [1.0]
    return [y for y in (-2.0, -1.0, -0.3, 0.0, 1.0, 3.2) if loss.is_label(y)]


def away_from_jumps(function: Any, points: Vector, y: Any, reach: float = 1e-5) -> Vector:
    """Where the function of a point and a label has no jump nearby."""
    below, above = function(points - reach, y), function(points + reach, y)
    calm: Vector = np.abs(above - below) < 1e-3 * (1 + np.abs(below))
    return calm


def derivative(function: Any, points: Vector, y: Any, reach: float = 1e-5) -> Vector:
    rise: Vector = function(points + reach, y) - function(points - reach, y)
    return rise / (2 * reach)


@every
def test_is_public(loss: Any) -> None:
    assert type(loss).__name__ in streamlearn.losses.__all__
    assert loss.kind in {"binary", "one-class", "regression", "multiclass", "multitarget"}


@every
def test_is_a_value(loss: Any) -> None:
    again = eval(repr(loss), vars(streamlearn.losses).copy())  # noqa: S307 - what repr wrote
    for twin in (again, pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss), copy.copy(loss)):
        assert type(twin) is type(loss)
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert twin.params == loss.params
    assert type(loss)(**loss.params) == loss
    for name in [*loss.params, "curvature_bound", "leaves_zero", "anything"]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(loss, name, 1)


@every
def test_refuses_unknown_arguments(loss: Any) -> None:
    with pytest.raises(TypeError):
        type(loss)(**loss.params, anything=1)
    with pytest.raises(TypeError):
        type(loss)(*loss.params.values(), 1)


def test_examples_differ() -> None:
    for one, other in itertools.combinations(SCALAR + VECTOR, 2):
        assert one != other


@scalar
def test_a_few_values_add_up(loss: Any) -> None:
    """With slopes that are known or not, and with weights that are alike or not."""
    for y in labels(loss):
        scores = SCORES[::7].tolist()
        for p in (*scores, *EXTREMES):
            value = loss.value(p, y)
            for slope in (math.nan, loss.slope(p, y)):
                assert loss.total([(p, y, 1.0, slope)]) == pytest.approx(
                    value, rel=1e-14, abs=1e-300
                )
        for n in (64, 17, 1, 0):
            few = scores[:n]
            for weights in (np.full(len(few), 0.5), np.linspace(0.5, 2.0, len(few))):
                slopes = np.where(np.arange(len(few)) % 2, math.nan, loss.slope(np.array(few), y))
                events = list(zip(few, [y] * len(few), weights.tolist(), slopes, strict=True))
                expected = math.fsum((weights * loss.value(np.array(few), y)).tolist())
                assert loss.total(events) == pytest.approx(expected, rel=1e-13, abs=1e-300)


@scalar
def test_slope_is_the_derivative(loss: Any) -> None:
    compared = 0
    for y in labels(loss):
        points = SCORES[away_from_jumps(loss.slope, SCORES, y)]
        compared += len(points)
        expected = derivative(loss.value, points, y)
        np.testing.assert_allclose(loss.slope(points, y), expected, rtol=1e-5, atol=1e-6)
    assert compared > 0.95 * len(SCORES) * len(labels(loss))


@scalar
def test_curvature_is_the_derivative_of_the_slope(loss: Any) -> None:
    for y in labels(loss):
        smooth = away_from_jumps(loss.slope, SCORES, y)
        smooth &= away_from_jumps(loss.curvature, SCORES, y)
        points = SCORES[smooth]
        expected = derivative(loss.slope, points, y)
        np.testing.assert_allclose(loss.curvature(points, y), expected, rtol=1e-5, atol=1e-6)


@scalar
def test_curvature_bound_is_tight(loss: Any) -> None:
    wide = np.linspace(-80, 80, 16001)
    curvature = np.concatenate([loss.curvature(wide, y) for y in labels(loss)])
    assert curvature.min() >= 0
    assert curvature.max() <= loss.curvature_bound
    assert loss.smooth == math.isfinite(loss.curvature_bound)
    if loss.smooth:
        assert curvature.max() > 0.999 * loss.curvature_bound
        for y in labels(loss):
            rise = np.diff(loss.slope(wide, y))
            assert np.all(rise <= loss.curvature_bound * np.diff(wide) * (1 + 1e-9))


@scalar
def test_is_convex(loss: Any) -> None:
    for y in labels(loss):
        values, slopes = loss.value(SCORES, y), loss.slope(SCORES, y)
        assert np.all(np.diff(slopes) >= 0)
        tangents = values[:, None] + slopes[:, None] * (SCORES[None, :] - SCORES[:, None])
        assert np.all(tangents <= values[None, :] + 1e-9 * (1 + np.abs(tangents)))


@scalar
def test_leaves_zero(loss: Any) -> None:
    flat = all(loss.slope(0.0, y) == 0 for y in labels(loss))
    assert loss.leaves_zero != flat


@scalar
def test_ball_is_proved_only_where_it_holds(loss: Any) -> None:
    """With one example x = y = 1 the minimizer of strength/2 w^2 + loss(w) is in the ball."""
    if not loss.ball_proved:
        return
    for strength in (1e-3, 0.1, 1.0, 10.0):
        w = -loss.implicit(0.0, 1.0, 1 / strength) / strength
        assert 0 <= w <= 1 / math.sqrt(strength) * (1 + 1e-9)


@scalar
def test_implicit_step_is_the_proximal_point(loss: Any) -> None:
    """The result h is a subgradient at q = p - h b: between the slopes on either side of q."""
    for y, b, p in itertools.product(labels(loss), STEPS, SCORES[::8]):
        h = loss.implicit(p, y, b)
        q = p - h * b
        reach = 1e-9 * (1 + abs(q))
        slack = 1e-9 * (1 + abs(h))
        assert loss.slope(q - reach, y) - slack <= h <= loss.slope(q + reach, y) + slack


@scalar
def test_implicit_step_is_exact_for_a_tiny_slope(loss: Any) -> None:
    """Far out on a flat side the relative error must be small too."""
    for y, b in itertools.product(labels(loss), (1e-3, 1.0, 1e3)):
        for p in (-40.0, -20.0, 20.0, 40.0):
            h = loss.implicit(p, y, b)
            q = p - h * b
            if abs(h) * b < 1e-3 and loss.slope(q, y) == loss.slope(np.nextafter(q, 0), y):
                assert h == pytest.approx(loss.slope(q, y), rel=1e-9, abs=0)


def followed(loss: Any, p: Vector, y: Vector, b: Vector, steps: int = 250) -> Vector:
    """The end of dp/ds = -slope(p), by Runge and Kutta's method; early steps are short."""
    for fraction in np.diff(np.linspace(0, 1, steps + 1) ** 3):
        d = b * fraction
        k1 = loss.slope(p, y)
        k2 = loss.slope(p - d / 2 * k1, y)
        k3 = loss.slope(p - d / 2 * k2, y)
        k4 = loss.slope(p - d * k3, y)
        p = p - d / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return p


@scalar
def test_flow_follows_the_slope(loss: Any) -> None:
    grid = np.meshgrid(labels(loss), [1e-3, 0.1, 1.0, 3.0], list(SCORES[::8]), indexing="ij")
    y, b, p = (axis.ravel() for axis in grid)
    end = np.array([pi - loss.flow(pi, yi, bi) * bi for pi, yi, bi in zip(p, y, b, strict=True)])
    # The numeric path is less exact across a bend, and jumps to and fro at a kink.
    jump = max(np.abs(np.diff(loss.slope(np.arange(-4, 4, 1e-3), v))).max() for v in labels(loss))
    slack = 1e-4 if jump < 0.1 else 0.04 * b
    assert np.all(np.abs(end - followed(loss, p, y, b)) <= slack)


@scalar
@pytest.mark.parametrize("way", ["implicit", "flow"])
def test_a_short_step_takes_the_slope(loss: Any, way: str) -> None:
    for y, p in itertools.product(labels(loss), SCORES):
        slope = loss.slope(p, y)
        assert getattr(loss, way)(p, y, 0.0) == slope
        for b in (1e-300, 1e-20, 1e-12):
            assert math.isclose(getattr(loss, way)(p, y, b), slope, rel_tol=1e-9)


@scalar
@pytest.mark.parametrize("way", ["implicit", "flow"])
def test_a_longer_step_has_a_smaller_mean_slope(loss: Any, way: str) -> None:
    for y, p in itertools.product(labels(loss), SCORES[::8]):
        slopes = [abs(getattr(loss, way)(p, y, b)) for b in np.geomspace(1e-8, 1e8, 33)]
        assert np.all(np.diff(slopes) <= 1e-12 * np.array(slopes[1:]))


@scalar
def test_two_flows_are_one(loss: Any) -> None:
    for y, p, b in itertools.product(labels(loss), [-900.0, -30.0, 0.4, 38.0], [0.3, 20.0, 1e3]):
        halfway = p - loss.flow(p, y, b / 2) * (b / 2)
        end = halfway - loss.flow(halfway, y, b / 2) * (b / 2)
        assert p - loss.flow(p, y, b) * b == pytest.approx(end, rel=1e-9, abs=1e-9)


WIDE = np.concatenate([np.linspace(-60, 60, 2401), [-1e9, -1e4, 1e4, 1e9]])


@scalar
def test_conjugate_is_above_every_line(loss: Any) -> None:
    """The inequality of Fenchel and Young: a p <= l(p) + l*(a)."""
    for y in labels(loss):
        a = np.linspace(-3, 3, 61)
        excess = a[:, None] * WIDE - loss.value(WIDE, y)
        slack = 1e-9 * (1 + np.abs(WIDE))
        assert np.all(excess - slack <= loss.conjugate(a, y)[:, None])


@scalar
def test_conjugate_is_met_at_the_slope(loss: Any) -> None:
    for y in labels(loss):
        p = np.concatenate([SCORES, [-30.0, 30.0]])
        a = loss.slope(p, y)
        terms = np.abs(a * p) + loss.value(p, y)
        np.testing.assert_array_less(
            np.abs(loss.conjugate(a, y) - (a * p - loss.value(p, y))), 1e-12 * (1 + terms)
        )


@scalar
def test_conjugate_is_finite_between_the_slopes_only(loss: Any) -> None:
    for y in labels(loss):
        low, high = loss.slope(-1e300, y), loss.slope(1e300, y)
        for a in {low, high, 0.0, 0.5 * low, 0.5 * high, 0.9 * low + 0.1 * high}:
            assert math.isfinite(loss.conjugate(a, y))
        for a in (low - 1e-3, high + 1e-3):
            if low < a < high or abs(a) > 1e200:
                continue
            assert loss.conjugate(a, y) == math.inf


@scalar
def test_lowest_is_the_infimum(loss: Any) -> None:
    for y in labels(loss):
        at_rest = loss.score(y) if loss.kind == "regression" else y * 60.0
        least = min(loss.value(WIDE, y).min(), loss.value(at_rest, y))
        assert loss.lowest(y) == pytest.approx(least, abs=1e-8)
        assert loss.lowest(y) <= least + 1e-12


@scalar
def test_is_finite_everywhere(loss: Any) -> None:
    for y in {*labels(loss), *(y for y in EXTREMES if loss.is_label(y))}:
        for p in EXTREMES:
            faces = [loss.value(p, y), loss.slope(p, y), loss.curvature(p, y), loss.response(p)]
            assert np.all(np.isfinite(faces))
            for b in LENGTHS:
                for h in (loss.implicit(p, y, b), loss.flow(p, y, b)):
                    assert math.isfinite(h)
                    assert h * loss.slope(p, y) >= 0
                    assert abs(h) <= abs(loss.slope(p, y)) * (1 + 1e-9)


@scalar
def test_labels(loss: Any) -> None:
    for y in (math.nan, math.inf, -math.inf):
        assert loss.kind == "one-class" or not loss.is_label(y)
    for y in labels(loss):
        assert math.isfinite(loss.score(y))
        if loss.score_is_label:
            assert loss.response(loss.score(y)) == y
        elif loss.kind == "regression":
            assert loss.response(loss.score(y)) == pytest.approx(y, rel=1e-12, abs=1e-8)


@scalar
def test_probability(loss: Any) -> None:
    if not loss.has_probability:
        assert loss.probability(0.3) is None
        return
    p = np.array(sorted({*EXTREMES, *SCORES}))
    probability = loss.probability(p)
    assert np.all(np.diff(probability) >= 0)
    assert probability[0] == 0
    assert probability[-1] == 1
    np.testing.assert_allclose(probability + loss.probability(-p), 1, rtol=1e-12)


@scalar
def test_probability_belongs_to_the_loss(loss: Any) -> None:
    """Where labels are +1 with the probability at p, p is a best score."""
    if loss.has_probability:
        for p in np.linspace(-0.9, 0.9, 19) * loss.params.get("threshold", 3.0):
            q = loss.probability(p)
            assert q * loss.slope(p, 1.0) + (1 - q) * loss.slope(p, -1.0) == pytest.approx(0)


@scalar
def test_arrays_are_numbers_at_once(loss: Any) -> None:
    ys = np.array(labels(loss))
    for face in (loss.value, loss.slope, loss.curvature):
        table = face(SCORES[:, None], ys)
        assert table.shape == (len(SCORES), len(ys))
        one = face(float(SCORES[3]), float(ys[-1]))
        assert type(one) is float
        assert table[3, -1] == one
        assert face(np.float64(SCORES[3]), ys[-1]) == one
        assert face(SCORES[:0], 1.0).shape == (0,)


def outputs(loss: Any, count: int = 40) -> tuple[Vector, Vector]:
    """Outputs and labels for them."""
    random = np.random.default_rng(7)
    k = loss.outputs or 4
    f = random.normal(size=(count, k)) * 2
    y = random.normal(size=(count, k)) if loss.kind == "multitarget" else np.arange(count) % k
    return f, y


@vector
def test_vector_slope_is_the_gradient(loss: Any) -> None:
    f, y = outputs(loss)
    slope = loss.slope(f, y)
    for unit, column in zip(np.eye(f.shape[1]), slope.T, strict=True):
        reach = 1e-6 * unit
        expected = (loss.value(f + reach, y) - loss.value(f - reach, y)) / 2e-6
        np.testing.assert_allclose(column, expected, atol=1e-6)


@vector
def test_vector_loss_is_convex(loss: Any) -> None:
    f, y = outputs(loss)
    for g in (f[::-1], f + 0.1, -3 * f):
        tangent = loss.value(f, y) + np.sum(loss.slope(f, y) * (g - f), axis=1)
        assert np.all(tangent <= loss.value(g, y) + 1e-9)


@vector
def test_vector_conjugate(loss: Any) -> None:
    """Above every plane, met at the slope, linear bounds at mixtures, infinite away from slopes."""
    f, y = outputs(loss)
    a = loss.slope(f, y)
    conjugate = loss.conjugate(a, y)
    np.testing.assert_allclose(conjugate, np.sum(a * f, axis=1) - loss.value(f, y), atol=1e-9)
    for g in (f[::-1], f + 0.1, -3 * f, 1e3 * f):
        for mixed in (a, 0.5 * a, 0.3 * a + 0.7 * loss.slope(g, y)):
            excess = np.sum(mixed * g, axis=1) - loss.value(g, y)
            assert np.all(excess <= loss.conjugate(mixed, y) + 1e-9 * (1 + np.abs(g).max()))
            assert np.all(np.isfinite(loss.conjugate(mixed, y)))
    least = -loss.conjugate(np.zeros_like(f), y)
    assert np.all(least <= loss.value(f, y))
    if loss.kind == "multiclass":
        assert np.all(least == 0)
        assert np.all(loss.conjugate(a + 0.1, y) == math.inf)
        assert np.all(loss.conjugate(30.0 * np.eye(f.shape[1])[np.asarray(y)], y) == math.inf)
    elif loss.params["metric"] == ((1.0, 1.0), (1.0, 1.0)):
        assert np.all(loss.conjugate(a + np.array([0.1, -0.1]), y) == math.inf)


@vector
def test_vector_curvature_bound(loss: Any) -> None:
    f, y = outputs(loss)
    assert loss.smooth == math.isfinite(loss.curvature_bound)
    if loss.smooth:
        for g in (f[::-1], f + 1e-3 * f[::-1]):
            rise = np.linalg.norm(loss.slope(g, y) - loss.slope(f, y), axis=1)
            assert np.all(rise <= loss.curvature_bound * np.linalg.norm(g - f, axis=1) + 1e-12)


@vector
def test_class_slopes_sum_to_zero(loss: Any) -> None:
    if loss.kind == "multiclass":
        assert np.abs(loss.slope(*outputs(loss)).sum(axis=1)).max() < 1e-15


@vector
def test_vector_loss_is_finite_everywhere(loss: Any) -> None:
    k = loss.outputs or 3
    for f in itertools.product([0.0, 1.0, -1e3, 5e-324, 1e155, -1.7e308, 1.7e308], repeat=k):
        for y in (np.zeros(k), np.full(k, -1.7e308)) if loss.kind == "multitarget" else range(k):
            assert 0 <= loss.value(f, y) < math.inf
            assert np.all(np.isfinite(loss.slope(f, y)))


@vector
def test_vector_probability(loss: Any) -> None:
    f, _ = outputs(loss)
    if not loss.has_probability:
        assert loss.probability(f) is None
        return
    probability = loss.probability(f)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
    assert probability.min() >= 0
    np.testing.assert_array_equal(probability.argmax(axis=1), f.argmax(axis=1))


@vector
def test_vector_rows_are_independent(loss: Any) -> None:
    f, y = outputs(loss, 6)
    for i in range(6):
        assert loss.value(f[i], y[i]) == loss.value(f, y)[i]
        np.testing.assert_array_equal(loss.slope(f[i], y[i]), loss.slope(f, y)[i])
    np.testing.assert_array_equal(loss.value(f.T.copy().T, y), loss.value(f, y))


@vector
def test_wrong_outputs_are_refused(loss: Any) -> None:
    with pytest.raises(ValueError, match="outputs"):
        loss.value(0.5, 0)
    k = loss.outputs or 3
    if loss.outputs:
        with pytest.raises(ValueError, match="outputs"):
            loss.value(np.zeros(k + 1), 0)
    if loss.kind == "multiclass":
        for y in (-1, k, 0.5, math.nan):
            with pytest.raises(ValueError, match=r"^y "):
                loss.value(np.zeros(k), y)
