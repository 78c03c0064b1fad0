"""The programs of the bundle methods, certified by duality."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from streamlearn.hindsight.master import MasterProblem
from streamlearn.hindsight.planes import IDLE, KEPT, Planes
from streamlearn.hindsight.simplex_qp import simplex_qp
from streamlearn.penalties import L1, L2, Ball, ElasticNet
from streamlearn.penalties.penalty import Penalty

Vector = NDArray[np.float64]

PENALTIES = [
    L2(1.0),
    L2(1e-3),
    L2(1e-7),
    L1(0.3),
    L1(1e-3),
    ElasticNet(0.2, 0.1),
    ElasticNet(0.01, 1e-4),
    ElasticNet(5.0, 0.1),
    ElasticNet(0.0, 0.1),
    Ball(0.5),
    Ball(100.0),
]


@pytest.mark.parametrize("rank", [1, 3, 40])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_simplex_qp_matches_a_general_solver(rank: int, scale: float) -> None:
    random = np.random.default_rng(rank)
    A = random.normal(size=(12, rank))
    H, d = scale * A @ A.T, random.normal(size=12)
    x = simplex_qp(H, d, np.eye(12)[0], 1e-9)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1, abs=1e-12)
    gradient = H @ x - d
    assert x @ gradient - gradient.min() <= 1e-8 * max(1, scale * 1e-4)
    arguments: Any = {
        "jac": lambda z: H @ z - d,
        "bounds": [(0, 1)] * 12,
        "constraints": {"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like},
        "method": "SLSQP",
        "options": {"maxiter": 500, "ftol": 1e-12},
    }

    def objective(z: Vector) -> float:
        return float(0.5 * z @ H @ z - d @ z)

    other: Any = minimize(objective, np.full(12, 1 / 12), **arguments)
    assert 0.5 * x @ H @ x - d @ x <= other.fun + 1e-8 * (1 + abs(other.fun))


def test_simplex_qp_with_equal_rows_and_with_zeros() -> None:
    H = np.ones((5, 5))
    assert simplex_qp(H, np.arange(5.0), np.eye(5)[0], 1e-12)[4] == pytest.approx(1)
    assert simplex_qp(np.zeros((3, 3)), np.zeros(3), np.eye(3)[1], 0.0).tolist() == [0, 1, 0]
    assert simplex_qp(np.zeros((1, 1)), np.ones(1), np.ones(1), 0.0).tolist() == [1]


@pytest.mark.parametrize("below", [1e-15, 1e-12, 1e-9])
def test_simplex_qp_of_a_matrix_that_rounding_made_indefinite(below: float) -> None:
    H, d = np.diag([1.0, 1.0, -below, -below]), np.array([0.1, 0.2, 0.5, 0.4])
    x = simplex_qp(H, d, np.eye(4)[0], 1e-9)
    assert x.min() >= 0.0
    assert x.sum() == pytest.approx(1.0, abs=1e-12)
    assert x[2] > 0.5


def filled(count: int, size: int, intercepts: int, seed: int = 0) -> Planes:
    """Return planes of a mean of hinge losses."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, size))
    X[:, size - intercepts :] = 1.0
    y = np.sign(X[:, 0] + 0.4 + random.normal(size=50))
    planes = Planes(np.zeros(size), intercepts, 0.0)
    for _ in range(count):
        w = random.normal(size=size)
        margin = 1 - y * (X @ w)
        planes.add(
            w, float(np.maximum(margin, 0).mean()), -(X * y[:, None])[margin > 0].sum(0) / 50
        )
    return planes


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize(
    ("count", "size", "intercepts"), [(1, 3, 0), (6, 4, 1), (30, 8, 0), (60, 8, 1), (40, 30, 2)]
)
def test_minimum_and_bound_agree(penalty: Penalty, count: int, size: int, intercepts: int) -> None:
    """Strong duality: alpha certifies that w is the minimizer."""
    planes = filled(count, size, intercepts)
    master = MasterProblem(planes, penalty)
    near = np.zeros(size)
    start = np.eye(1, planes.count)[0]
    w, alpha = master.solve(start, 1e-9, near)
    value = penalty.value(w[: planes.width]) + planes.value_at(w)
    bound = master.bound(alpha, near)
    assert bound <= value + 1e-9
    # an inactive ball adds no curvature, so rounding is larger
    assert value - bound <= (1e-5 if isinstance(penalty, Ball) else 1e-6) * (1 + abs(value))


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_any_weights_give_a_lower_bound(penalty: Penalty) -> None:
    random = np.random.default_rng(3)
    for intercepts in (0, 1):
        planes = filled(20, 5, intercepts)
        master = MasterProblem(planes, penalty)
        w, _ = master.solve(np.eye(1, 21)[0], 1e-9, np.zeros(5))
        value = penalty.value(w[: planes.width]) + planes.value_at(w)
        for _ in range(20):
            alpha = random.dirichlet(np.full(21, 0.2))
            assert master.bound(alpha, w) <= value + 1e-9


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("intercepts", [0, 1])
def test_solve_minimizes_the_proximal_term_too(penalty: Penalty, intercepts: int) -> None:
    planes = filled(30, 6, intercepts)
    master = MasterProblem(planes, penalty)
    near = np.random.default_rng(5).normal(size=6) * 0.1
    w, _ = master.solve(np.eye(1, 31)[0], 1e-10, near, 0.7)

    def objective(v: Vector) -> float:
        square = (v - near) ** 2
        square[planes.width :] *= planes.intercept_unit
        pull = 0.35 * float(square.sum())
        return float(penalty.value(v[: planes.width])) + planes.value_at(v) + pull

    best = objective(w)
    random = np.random.default_rng(6)
    for far, _ in itertools.product([1e-4, 1e-2, 0.3], range(30)):
        assert objective(w + far * random.normal(size=6)) >= best - 1e-8


def test_dropping_idle_planes_keeps_the_bound() -> None:
    planes = filled(KEPT + 40, 5, 1)
    master = MasterProblem(planes, L2(0.1))
    near = np.zeros(5)
    _, alpha = master.solve(np.eye(1, planes.count)[0], 1e-10, near)
    before = master.bound(alpha, near)
    for _ in range(IDLE + 2):
        (alpha,) = planes.prune(alpha)
    assert planes.count <= np.count_nonzero(alpha) + 1
    assert master.bound(alpha, near) == pytest.approx(before, abs=1e-14)
    np.testing.assert_allclose(planes.products, planes.slopes @ planes.slopes.T)
    _, again = master.solve(alpha, 1e-10, near)
    assert master.bound(again, near) == pytest.approx(before, abs=1e-8)
