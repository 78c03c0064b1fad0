"""What must hold for every penalty; members are discovered, so a new one is covered."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from tests.support.members import PENALTIES, N, Vector, brief, close, dense_penalty

every = pytest.mark.parametrize("penalty", PENALTIES, ids=brief)
WEIGHTS = [(1.0, 1.0, 0.0), (7.0, 2.5, 0.0), (0.5, 3.0, 0.2), (40.0, 6.0, 0.1)]  # a, b, rho


def vectors(count: int, scale: float = 2.0) -> list[Vector]:
    """Random ones, with zeros and ties of size among them."""
    rng = np.random.default_rng(11)
    found = [scale * rng.normal(size=N) for _ in range(count)]
    found[0][3:6] = 0.0
    found[1][7] = -found[1][2]
    return found


def neighbors(penalty: Any, w: Vector) -> list[Vector]:
    """Points of the domain, near and far: along axes, between them, at random, and back to w."""
    rng = np.random.default_rng(5)
    ways = [*np.eye(N), *-np.eye(N), *rng.normal(size=(30, N)), w, -w]
    ways += [np.eye(N)[i] - np.eye(N)[j] for i, j in rng.integers(0, N, size=(30, 2))]
    points = [w + size * way for way in ways for size in (1e-6, 1e-3, 0.3)]
    if penalty.on_simplex:
        return [sl.penalties.Simplex().prox(point) for point in points]
    if penalty.value(1e9 * np.ones(N)) < np.inf:
        return points
    p = 2.0 if isinstance(penalty, sl.penalties.Ball) else 1.0
    sizes = [np.linalg.norm(point, p) for point in points]
    return [x * min(1.0, penalty.radius / s) for x, s in zip(points, sizes, strict=True)]


@every
def test_is_a_value(penalty: Any) -> None:
    again = eval(repr(penalty), vars(sl.penalties).copy())  # noqa: S307 - what repr wrote
    for twin in (again, pickle.loads(pickle.dumps(penalty)), copy.deepcopy(penalty)):
        assert type(twin) is type(penalty)
        assert twin == penalty
        assert hash(twin) == hash(penalty)
        assert twin.params == penalty.params


def test_examples_differ() -> None:
    for i, one in enumerate(PENALTIES):
        assert one not in PENALTIES[:i]


@every
def test_value_is_the_papers(penalty: Any) -> None:
    reference = dense_penalty(penalty)
    for v in vectors(6, 0.3):
        for w in (v, reference.prox(v, 0.3)):
            expected = reference.value(w)
            assert penalty.value(w) == pytest.approx(expected, rel=1e-12)
            assert penalty.value(list(w)) == penalty.value(w)


@every
@pytest.mark.parametrize("step", [0.0, 0.05, 1.0, 20.0])
def test_prox_is_the_minimizer(penalty: Any, step: float) -> None:
    for v in vectors(4):
        w = np.asarray(penalty.prox(v, step))
        close(w, dense_penalty(penalty).prox(v, step))
        worth = step * penalty.value(w) if step else 0.0
        assert np.isfinite(penalty.value(w))
        for z in neighbors(penalty, w):
            other = step * penalty.value(z) if step else 0.0
            # |z - v|^2 - |w - v|^2, without cancellation
            rise = other - worth + 0.5 * float((z - w) @ (z + w - 2 * v))
            assert rise >= -1e-12 * (1.0 + abs(worth) + float(v @ v))


@every
@pytest.mark.parametrize(("a", "b", "rho"), WEIGHTS)
def test_minimizer_is_the_papers(penalty: Any, a: float, b: float, rho: float) -> None:
    if rho > 0.0 and (penalty.own_geometry or penalty.on_simplex):
        rho = 0.0
    reference = dense_penalty(penalty)
    for s in vectors(5, 6.0):
        w = penalty.minimizer(s, a=a, b=b, rho=rho)
        expected = reference.argmin(s, a, b, rho)
        close(w, expected)
        np.testing.assert_array_equal(w == 0.0, expected == 0.0)

        def objective(z: Vector, s: Vector = s, rho: float = rho) -> float:
            h = penalty.auxiliary(z) + rho * float(np.abs(z).sum())
            return float(s @ z + a * penalty.value(z) + b * h)

        best = objective(w)
        for z in neighbors(penalty, w):
            assert objective(z) >= best - 1e-12 * (1.0 + abs(best) + float(np.abs(s) @ np.abs(z)))


@every
def test_repeated_prox_is_many(penalty: Any) -> None:
    if not penalty.coordinatewise:
        return
    for v in vectors(2)[1]:
        w = np.array([v])
        for k in range(1, 12):
            w = dense_penalty(penalty).prox(w, 0.3)
            assert penalty.repeated_prox(v, 0.3, k) == pytest.approx(
                float(w[0]), rel=1e-12, abs=1e-14
            )


@every
def test_strong_convexity(penalty: Any) -> None:
    """Psi(z) >= Psi(w) + <g, z - w> + modulus/2 |z - w|^2 at the minimizer of Psi - <g, .>."""
    if penalty.modulus == 0.0 or isinstance(penalty, sl.penalties.Entropy):
        return
    norm = 1.0 if penalty.on_simplex else penalty.params.get("p", 2.0)
    for s in vectors(4, 0.4):
        w = penalty.minimizer(s, a=1.0, b=0.0)
        for z in neighbors(penalty, w):
            gap = penalty.value(z) - penalty.value(w) + float(s @ (z - w))
            needed = 0.5 * penalty.modulus * float(np.linalg.norm(z - w, norm)) ** 2
            assert gap >= needed * (1 - 1e-9) - 1e-12 * (1 + abs(penalty.value(w)))


def test_a_short_prior_goes_on_with_its_least() -> None:
    short = sl.penalties.KL(0.3, (4.0, 5.0))
    long = sl.penalties.KL(0.3, (4.0, 5.0, *[4.0] * (N - 2)))
    s = vectors(3)[2]
    close(short.minimizer(s, a=1.0, b=1.0), long.minimizer(s, a=1.0, b=1.0))


ZERO = sl.penalties.Zero()
SAME = [
    (sl.penalties.L1(0.0), ZERO),
    (sl.penalties.L2(0.0), ZERO),
    (sl.penalties.ElasticNet(0.0, 0.0), ZERO),
    (sl.penalties.ElasticNet(0.1, 0.0), sl.penalties.L1(0.1)),
    (sl.penalties.ElasticNet(0.0, 0.1), sl.penalties.L2(0.1)),
    (sl.penalties.Berhu(0.0, 0.1), ZERO),
    (sl.penalties.LInfinity(0.0), ZERO),
    (sl.penalties.LpSquared(0.0, 1.5), ZERO),
    (sl.penalties.LpSquared(0.3, 2.0), sl.penalties.L2(0.3)),
    (sl.penalties.KL(0.0, (1.0, 2.0)), sl.penalties.Simplex()),
    (sl.penalties.KL(0.3, (2.0, 2.0)), sl.penalties.KL(0.3)),
    (sl.penalties.Entropy(0.0, 0.5, 2.0), sl.penalties.L1Ball(0.5)),
]


@pytest.mark.parametrize("penalty", [*PENALTIES, *(one for one, _ in SAME)], ids=brief)
def test_the_canonical_penalty_is_the_same_function(penalty: Any) -> None:
    simplest = penalty.canonical()
    assert simplest.canonical() == simplest
    for v in vectors(6, 0.3):
        for w in (v, penalty.prox(v, 0.3)):
            assert simplest.value(w) == pytest.approx(penalty.value(w), rel=1e-12)
        for step in (0.3, 2.0):
            close(simplest.prox(v, step), penalty.prox(v, step))


def test_penalties_that_are_the_same_function_have_one_canonical_form() -> None:
    for one, simplest in SAME:
        assert one.canonical() == simplest


@every
def test_sizes_at_the_end_of_floats(penalty: Any) -> None:
    """A value is a number, infinite at most, and a projection stays one beside great numbers."""
    with np.errstate(over="ignore"):
        for w in ([1e200, -1.0], [-1e-320, 0.0], [0.0, 0.0]):
            value = penalty.value(np.array(w))
            assert isinstance(value, float)
            assert not np.isnan(value)
        for great in (1e17, 1e200):
            prox = penalty.prox(np.array([1.0, great, -great, 0.0]), 1.0)
            assert np.isfinite(prox).all()
            size = np.abs(prox).sum()
            if penalty.on_simplex or isinstance(penalty, sl.penalties.L1Ball):
                assert size == pytest.approx(penalty.norm_limit)
