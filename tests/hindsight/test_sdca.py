"""SDCA ([Takac13] section 4): its counter-example, its certificate, agreement with others."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from streamlearn.hindsight import METHODS, Problem, solve
from streamlearn.hindsight.dual_steps import BatchSteps, SingleSteps
from streamlearn.hindsight.extrapolation import POINTS, extrapolated
from streamlearn.hindsight.intercept_search import SupportLines
from streamlearn.hindsight.sdca import DualSolution
from streamlearn.losses import Exponential, Hinge, Logistic, Poisson, Squared
from streamlearn.penalties import L1, L2, ElasticNet
from tests.support.members import LOSSES, stream_for

PENALTIES = [L2(0.1), ElasticNet(0.03, 0.05)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"average": True},
    {"batch": 7},
    {"batch": 7, "update": "aggressive"},
    {"batch": 10**6},
]


def sdca(X: Any, y: Any, loss: Any, penalty: Any, **options: Any) -> DualSolution:
    found = solve(X, y, loss, penalty, method="sdca", **options)
    assert isinstance(found, DualSolution)
    return found


def objective(X: Any, y: Any, loss: Any, penalty: Any, w: Any, t: Any = 0.0) -> float:
    return float(np.mean(loss.value(X @ w + t, y)) + penalty.value(w))


def classes(m: int = 300, n: int = 12, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * rng.uniform(0.2, 2.0, size=n)
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 + rng.normal(size=m) > 0.0, 1.0, -1.0)


# -- the paper ----------------------------------------------------------------------------------


def equal_pair(**options: Any) -> DualSolution:
    """Solve [Takac13] section 4.1: two equal examples, lambda = 1/2, b = 2."""
    return sdca(np.ones((2, 1)), [1, 1], Hinge(), L2(0.5), batch=2, gap=1e-9, **options)


def test_naive_batches_oscillate_between_two_points() -> None:
    for epochs in (*range(1, 9), 60, 61):
        found = equal_pair(update="naive", max_iter=epochs)
        np.testing.assert_array_equal(found.dual, [-1.0, -1.0] if epochs % 2 else [0.0, 0.0])
        assert found.lower_bound == 0.0
        assert found.gap > 0.5


@pytest.mark.parametrize("update", ["safe", "aggressive"])
def test_safe_and_aggressive_batches_reach_the_optimum(update: str) -> None:
    found = equal_pair(update=update)
    assert found.objective == pytest.approx(0.25)
    assert found.lower_bound == pytest.approx(0.25)
    np.testing.assert_allclose(found.dual, [-0.5, -0.5])


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("update", ["safe", "aggressive"])
@pytest.mark.parametrize("size", [2, 16, 120])
def test_no_batch_lowers_the_dual(update: str, size: int, penalty: Any) -> None:
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(12, 5)), 10, axis=0)  # many equal rows
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    problem = Problem(X, y, Hinge(), penalty)
    ascent = BatchSteps(
        problem.matrix, Hinge(), problem.y, problem.weights, penalty.l1, penalty.l2,
        size=size, update=update, safe_beta=1.5,  # far below beta_b: most batches would overshoot
    )  # fmt: skip
    last = 0.0
    for _ in range(30):
        ascent.begin()
        over = False
        while not over:
            over = ascent.run(1)  # one batch
            ascent.measure(0, 120)
            _, dual = ascent.values()
            assert dual >= last - 1e-13
            last = dual


def test_averaged_duals_are_the_mean_over_the_iterations() -> None:
    X, y = classes(40)
    problem = Problem(X, y, Hinge(), L2(0.1))
    ascent = SingleSteps(
        problem.matrix, Hinge(), problem.y, problem.weights, 0.0, 0.1, averaged=True
    )
    total, iterations = np.zeros(40), 0
    for epoch in range(6):
        ascent.begin()
        if epoch == 2:
            ascent.restart_average()
        over = False
        while not over:
            total += ascent.duals if epoch >= 2 else 0.0
            iterations += epoch >= 2
            over = ascent.run(1)
    np.testing.assert_allclose(ascent.averages(), total / iterations, rtol=0, atol=1e-12)


# -- agreement with other solvers ---------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_svm_agrees_with_liblinear(options: dict[str, Any]) -> None:
    X, y = classes()
    found = sdca(X, y, Hinge(), L2(0.05), gap=1e-5, **options)
    svm: dict[str, Any] = {"loss": "hinge", "fit_intercept": False, "tol": 1e-8, "max_iter": 10**6}
    other = LinearSVC(C=1 / (0.05 * len(y)), **svm).fit(X, y).coef_.ravel()
    best = objective(X, y, Hinge(), L2(0.05), other)
    assert found.gap <= 1e-5
    assert found.lower_bound <= best + 1e-12
    assert found.objective <= best + found.gap + 1e-12
    assert found.objective == pytest.approx(objective(X, y, Hinge(), L2(0.05), found.w))


@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_and_least_squares_agree_with_scikit_learn(intercept: bool) -> None:
    X, y = classes()
    C = 1 / (0.05 * len(y))
    logistic = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10).fit(X, y)
    ridge = Ridge(0.05 * len(y), fit_intercept=intercept).fit(X, y)
    for loss, other in ((Logistic(), logistic), (Squared(), ridge)):
        found = sdca(X, y, loss, L2(0.05), gap=1e-8, fit_intercept=intercept)
        t = np.ravel(other.intercept_)[0] if intercept else 0.0
        best = objective(X, y, loss, L2(0.05), other.coef_.ravel(), t)
        assert found.gap <= 1e-8
        assert found.lower_bound - 1e-12 <= best <= found.objective + 1e-12
        np.testing.assert_allclose(found.w, other.coef_.ravel(), atol=2e-3)
        assert found.intercept == pytest.approx(t, abs=5e-3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_and_penalty(loss: Any, penalty: Any, intercept: bool) -> None:
    """Weighted rows, some of weight 0 or without features; a local search finds nothing better."""
    data = stream_for(loss, events=40, n=6)
    options = {"weights": data.w, "gap": 1e-4, "fit_intercept": intercept}
    found = sdca(data.rows, data.y, loss, penalty, **options)
    weights = data.w / data.w.sum()

    def value(w: Any) -> float:
        scores = data.X @ w[:6] + w[6:].sum()
        return float(weights @ loss.value(scores, data.y) + penalty.value(w[:6]))

    w = np.append(found.w, found.intercept) if intercept else found.w
    assert found.gap <= 1e-4
    assert found.objective == pytest.approx(value(w), abs=1e-12)
    assert found.lower_bound <= scipy.optimize.minimize(value, w, method="Powell").fun + 1e-12


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
@pytest.mark.parametrize(
    "loss", [Hinge(), Logistic(), Squared(), Poisson(), Exponential()], ids=repr
)
def test_every_option_reaches_the_same_solution(loss: Any, options: dict[str, Any]) -> None:
    data = stream_for(loss)
    one = sdca(data.X, data.y, loss, ElasticNet(0.01, 0.1), gap=1e-7)
    other = sdca(data.X, data.y, loss, ElasticNet(0.01, 0.1), gap=1e-7, **options)
    assert other.gap <= 1e-7
    # strongly convex: l2/2 |w - w*|^2 <= gap
    assert np.linalg.norm(one.w - other.w) <= 2 * np.sqrt(2e-7 / 0.1)


# -- the data -----------------------------------------------------------------------------------


def test_an_integer_weight_equals_repeated_rows() -> None:
    X, y = classes(60)
    times = np.arange(60) % 4
    one = sdca(X, y, Hinge(), L2(0.1), weights=times, gap=1e-8)
    many = sdca(np.repeat(X, times, axis=0), np.repeat(y, times), Hinge(), L2(0.1), gap=1e-8)
    np.testing.assert_allclose(one.w, many.w, atol=1e-3)
    assert one.objective == pytest.approx(many.objective, abs=2e-8)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64, None])
@pytest.mark.parametrize("batch", [1, 8])
def test_every_matrix_type_gives_the_same_solution(kind: Any, index: Any, batch: int) -> None:
    X, y = classes(50)
    X = X.astype(np.float32)  # the same values for all
    X[np.abs(X) < 0.3] = 0.0
    wanted = sdca(X.astype(float), y, Logistic(), L2(0.1), gap=1e-7, batch=batch)
    given: Any = np.asfortranarray(X.astype(kind))
    if index is not None:
        given = scipy.sparse.csr_array(X.astype(kind))
        given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    found = sdca(given, y, Logistic(), L2(0.1), gap=1e-7, batch=batch)
    np.testing.assert_allclose(found.w, wanted.w, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Exponential()], ids=repr)
def test_one_class(loss: Any, label: int, intercept: bool, options: dict[str, Any]) -> None:
    X, _ = classes(30)
    y = np.full(30, label)
    found = sdca(X, y, loss, L2(0.1), fit_intercept=intercept, gap=1e-4, **options)
    assert found.gap <= 1e-4
    if intercept:  # it fits the data without w
        assert found.objective <= 1e-4
        assert found.intercept * label > 0.9


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_of_zeros_only(intercept: bool, options: dict[str, Any]) -> None:
    found = sdca(
        np.zeros((5, 3)), [1, 1, 1, -1, 1], Hinge(), L2(1.0), fit_intercept=intercept, **options
    )
    assert not found.w.any()
    assert found.objective == pytest.approx(0.4 if intercept else 1.0, abs=1e-4)
    assert found.gap <= 1e-4


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_extreme_scales(scale: float, options: dict[str, Any]) -> None:
    """Scaling X and l2 together gives the same problem."""
    X, y = classes(40)
    wanted = sdca(X, y, Hinge(), L2(0.1), gap=1e-6)
    found = sdca(scale * X, y, Hinge(), L2(0.1 * scale * scale), gap=1e-6, **options)
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(wanted.objective, abs=2e-6)


@pytest.mark.parametrize("options", [*OPTIONS, {"fit_intercept": True}], ids=str)
@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
def test_overflow_gives_no_false_certificate(scale: float, options: dict[str, Any]) -> None:
    X, y = classes(20)
    found = sdca(scale * X, y, Hinge(), L2(0.1), max_iter=20, **options)
    assert np.isfinite(found.w).all()
    assert 0.0 <= found.lower_bound <= found.objective <= 1.0 + 1e-12


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_row_much_longer_than_the_others(options: dict[str, Any]) -> None:
    X, y = classes(60)
    X[7] *= 1e5
    found = sdca(X, y, Hinge(), L2(0.1), gap=1e-4, **options)
    assert found.gap <= 1e-4


# -- the run ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_seed_determines_the_run(options: dict[str, Any]) -> None:
    X, y = classes(50)
    runs = [
        sdca(X, y, Hinge(), L2(0.01), seed=s, max_iter=3, gap=0.0, **options) for s in (5, 5, 6)
    ]
    np.testing.assert_array_equal(runs[0].dual, runs[1].dual)
    if options.get("batch", 1) < 50:
        assert (runs[0].dual != runs[2].dual).any()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Poisson()], ids=repr)
def test_warm_start(loss: Any, intercept: bool) -> None:
    data = stream_for(loss, events=400)

    def run(m: int, **options: Any) -> DualSolution:
        problem = (data.X[:m], data.y[:m], loss, L2(0.01))
        return sdca(*problem, gap=1e-5, fit_intercept=intercept, **options)

    cold = run(400)
    again = run(400, start=cold)
    assert again.gap <= 1e-5
    assert intercept or again.iterations <= 2
    for start in (run(350), cold.w):  # fewer rows, or only weights
        assert run(400, start=start).gap <= 1e-5


def test_a_start_from_another_problem_still_converges() -> None:
    X, y = classes(50)
    other = sdca(X, -y, Hinge(), L2(0.1))  # its duals are of the wrong sign
    assert sdca(X, y, Hinge(), L2(0.1), start=other).gap <= 1e-4
    assert sdca(X, y, Squared(), L2(0.1), start=np.full(12, 1e9)).gap <= 1e-4


@pytest.mark.parametrize("intercept", [False, True])
def test_interrupted(intercept: bool) -> None:
    X, y = classes()

    def interrupt(step: Any) -> None:
        if step.iteration >= 4:
            raise KeyboardInterrupt

    found = sdca(X, y, Hinge(), L2(1e-4), gap=0.0, fit_intercept=intercept, callback=interrupt)
    value = objective(X, y, Hinge(), L2(1e-4), found.w, found.intercept)
    assert found.objective == pytest.approx(value)
    assert 0.0 < found.gap == found.objective - found.lower_bound


def test_stopped_by_the_callback_or_the_limit() -> None:
    X, y = classes()
    stopped = sdca(X, y, Hinge(), L2(1e-4), gap=0.0, callback=lambda step: step.iteration >= 4)
    assert stopped.iterations == 4
    for intercept in (False, True):
        found = sdca(X, y, Hinge(), L2(1e-4), gap=0.0, max_iter=7, fit_intercept=intercept)
        assert found.iterations == 7


def test_a_gap_of_zero_stops_at_rounding_error() -> None:
    X, y = classes(30)
    found = sdca(X, y, Squared(), L2(1.0), gap=0.0)
    assert found.iterations < 1_000
    assert found.gap <= 1e-12


@pytest.mark.parametrize(
    "options", [{"batch": 0}, {"batch": 2.0}, {"batch": True}, {"seed": -1}, {"update": "bold"}]
)
def test_bad_options_are_rejected_by_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=name):
        sdca(np.ones((2, 1)), [1, -1], Hinge(), L2(1.0), **options)


@pytest.mark.parametrize("penalty", [L1(0.1), ElasticNet(0.1, 0.0), L2(0.0)], ids=repr)
def test_penalties_without_l2_are_rejected(penalty: Any) -> None:
    assert "sdca" in METHODS
    with pytest.raises(ValueError, match="l2 > 0"):
        sdca(np.ones((2, 1)), [1, -1], Hinge(), penalty)


# -- extrapolation ------------------------------------------------------------------------------


def test_extrapolation_of_a_linear_map_is_its_fixed_point() -> None:
    rng = np.random.default_rng(0)
    rate, fixed = np.linspace(0.3, 0.9, 3), rng.normal(size=3)
    points = [rng.normal(size=3)]
    for _ in range(POINTS - 1):
        points.append(fixed + rate * (points[-1] - fixed))
    found, image = extrapolated(points, [2.0 * point for point in points])
    assert np.linalg.norm(found - fixed) < 1e-2 * np.linalg.norm(points[-1] - fixed)
    np.testing.assert_allclose(image, 2.0 * found, rtol=1e-12)
    np.testing.assert_array_equal(extrapolated([fixed] * POINTS), [fixed])


def test_extrapolation_saves_epochs() -> None:
    X, y = classes(60)
    plain = sdca(X, y, Squared(), L2(1e-3), gap=1e-7, average=True, max_iter=3_000)
    extrapolating = sdca(X, y, Squared(), L2(1e-3), gap=1e-7)
    assert extrapolating.iterations < 0.5 * plain.iterations


# -- the intercept search -----------------------------------------------------------------------


def test_support_lines_find_the_minimum_of_a_convex_function() -> None:
    lines = SupportLines(0.0)

    def height(t: float) -> float:
        return abs(t - 3.0) + 0.1 * (t + 1.0) ** 2

    t, gap, turns = 40.0, np.inf, 0
    best = np.inf
    while gap > 1e-6:
        lines.add(t, height(t), np.sign(t - 3.0) + 0.2 * (t + 1.0))
        best = min(best, height(t))
        low, t = lines.lowest()
        assert low <= height(3.0) + 1e-12
        gap, turns = best - low, turns + 1
    assert turns < 40
