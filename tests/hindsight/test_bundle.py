"""Bundle and proximal bundle methods: certified, monotone, as fast as the theorems."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNet as SkElasticNet
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import streamlearn as sl
from streamlearn.hindsight import Objective, Problem, Step, solve
from streamlearn.hindsight.master import MasterProblem
from streamlearn.hindsight.planes import Planes
from streamlearn.hindsight.row_shard import RowShard
from streamlearn.losses import (
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Novelty,
    Poisson,
    Softmax,
    Squared,
)
from streamlearn.penalties import L1, L2, Ball, ElasticNet

Vector = NDArray[np.float64]

METHODS = ["bundle", "proximal-bundle", "bundle-ls"]
each = pytest.mark.parametrize("method", METHODS)
PENALTIES = [L2(0.1), L2(1e-3), ElasticNet(0.05, 0.02), L1(0.05), Ball(0.7)]
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])


def data(loss: Any, m: int = 120, n: int = 6, seed: int = 0) -> tuple[Vector, Vector]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, n))
    score = X @ random.normal(size=n) + 0.8 + random.normal(size=m)
    if loss.kind in ("binary", "one-class"):
        return X, np.where(score > 0, 1.0, -1.0)
    if loss.kind == "multiclass":
        return X, np.digitize(score, [-1.0, 1.5]).astype(float)
    if type(loss).__name__ == "Poisson":
        return X / 4, np.round(np.exp(np.clip(score / 4, -1, 1))).astype(float)
    return X, score


@each
@intercepts
@pytest.mark.parametrize("penalty", [Ball(0.7), Ball(20.0)], ids=repr)
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Squared(), Softmax()], ids=repr)
def test_closes_the_gap_in_a_ball(
    method: str, loss: Loss, penalty: Any, fit_intercept: bool
) -> None:
    X, y = data(loss)
    solution = solve(
        X, y, loss, penalty, method=method, gap=2e-2, fit_intercept=fit_intercept, max_iter=1000
    )
    assert solution.gap <= 2e-2
    assert solution.method == method
    problem = Problem(X, y, loss, penalty, fit_intercept=fit_intercept)
    assert problem.objective(problem.start(solution)) == pytest.approx(solution.objective)
    objectives = [step.objective for step in solution.history]
    bounds = [step.lower_bound for step in solution.history]
    assert np.all(np.diff(objectives) <= 0)
    assert np.all(np.diff(bounds) >= -1e-12)
    random = np.random.default_rng(1)
    for far in (0.01, 0.1, 1.0):
        w = problem.start(solution) + far * random.normal(size=problem.size)
        assert problem.objective(w) >= solution.lower_bound


@each
@pytest.mark.parametrize("strength", [1e-3, 0.1])
def test_agrees_with_liblinear(method: str, strength: float) -> None:
    X, y = data(Hinge())
    C = 1 / (strength * len(y))
    svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    svm.fit(X, y)
    w = svm.coef_[0]
    expected = Problem(X, y, Hinge(), L2(strength)).objective(w)
    solution = solve(X, y, Hinge(), L2(strength), method=method, gap=1e-5)
    assert solution.lower_bound <= expected + 1e-9
    assert solution.objective <= expected + 1e-5


@each
@intercepts
def test_agrees_with_smooth_solvers(method: str, fit_intercept: bool) -> None:
    X, y = data(Logistic())
    model = LogisticRegression(C=1 / (0.02 * len(y)), tol=1e-12, fit_intercept=fit_intercept)
    model.fit(X, y)
    problem = Problem(X, y, Logistic(), L2(0.02), fit_intercept=fit_intercept)
    w = np.append(model.coef_[0], model.intercept_[: int(fit_intercept)])
    solution = solve(
        X, y, Logistic(), L2(0.02), method=method, gap=1e-5, fit_intercept=fit_intercept
    )
    assert solution.lower_bound <= problem.objective(w) + 1e-9
    assert solution.objective <= problem.objective(w) + 1e-5


@each
@intercepts
@pytest.mark.parametrize("penalty", [L1(0.1), ElasticNet(0.1, 0.3)], ids=repr)
def test_agrees_with_coordinate_descent(method: str, fit_intercept: bool, penalty: Any) -> None:
    X, y = data(Squared())
    alpha = penalty.l1 + penalty.l2
    model = SkElasticNet(
        alpha=alpha, l1_ratio=penalty.l1 / alpha, fit_intercept=fit_intercept, tol=1e-12
    )
    model.fit(X, y)
    problem = Problem(X, y, Squared(), penalty, fit_intercept=fit_intercept)
    w = np.append(model.coef_, [model.intercept_] * fit_intercept)
    solution = solve(X, y, Squared(), penalty, method=method, gap=1e-4, fit_intercept=fit_intercept)
    assert solution.lower_bound <= problem.objective(w) + 1e-9
    assert solution.objective <= problem.objective(w) + 1e-4


@pytest.mark.parametrize("strength", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("gap", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
def test_needs_no_more_iterations_than_theorem_2(loss: Loss, strength: float, gap: float) -> None:
    """[Teo07] Theorem 2, with the mean |x| for G: slopes of both losses are at most 1."""
    X, y = data(loss, m=300, n=15)
    X /= np.linalg.norm(X, axis=1).mean()
    at_zero = float(np.mean(loss.value(np.zeros(len(y)), y)))
    steps = math.log2(strength * at_zero) + 8 / (strength * gap) - 4
    solution = solve(X, y, loss, L2(strength), method="bundle", gap=gap)
    assert solution.gap <= gap
    assert solution.iterations <= max(steps, 1)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
def test_proximal_wins_where_curvature_is_small(loss: Loss) -> None:
    """[Do09] Figure 3: the advantage grows as lambda falls. The line search wins too."""
    X, y = data(loss, m=200, n=16)
    ratios = []
    for strength in (1e-2, 1e-5):
        plain, proximal, searched = (
            solve(X, y, loss, L2(strength), method=method, gap=1e-2, max_iter=4000).iterations
            for method in METHODS
        )
        ratios.append(plain / proximal)
        assert searched < plain
    assert ratios[-1] > 1.5
    assert ratios[-1] > ratios[0]


class Counting:
    """A risk that counts its passes."""

    def __init__(self, risk: Any) -> None:
        self.risk = risk
        self.size = risk.size
        self.passes = 0

    def value_and_gradient(self, w: Vector) -> Any:
        self.passes += 1
        return self.risk.value_and_gradient(w)


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_an_iteration_costs_one_pass(method: str, penalty: Any) -> None:
    problem = Problem(*data(Hinge()), Hinge(), penalty)
    counting = Counting(problem.risk)
    objective = Objective(counting, penalty, lowest=problem.lowest)
    run = sl.hindsight.METHODS[method]
    solution = run(objective, gap=1e-3, max_iter=40, start=None, callback=None)
    assert solution.iterations == counting.passes


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_a_line_search_costs_no_pass(penalty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration takes half a pass for the scores, half for the gradient."""
    problem = Problem(*data(Hinge()), Hinge(), penalty)
    calls = []
    for half in ("scores", "combine_rows"):
        whole = getattr(RowShard, half)

        def counted(rows: Any, v: Any, half: str = half, whole: Any = whole) -> Any:
            calls.append(half)
            return whole(rows, v)

        monkeypatch.setattr(RowShard, half, counted)
    run = sl.hindsight.METHODS["bundle-ls"]
    solution = run(problem, gap=1e-3, max_iter=40, start=None, callback=None)
    assert calls.count("combine_rows") == solution.iterations
    # plus those at the start, and those of planes that were too far
    assert calls.count("scores") <= 1.2 * solution.iterations + 2


@each
def test_dropping_planes_does_not_prevent_convergence(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(Hinge(), m=300, n=20)
    problem = Problem(X, y, Hinge(), L2(1e-4))
    kept: list[int] = []
    monkeypatch.setattr("streamlearn.hindsight.planes.IDLE", 5)
    monkeypatch.setattr("streamlearn.hindsight.planes.KEPT", 20)
    prune = Planes.prune

    def watched(planes: Planes, *alphas: Vector) -> list[Vector]:
        kept.append(planes.count)
        return prune(planes, *alphas)

    monkeypatch.setattr(Planes, "prune", watched)
    run = sl.hindsight.METHODS[method]
    solution = run(problem, gap=1e-3, max_iter=4000, start=None, callback=None)
    assert solution.gap <= 1e-3
    assert np.any(np.diff(kept) < 0)
    assert max(kept) < solution.iterations


@each
@intercepts
def test_warm_start(method: str, fit_intercept: bool) -> None:
    X, y = data(Logistic())
    options: dict[str, Any] = {"method": method, "gap": 1e-3, "fit_intercept": fit_intercept}
    first = solve(X, y, Logistic(), L2(0.1), **options)
    again = solve(X, y, Logistic(), L2(0.1), start=first, **options)
    assert again.history[0].objective == pytest.approx(first.objective)
    assert again.objective <= first.objective
    assert again.gap <= 1e-3


@each
@pytest.mark.parametrize(
    ("loss", "penalty", "far"),
    [(Novelty(), L1(1e7), 1e5), (Exponential(), L2(1e-4), 1e3), (Poisson(), L1(1e-4), -1e9)],
    ids=repr,
)
def test_a_start_extremely_far_away_gives_no_wrong_bound(
    method: str, loss: Loss, penalty: Any, far: float
) -> None:
    """A plane from there is all rounding error, or infinite."""
    X = np.array([[1e8, -3e7, 2e-9], [9e7, 1e8, 1e-9]]) if penalty.l1 > 1.0 else np.eye(2, 3)
    options: dict[str, Any] = {"method": method, "gap": 1e-6}
    best = solve(X, [1, 1], loss, penalty, **options)
    found = solve(X, [1, 1], loss, penalty, start=far * np.array([1.0, -1.0, 0.3]), **options)
    assert found.gap <= 1e-6
    assert found.lower_bound <= best.objective
    assert best.lower_bound <= found.objective


@each
def test_no_program_is_solved_once_the_gap_is_reached(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its planes may differ only by rounding, which makes the program slow and useless."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError

    X, y = data(Hinge())
    best = solve(X, y, Hinge(), L2(0.1), method=method, gap=1e-3)
    monkeypatch.setattr(MasterProblem, "solve", refused)
    problem = Problem(X, y, Hinge(), L2(0.1))
    problem.known_bound = best.lower_bound
    run = sl.hindsight.METHODS[method]
    again = run(problem, gap=1e-3, max_iter=None, start=best, callback=None)
    assert again.iterations == 1
    assert again.objective == pytest.approx(best.objective)
    assert again.gap <= 1e-3


@each
def test_stopping_early_returns_the_best_solution(method: str) -> None:
    X, y = data(Hinge())
    problem = Problem(X, y, Hinge(), L2(1e-3))

    def interrupt(step: Step) -> None:
        if step.iteration == 5:
            raise KeyboardInterrupt

    ways: list[dict[str, Any]] = [
        {"max_iter": 5},
        {"callback": interrupt},
        {"callback": lambda step: step.iteration == 5},
    ]
    for way in ways:
        solution = solve(X, y, Hinge(), L2(1e-3), method=method, **way)
        assert solution.iterations == 5
        assert solution.gap > 1e-4
        assert problem.objective(solution.w) == pytest.approx(solution.objective)
        assert solution.lower_bound <= solve(X, y, Hinge(), L2(1e-3), method=method).objective


def degenerate() -> list[tuple[Vector, Vector]]:
    X, y = data(Hinge(), m=30, n=4)
    one = np.zeros((1, 2))
    return [
        (X, np.ones(len(y))),
        (X, -np.ones(len(y))),
        (one, np.ones(1)),
        (np.zeros((4, 3)), np.array([1.0, -1.0, -1.0, 1.0])),
        (np.ones((6, 2)), np.array([1.0, -1.0, -1.0, 1.0, 1.0, 1.0])),
        (1e3 * X, y),
        (1e-3 * X, y),
    ]


@each
@intercepts
@pytest.mark.parametrize("case", range(7))
@pytest.mark.parametrize("penalty", [L2(0.1), L1(0.05), ElasticNet(0.05, 0.02)], ids=repr)
def test_degenerate_data(method: str, fit_intercept: bool, case: int, penalty: Any) -> None:
    X, y = degenerate()[case]
    for loss in (Hinge(), Logistic()):
        solution = solve(
            X, y, loss, penalty, method=method, fit_intercept=fit_intercept, gap=1e-3, max_iter=2000
        )
        assert solution.gap <= 1e-3
        assert np.isfinite(solution.w).all()


@each
def test_a_gap_of_zero_stops_at_rounding_error(method: str) -> None:
    X, y = data(Hinge(), m=30, n=3)
    solution = solve(X, y, Hinge(), L2(0.1), method=method, gap=0.0)
    assert solution.gap < 1e-9
    assert solution.iterations < 500


@each
@pytest.mark.parametrize(
    "penalty", [sl.penalties.Zero(), L2(0.0), sl.penalties.Simplex()], ids=repr
)
def test_unsupported_penalties_are_rejected(method: str, penalty: Any) -> None:
    with pytest.raises(ValueError, match=type(penalty).__name__):
        solve(*data(Hinge()), Hinge(), penalty, method=method)


@each
@pytest.mark.parametrize("penalty", [L2(1e-2), L1(5e-2)], ids=repr)
def test_the_intercept_is_not_penalized(method: str, penalty: Any) -> None:
    """Labels far from 0: a penalized intercept would not follow."""
    X, y = data(Squared())
    there, here = (
        solve(X, y + far, Squared(), penalty, method=method, fit_intercept=True, gap=1e-2)
        for far in (20.0, 0.0)
    )
    assert there.objective == pytest.approx(here.objective, abs=2e-2)
    assert there.intercept - here.intercept == pytest.approx(20, abs=0.5)
