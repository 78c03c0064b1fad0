"""The tracker's numbers compared with brute force: event by event, comparator by comparator."""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special

import streamlearn as sl
from streamlearn.late.corrections import relearn
from streamlearn.regret import Ledger, Report, Tracker, curve
from streamlearn.regret.comparator import (
    ComparatorTask,
    Sample,
    estimate_objective,
    lowest_loss,
    objective_and_bound,
    solve_comparator,
)
from streamlearn.regret.progressive_sums import ProgressiveSums
from streamlearn.regret.reservoir import Reservoir, gather_rows
from streamlearn.stream import Events, Fields, JSONDecoder
from tests.support.members import RULES, allowed

L, P, R = sl.losses, sl.penalties, sl.rules
DRAW = np.random.default_rng(0)
M, N = 1200, 12
X = scipy.sparse.csr_array(DRAW.normal(size=(M, N)) * (DRAW.random((M, N)) < 0.4))
Y = np.where(X @ DRAW.normal(size=N) + 0.7 * DRAW.normal(size=M) > 0.3, 1, -1)
W = DRAW.choice([1.0, 0.5, 2.0, 0.0], size=M)

LEARNERS: dict[str, Callable[[], Any]] = {
    "pegasos": lambda: sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(0.01)),
    "adaptive": lambda: sl.LinearClassifier(
        R.Adaptive(10.0, project=10.0), L.Logistic(), P.L2(0.01), fit_intercept=False
    ),
    "proximal": lambda: sl.LinearClassifier(
        R.Proximal(10.0, project=10.0), L.Logistic(), P.L2(0.01), fit_intercept=False
    ),
    "l1 dual averaging": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(0.01)),
    "elastic net": lambda: sl.LinearClassifier(
        R.DualAveraging(), L.Logistic(), P.ElasticNet(0.005, 0.01), fit_intercept=False
    ),
    "hinge": lambda: sl.LinearClassifier(R.Pegasos(), L.Hinge(), P.L2(0.01)),
    "softmax": lambda: sl.LinearClassifier(R.AdaGrad(), L.Softmax(), P.L2(0.01)),
    "squared": lambda: sl.LinearRegressor(R.DualAveraging(), L.Squared(), P.L2(0.05)),
    "averaged": lambda: sl.LinearClassifier(
        R.DualAveraging(), L.Logistic(), P.L2(0.05), average="uniform"
    ),
    "batches": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L2(0.05), batch=7),
    "default": sl.LinearClassifier,
}


def paid(model: Any, X: Any, y: Any, w: Any) -> float:
    """Sum the loss of each event before it is learned, and Psi(w_t)."""
    total = 0.0
    for i in range(X.shape[0]):
        if w[i] == 0.0:
            continue
        before = model.penalty_value
        score = model.progressive_rows(X[[i]], y[i : i + 1], w[i : i + 1])[0]
        loss = model.objective.loss
        code = model._codes[y[i]] if hasattr(model, "_codes") else y[i]
        score = score if isinstance(loss, L.Loss) else np.atleast_1d(score)
        total += w[i] * loss.value(score, code) + before
    return total


def best(model: Any, X: Any, y: Any, w: Any) -> tuple[float, float]:
    """Return the best fixed model's objective on the events, and a lower bound."""
    events, weight = np.count_nonzero(w), w.sum()
    loss, place = model.objective.loss, model.objective.intercept
    penalty = model.objective.penalty
    if place == "inside":
        X = np.hstack([np.ones((X.shape[0], 1)), X.toarray()])
    strengths = {name: value * events / weight for name, value in penalty.params.items()}
    found = sl.hindsight.solve(
        X, y, loss, type(penalty)(**strengths), fit_intercept=place == "free", weights=w, gap=1e-7
    )
    return weight * found.objective, weight * found.lower_bound


def ends(report: Any) -> tuple[float, float]:
    """Return the bracket, which must be known."""
    assert report.regret_low is not None
    assert report.regret_high is not None
    assert report.regret == report.regret_low
    return report.regret_low, report.regret_high


def solvable(model: Any) -> bool:
    penalty = (
        model.objective.penalty
        if model.objective.penalty.l1 + model.objective.penalty.l2 > 0
        else P.L2(1.0)
    )
    return any(
        method.why_unsupported(
            model.objective.loss, penalty, fit_intercept=model.objective.intercept == "free"
        )
        is None
        for method in sl.hindsight.METHODS.values()
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_regret_equals_brute_force(name: str) -> None:
    rows = slice(0, 500)
    x, y, w = X[rows], Y[rows], W[rows]
    model = LEARNERS[name]()
    tracker = Tracker(model, seed=0)
    for part in np.array_split(np.arange(500), 3):
        tracker.learn_rows(x[part], y[part], w[part])
    report = tracker.report()
    objective = paid(LEARNERS[name](), x, y, w)
    slack = 1e-9 if report.penalty == "exact" else 3e-3
    assert report.objective == pytest.approx(objective, rel=slack)
    assert report.events == np.count_nonzero(w)
    assert report.weight == w.sum()
    assert report.nonzero == model.nonzero
    if not solvable(model):
        assert report.why_no_comparator is not None
        assert report.regret is None
        return
    low, high = ends(report)
    assert report.certified
    assert 0.0 <= high - low <= 1e-3 * w.sum()
    if model.objective.penalty.l1 + model.objective.penalty.l2 > 0:
        above, below = best(model, x, y, w)
        assert low - 1e-6 <= report.objective - below
        assert report.objective - above <= high + 1e-6
    if report.bound is not None:
        assert high <= report.bound
    else:
        assert name in {"softmax", "default", "averaged", "batches"}
        assert report.why_no_bound
    assert report.average_regret == low / report.events


@pytest.mark.parametrize("name", ["pegasos", "l1 dual averaging", "softmax", "default"])
def test_tracking_does_not_change_the_model(name: str) -> None:
    alone, model = LEARNERS[name](), LEARNERS[name]()
    tracker = Tracker(model, sample_size=300, seed=0)
    alone.learn_rows(X, Y, W)
    tracker.learn_rows(X, Y, W)
    np.testing.assert_array_equal(model.coef(N), alone.coef(N))
    assert model.intercept == pytest.approx(alone.intercept, abs=0.0)
    tracker.close()


def test_events_and_rows_give_the_same_report() -> None:
    one, other = (Tracker(LEARNERS["pegasos"](), sample_size=100, seed=3) for _ in range(2))
    one.learn_rows(X, Y, W)
    for i in range(M):
        columns = range(X.indptr[i], X.indptr[i + 1])
        event = {int(X.indices[k]): float(X.data[k]) for k in columns}
        other.learn_one(event, int(Y[i]), float(W[i]))
    a, b = one.ledger.sums, other.ledger.sums
    assert a.events == b.events
    assert a.progressive_loss == pytest.approx(b.progressive_loss, rel=1e-12)
    assert a.penalty_estimate() == pytest.approx(b.penalty_estimate(), rel=1e-12)
    assert a.reservoir.state()["next"] == b.reservoir.state()["next"]
    one.close()
    other.close()


def test_observed_batches_give_the_same_report() -> None:
    model = LEARNERS["l1 dual averaging"]()
    tracker = Tracker(model, sample_size=100, seed=3)
    ledger = Ledger(
        model.objective.loss, model.objective.penalty, intercept="free", sample_size=100, seed=3
    )
    watched = LEARNERS["l1 dual averaging"]()
    for rows in np.array_split(np.arange(M), 40):
        tracker.learn_rows(X[rows], Y[rows], W[rows])
        part: Any = X[rows]
        scores = watched.progressive_rows(part, Y[rows], W[rows])
        ledger.observe(
            part.indptr, part.indices, part.data, Y[rows], W[rows], scores, watched.penalty_value
        )
    assert ledger.sums.progressive_loss == tracker.ledger.sums.progressive_loss
    ours, theirs = ledger.report(), tracker.report()
    assert ours.comparator == pytest.approx(theirs.comparator, rel=1e-3)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-2)
    with pytest.raises(ValueError, match="starts"):
        ledger.observe([0, 1, 9], [0, 1], [1.0, 1.0], [1, 1], None, [0.0, 0.0])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_penalty_sum_is_exact_if_the_rule_tracks_it(rule: Any) -> None:
    for penalty in (P.L2(0.1), P.ElasticNet(0.01, 0.1), P.Zero(), P.L1(0.01)):
        if not allowed(rule, penalty, L.Logistic()):
            continue
        model = sl.LinearClassifier(rule, L.Logistic(), penalty)
        sums = ProgressiveSums(L.Logistic(), 10)
        model.engine.learner.watcher = sums
        total = 0.0
        for i in range(60):
            total += model.penalty_value
            model.learn_rows(X[[i]], Y[i : i + 1])
        known, error, exact = sums.penalty_estimate()
        if exact:
            assert error == 0.0
            assert known == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("average", ["last", "uniform"])
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
def test_psi_is_read_after_every_event_while_cheap(intercept: Any, average: str) -> None:
    def learner() -> Any:
        return sl.LinearClassifier(
            R.DualAveraging(),
            L.Logistic(),
            P.ElasticNet(0.01, 0.02),
            fit_intercept=intercept,
            average=average,
        )

    tracker = Tracker(learner(), seed=0)
    tracker.learn_rows(X, Y, W)
    report = tracker.report()
    assert report.certified
    assert report.penalty == "exact"
    assert report.stderr == 0.0
    assert report.objective == pytest.approx(paid(learner(), X, Y, W), rel=1e-12)


def test_psi_is_read_less_often_over_time() -> None:
    """With many slots or events, each event counts, and a report changes nothing."""
    for columns, events in ((3_000, 600), (N, 40_000)):
        rows = np.arange(events) % M
        wide = scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(M, columns))
        one, other = (
            Tracker(LEARNERS["l1 dual averaging"](), seed=0, sample_size=100) for _ in "ab"
        )
        for part in np.array_split(rows, 7):
            one.learn_rows(wide[part], Y[part])
            other.learn_rows(wide[part], Y[part])
            report = one.report(seconds=0.0)
        assert report.penalty == "sampled"
        assert 0.0 < report.stderr < 0.05 * report.objective
        ends = one.ledger.sums.state(), other.ledger.sums.state()
        assert ends[0]["penalty"] == ends[1]["penalty"]
        one.close()
        other.close()


def test_corrections_keep_psi_exact() -> None:
    """A correction moves the weights between two events."""
    model = sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(0.01), fit_intercept=False)
    tracker = Tracker(model, seed=0)
    decoder = JSONDecoder(model.reader, Fields(label="y"), [model])
    total = 0.0
    for i in range(60):
        total += model.penalty_value
        batch = Events()
        event = {f"x{j}": X[i, j] for j in range(N)}
        decoder.decode([json.dumps({**event, "y": bool(Y[i] > 0)}).encode()], batch)
        tracker.progressive_events(batch)
        if i % 3 == 0:
            label, scores = float(Y[i]), np.array([0.3])
            relearn(model.engine.learner, batch, 0, -label, 1.0, label, 1.0, scores)
    known, error, exact = tracker.ledger.sums.penalty_estimate()
    assert exact
    assert error == 0.0
    assert known == pytest.approx(total, rel=1e-12)


def test_classes_swap_signs() -> None:
    """The first of two numeric labels is the greater one, so the codes of its events change."""
    y = np.where(np.arange(M) < 5, 7, np.where(Y > 0, 7, 3))
    tracker = Tracker(LEARNERS["pegasos"](), seed=0)
    tracker.learn_rows(X, y)
    sample = gather_rows(tracker.ledger.sums.reservoir.snapshot())
    np.testing.assert_array_equal(sample["labels"][:, 0], np.where(y == 7, 1.0, -1.0))
    report = tracker.report()
    assert report.objective == pytest.approx(paid(LEARNERS["pegasos"](), X, y, np.ones(M)))
    assert report.regret_high is not None
    assert report.regret_high > 0


def test_one_versus_the_rest_has_no_regret() -> None:
    y = np.where(np.arange(M) < 3, 0, np.arange(M) % 3)
    tracker = Tracker(sl.LinearClassifier(R.AdaGrad(), L.Logistic(), P.L2(0.1)), seed=0)
    tracker.learn_rows(X, y)
    report = tracker.report()
    assert report.regret is None
    assert "Softmax" in str(report.why_no_comparator)
    assert "up to the third class" in str(report.why_no_comparator)
    joint = Tracker(LEARNERS["softmax"](), seed=0)
    joint.learn_rows(X, y)
    assert joint.report().comparator is not None
    targets = Tracker(
        sl.LinearRegressor(R.AdaGrad(), L.MultiSquared(), P.L2(0.1)), seed=0, targets=2
    )
    targets.learn_rows(X, np.column_stack([Y, np.asarray(X @ np.ones(N))]))
    assert targets.report().comparator is not None
    with pytest.raises(ValueError, match="targets="):
        Tracker(sl.LinearRegressor(R.AdaGrad(), L.MultiSquared(), P.L2(0.1)))


@pytest.mark.parametrize("loss", [L.Softmax(), L.MulticlassHinge()])
def test_report_with_one_class(loss: Any) -> None:
    tracker = Tracker(sl.LinearClassifier(R.AdaGrad(), loss, P.L2(0.1)), seed=0)
    tracker.learn_one({"x": 1.0}, "a")
    report = tracker.report()
    assert report.certified
    assert report.regret == 0.0


def test_overflowing_loss_is_infinite() -> None:
    tracker = Tracker(sl.LinearRegressor(R.DualAveraging(), L.Poisson(), P.L2(0.1)), seed=0)
    ones = np.ones(1000)
    for score in (800.0, 1.0):  # the first sum overflows
        tracker.ledger.observe(np.arange(1001), np.zeros(1000), ones, ones, ones, score * ones)
    assert tracker.report().progressive_loss == np.inf


def test_report_directly_after_restore() -> None:
    """For a learner whose penalty is read from time to time."""
    options: dict[str, Any] = {"fit_intercept": "penalized", "average": "tail"}
    first, second = (
        Tracker(sl.LinearClassifier(R.FTRLProximal(), L.Hinge(), P.L1(0.1), **options), seed=0)
        for _ in "ab"
    )
    first.learn_rows(X[:3], Y[:3])
    second.restore(first.state())
    assert second.report().objective == first.report().objective


@pytest.mark.parametrize("intercept", [True, False, "penalized"])
@pytest.mark.parametrize("sample_size", [10_000, 100])
def test_class_that_appears_late(sample_size: int, intercept: Any) -> None:
    y = np.where(np.arange(M) < 300, np.arange(M) % 3, np.arange(M) % 5)
    learner = sl.LinearClassifier(R.AdaGrad(), L.Softmax(), P.L2(0.1), fit_intercept=intercept)
    tracker = Tracker(learner, seed=0, sample_size=sample_size)
    tracker.learn_rows(X[:300], y[:300])
    early = tracker.report()
    tracker.learn_rows(X[300:], y[300:])
    late, solved = tracker.report(seconds=0.0), tracker.report()
    assert early.comparator is not None
    assert late.comparator is not None
    assert late.regret_low is not None
    assert late.regret_high is not None
    assert solved.regret is not None
    assert late.solved_at == 300
    # Weights assigned to the wrong classes would be worse than zero weights.
    assert early.comparator < late.comparator < M * (np.log(5) + 1.0)
    if solved.certified:
        assert late.regret_low <= solved.regret <= late.regret_high


def test_regret_is_estimated_beyond_the_memory() -> None:
    exact = Tracker(LEARNERS["pegasos"](), seed=0)
    exact.learn_rows(X, Y)
    truth = exact.report()
    assert truth.regret is not None
    errors = []
    for seed in range(12):
        tracker = Tracker(LEARNERS["pegasos"](), sample_size=400, seed=seed)
        tracker.learn_rows(X, Y)
        report = tracker.report()
        assert report.objective == truth.objective
        assert not report.certified
        assert report.stderr > 0.0
        assert report.regret is not None
        errors.append((report.regret - truth.regret) / report.stderr)
    # Fitting and measuring on different rows biases the regret down, by less than a few errors.
    assert np.abs(errors).max() < 4.0
    assert np.mean(errors) < 1.0


def test_tracker_resumes_bit_for_bit() -> None:
    half = M // 2
    through, first = (
        Tracker(LEARNERS["l1 dual averaging"](), sample_size=200, seed=1) for _ in "ab"
    )
    through.learn_rows(X, Y, W)
    first.learn_rows(X[:half], Y[:half], W[:half])
    second = Tracker(LEARNERS["l1 dual averaging"](), sample_size=200, seed=1)
    second.restore(first.state())
    second.learn_rows(X[half:], Y[half:], W[half:])
    a, b = through.ledger.sums, second.ledger.sums
    assert (a.events, a.weight, a.progressive_loss) == (b.events, b.weight, b.progressive_loss)
    assert a.penalty_estimate() == b.penalty_estimate()
    ours, theirs = a.reservoir.state(), b.reservoir.state()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])
    assert through.report().comparator == pytest.approx(second.report().comparator, rel=1e-3)
    other = Tracker(LEARNERS["l1 dual averaging"](), sample_size=100, seed=1)
    with pytest.raises(ValueError, match="sample_size"):
        other.restore(first.state())
    for tracker in (through, first, second):
        tracker.close()


def test_background_solves() -> None:
    tracker = Tracker(LEARNERS["pegasos"](), seed=0, cpu_share=1.0)
    nothing = tracker.report()
    assert nothing.why_no_comparator
    assert (nothing.solved_at, nothing.method, nothing.regret) == (0, None, None)
    for rows in np.array_split(np.arange(M), 10):
        tracker.learn_rows(X[rows], Y[rows])
    tracker.ledger.wait()
    found = tracker.ledger.comparator
    assert found is not None
    assert 1000 <= found.events <= M
    stale, fresh = tracker.report(seconds=0.0), tracker.report()
    assert stale.solved_at == found.events
    assert fresh.solved_at == M
    assert stale.certified
    assert fresh.certified
    (low, high), (lower, higher) = ends(stale), ends(fresh)
    assert max(low, lower) <= min(high, higher)
    tracker.close()


def test_interrupted_solve_gives_a_wider_bracket() -> None:
    tracker = Tracker(LEARNERS["pegasos"](), seed=0, gap=1e-12)
    tracker.learn_rows(X[:900], Y[:900])
    cut, full = tracker.report(seconds=1e-9), tracker.report(seconds=60.0)
    (low, high), (lower, higher) = ends(cut), ends(full)
    assert high - low > higher - lower
    assert low <= lower + 1e-9
    assert higher <= high + 1e-9


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"estimator": "model"}, "estimator"),
        ({"sample_size": 9}, "sample_size"),
        ({"sample_size": 1e5}, "sample_size"),
        ({"seed": -1}, "seed"),
        ({"seed": "a"}, "seed"),
        ({"gap": 0.0}, "gap"),
        ({"cpu_share": 2.0}, "cpu_share"),
    ],
)
def test_invalid_arguments(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Tracker(**{"estimator": sl.LinearClassifier(), **arguments})
    model = sl.LinearClassifier()
    model.learn_one({"a": 1}, True)
    with pytest.raises(ValueError, match="clone"):
        Tracker(model)


def test_penalty_without_a_solver() -> None:
    tracker = Tracker(
        sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.Berhu(0.01, 0.1)), seed=0
    )
    tracker.learn_rows(X, Y)
    report = tracker.report()
    assert "ElasticNet" in str(report.why_no_comparator)
    assert report.objective > 0.0


@pytest.mark.parametrize("loss", [L.Logistic(), L.Squared()], ids=repr)
@pytest.mark.parametrize("reach", [1e-3, 4.0, 40.0, 1e4])
def test_the_sum_of_losses_is_exact(loss: Any, reach: float) -> None:
    draw = np.random.default_rng(5)
    scores = reach * draw.random(3000) * draw.choice([-1, 1], 3000, p=[0.01, 0.99])
    weights = np.repeat(draw.choice([1.0, 0.5, 0.0, 3.0], 300), draw.integers(1, 80, 300))[:3000]
    sums, rows = ProgressiveSums(loss, 10), np.zeros(3001, int)
    sums.observe(rows, [], [], np.ones(3000), weights, scores)
    values = weights * loss.value(scores, 1.0)
    assert sums.progressive_loss == pytest.approx(math.fsum(values.tolist()), rel=1e-14)


def test_non_finite_scores_do_not_count() -> None:
    scores = np.array([[0.3, math.nan, -0.7, math.inf, 0.2], [0.1, 0.2, -math.inf, 0.4, 0.5]]).T
    for loss, width in ((L.Squared(), 1), (L.MultiSquared(), 2)):
        sums = ProgressiveSums(loss, 10, width=width)
        labels, given = np.ones((5, width)), scores[:, :width]
        sums.observe(np.zeros(6, int), [], [], labels, None, given)
        good = np.isfinite(given).all(axis=1)
        values = 0.5 * (given[good] - 1.0) ** 2
        assert sums.events == np.count_nonzero(good)
        assert sums.progressive_loss == pytest.approx(values.sum(), rel=1e-12)
        assert sums.reservoir.size == np.count_nonzero(good)


# -- bounds of the comparator ---------------------------------------------------------------------


@np.errstate(over="ignore")
def smallest(sample: Sample, task: ComparatorTask, radius: float) -> float:
    """Return the minimum of the sample's objective within the radius, by scipy."""
    n = sample.X.shape[1]
    free = task.intercept == "free"
    dense = np.hstack([sample.X.toarray(), np.full((len(sample.y), 1), float(free))])

    def total(v: Any) -> float:
        losses = np.asarray(task.loss.value(dense @ v, sample.y))
        return sample.scale * float(np.average(losses, weights=sample.weights))

    within: Any = {"type": "ineq", "fun": lambda v: radius**2 - v[:n] @ v[:n]}
    found = scipy.optimize.minimize(
        total, np.zeros(n + 1), method="SLSQP", constraints=[within], options={"maxiter": 500}
    )
    return float(found.fun)


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("events", [30.0, 300.0])
@pytest.mark.parametrize("loss", [L.Logistic(), L.Squared(), L.Poisson()], ids=repr)
def test_unpenalized_bound_is_below_all_weights_in_the_ball(
    loss: Any, events: float, intercept: str
) -> None:
    """The bound corrects for the small L2 penalty that makes the problem well posed."""
    draw = np.random.default_rng(8)
    x = scipy.sparse.csr_array(draw.normal(size=(30, 3)))
    label = np.where(x[:, [0]].toarray()[:, 0] > 0.0, 1.0, -1.0)  # the best weights are far away
    if isinstance(loss, L.Poisson):
        label = draw.poisson(3.0, 30).astype(float)
    sample = Sample(x, label, draw.choice([1.0, 2.0], 30), events)
    task = ComparatorTask(loss, P.Zero(), intercept)
    found = solve_comparator(sample, task, None, gap=1e-9, seconds=20.0)
    least = smallest(sample, task, found.radius)
    assert found.lower_bound <= least + 1e-6 * events
    assert found.lower_bound >= lowest_loss(task, label, sample.weights) / 30.0 * events - 1e-9
    value, bound = objective_and_bound(sample, task, found)
    assert bound <= least + 1e-6 * events
    assert bound <= value
    assert least <= value + 1e-6 * events
    # Without its own bound, a comparator of other events has only the dual bound.
    bare = dataclasses.replace(found, lower_bound=-math.inf)
    bare_bound = objective_and_bound(sample, task, bare)[1]
    assert bare_bound <= least + 1e-6 * events
    assert bare_bound == pytest.approx(bound, abs=0.05 * abs(least) + 0.5)
    far = dataclasses.replace(bare, radius=1e9)
    worst = sample.scale * float(
        lowest_loss(task, label, sample.weights / sample.weights.sum())
    )  # the lowest possible loss
    assert objective_and_bound(sample, task, far)[1] == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("labels", [0.0, 1.0, 12.0])
def test_lower_bound_of_the_first_events_stays_valid(labels: float) -> None:
    """Poisson losses have a minimum that may be negative."""
    draw = np.random.default_rng(9)
    ledger = Ledger(L.Poisson(), P.L2(0.1), seed=0)
    x = scipy.sparse.csr_array(draw.normal(size=(200, 3)))
    y = np.concatenate([draw.poisson(2.0, 120), np.full(80, labels)]).astype(float)
    for rows in (slice(120), slice(120, 200)):
        part: Any = x[rows]
        scores = np.zeros(part.shape[0])
        ledger.observe(part.indptr, part.indices, part.data, y[rows], None, scores, 0.0)
        if rows.start is None:
            ledger.report(30.0)
    found = ledger.comparator
    assert found is not None
    assert found.events == 120
    later = y[120:]
    proved = found.lower_bound + float(np.sum(later - scipy.special.xlogy(later, later)))
    report = ledger.report(0.0)
    assert report.solved_at == 120
    low, high = ends(report)
    best = sl.hindsight.solve(x, y, L.Poisson(), P.L2(0.1), gap=1e-9).objective * 200
    assert low <= report.objective - best + 1e-6
    assert report.objective - best <= high + 1e-6
    # The dual bound may be better, but not worse.
    assert high <= report.objective - proved + 1e-9
    cut = dataclasses.replace(found, lower_bound=-math.inf)
    ledger.use_comparator(cut)
    assert ends(ledger.report(0.0))[1] >= high


def test_ends_of_an_estimated_bracket_are_in_order() -> None:
    """The estimate from one half may be below the bound from the other."""
    widths = []
    for seed in range(16):
        tracker = Tracker(LEARNERS["pegasos"](), sample_size=1000, seed=seed)
        tracker.learn_rows(X, Y)
        report = tracker.report()
        low, high = ends(report)
        assert low <= high
        widths.append(high - low)
        tracker.close()
    assert 0 < np.count_nonzero(np.array(widths) == 0.0) < 16


# -- the sample -----------------------------------------------------------------------------------


def offered(capacity: int, seed: int, rows: int) -> Reservoir:
    sums = ProgressiveSums(L.Squared(), capacity, seed)
    starts = np.arange(rows + 1) * 2
    slots = np.column_stack([np.arange(rows), np.arange(rows) + rows]).ravel()
    values = np.column_stack([np.arange(rows), -np.arange(rows)]).ravel()
    sums.observe(starts, slots, values, np.arange(rows), None, np.zeros(rows))
    return sums.reservoir


def test_the_sample_is_uniform() -> None:
    rows, capacity, times = 60, 12, 2000
    counts = np.zeros((2, rows))
    order = np.random.default_rng(7).permutation(capacity)
    for seed in range(times):
        chosen = gather_rows(offered(capacity, seed, rows).snapshot())["labels"][:, 0].astype(int)
        assert len(set(chosen.tolist())) == capacity
        halves = np.random.default_rng(seed).permutation(order)
        for k in range(2):
            counts[k, chosen[halves[k::2]]] += 1
    expected = times * capacity / rows / 2
    deviation = math.sqrt(expected * (1 - capacity / rows / 2))
    assert np.abs(counts - expected).max() < 4.5 * deviation


def test_replaced_rows_do_not_mix() -> None:
    for capacity, rows in itertools.product((10, 50), (5, 10, 11, 50, 5000)):
        reservoir = offered(capacity, 1, rows)
        assert reservoir.size == min(capacity, rows)
        assert reservoir.full == (rows > capacity)
        sample = gather_rows(reservoir.snapshot())
        slots, values, labels = sample["slots"], sample["values"], sample["labels"][:, 0]
        np.testing.assert_array_equal(slots, np.column_stack([labels, labels + rows]).ravel())
        np.testing.assert_array_equal(values, np.column_stack([labels, -labels]).ravel())
        if rows <= capacity:
            np.testing.assert_array_equal(labels, np.arange(rows))


class PlainReservoir:
    """The same sample in plain Python."""

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.random = seed
        self.rows: list[tuple[Any, Any, float, Any]] = []
        self.seen, self.next, self.threshold = 0, capacity, 1.0

    def uniform(self) -> float:
        """By splitmix64."""
        self.random = z = (self.random + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return (((z ^ (z >> 31)) >> 11) + 0.5) / 2**53

    def draw(self) -> None:
        while True:
            highest = self.capacity / (self.next + 2)
            if not highest <= self.threshold <= 1.05 * highest:
                self.threshold = highest
            wait = -math.inf if self.threshold == 1.0 else math.log1p(-self.threshold)
            self.next += 1 + int(math.log(self.uniform()) * (1.0 / wait))
            if self.uniform() * self.threshold < self.capacity / (self.next + 1):
                return

    def offer(self, slots: Any, values: Any, weight: float, label: Any) -> None:
        row = (slots, values, weight, label)
        if self.seen < self.capacity:
            self.rows.append(row)
            if self.seen == self.capacity - 1:
                self.next = self.seen
                self.draw()
        elif self.seen == self.next:
            self.rows[int(self.uniform() * self.capacity)] = row
            self.draw()
        self.seen += 1

    def swap_classes(self) -> None:
        self.rows = [(*row, -label) for *row, label in self.rows]

    def gather_rows(self) -> dict[str, Any]:
        slots, values, weights, labels = zip(*self.rows, strict=True)
        return {
            "slots": np.concatenate(slots),
            "values": np.concatenate(values),
            "lengths": [len(row) for row in slots],
            "weights": weights,
            "labels": labels,
        }


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


@pytest.mark.parametrize(
    ("capacity", "longest", "width"),
    [(1, 3, 1), (10, 0, 1), (10, 40, 2), (40, 400, 1), (700, 9, 3)],
)
def test_reservoir_equals_the_plain_algorithm(capacity: int, longest: int, width: int) -> None:
    """Also after rows are dropped, while snapshots exist, and after restore and mirror."""
    draw = np.random.default_rng(capacity)
    loss = L.Squared() if width == 1 else L.MultiSquared()
    sums, plain = ProgressiveSums(loss, capacity, 5, width), PlainReservoir(capacity, 5)
    held: list[tuple[Any, Any]] = []
    for turn in range(60):
        rows = int(draw.integers(1, 4 * capacity + 20))
        # Lengths change, so that the log must grow and shrink.
        lengths = draw.integers(0, 1 + longest * (turn % 20) // 19, rows, endpoint=True)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        slots, values = draw.integers(0, 99, starts[-1]), draw.normal(size=starts[-1])
        labels, weights = draw.normal(size=(rows, width)), draw.choice([1.0, 2.0], rows)
        sums.observe(starts, slots, values, labels, weights, np.zeros((rows, width)))
        for i in range(rows):
            row = slice(starts[i], starts[i + 1])
            plain.offer(slots[row], values[row], weights[i], labels[i])
        if turn % 7 == 3:
            sums.swap_classes()
            plain.swap_classes()
        if turn % 5 == 1:
            held.append((sums.reservoir.snapshot(), plain.gather_rows()))
        if turn % 11 == 5:
            state, sums = sums.state(), ProgressiveSums(loss, capacity, 0, width)
            sums.restore(state)
        if turn % 9 == 8:
            held.clear()
        for snapshot, then in held:
            assert_same(gather_rows(snapshot), then)
        assert_same(gather_rows(sums.reservoir.snapshot()), plain.gather_rows())
        state = sums.reservoir.state()
        for name in ("seen", "next", "threshold", "random"):
            assert state[name] == getattr(plain, name)


def test_damaged_sample_is_refused() -> None:
    state = offered(10, 1, 50).state()
    for name in ("slots", "values", "lengths", "weights", "labels"):
        with pytest.raises(ValueError, match="damaged"):
            Reservoir(10).restore({**state, name: state[name][1:]})
    short = Reservoir(10)
    short.restore({**state, **gather_rows(offered(10, 1, 9).snapshot())})
    assert short.failed


def test_snapshot_does_not_change() -> None:
    sums = ProgressiveSums(L.Squared(), 20, 1)

    def observe(label: float) -> None:
        sums.observe([0, 2], [1, 2], [label, label], [label], None, [0.0])

    for label in range(20):
        observe(label)
    before = sums.reservoir.snapshot()
    for label in range(20, 3000):
        observe(label)
    np.testing.assert_array_equal(gather_rows(before)["values"], np.repeat(np.arange(20.0), 2))


# -- curves ---------------------------------------------------------------------------------------


def test_regret_curves(tmp_path: Any) -> None:
    options: dict[str, Any] = {"loss": L.Logistic(), "penalty": P.L2(0.05), "fit_intercept": False}
    learners = {
        "pegasos": sl.LinearClassifier(R.Pegasos(), **options),
        "dual averaging": sl.LinearClassifier(R.DualAveraging(), **options),
    }
    points = [10, 100, 1000]
    drawn = curve(learners, X, Y, points)
    for name, learner in learners.items():
        objective = [paid(learner.clone(), X[:t], Y[:t], np.ones(t)) for t in points]
        reports = drawn.reports[name]
        assert [report.events for report in reports] == points
        np.testing.assert_allclose([r.objective for r in reports], objective, rtol=2e-3)
        assert all(report.certified for report in reports)
        np.testing.assert_array_equal(drawn.regret(name), [r.regret for r in reports])
    (first, second) = (drawn.reports[name] for name in learners)
    assert [r.comparator for r in first] == [r.comparator for r in second]
    drawn.plot(tmp_path / "curve.svg")
    assert "dual averaging" in (tmp_path / "curve.svg").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="checkpoints"):
        curve([sl.LinearClassifier()], X, Y, [0])
    with pytest.raises(ValueError, match="estimators"):
        curve([], X, Y, [1])
    with pytest.raises(ValueError, match="minimizes"):
        curve([sl.LinearClassifier(), sl.PegasosClassifier(l2=0.1)], X, Y, [1])


def test_curve_refuses_different_class_weights() -> None:
    learners = [sl.PegasosClassifier(l2=0.1, class_weight={1: f, -1: f}) for f in (1.0, 5.0)]
    with pytest.raises(ValueError, match="class_weight"):
        curve(learners, X, Y, [100])
    assert curve([learners[0], sl.PegasosClassifier(l2=0.1)], X, Y, [100]).reports


def test_bound_of_other_events_is_not_used() -> None:
    trackers = [Tracker(LEARNERS["pegasos"](), seed=0) for _ in "ab"]
    for tracker, rows in zip(trackers, (slice(None), slice(100, None)), strict=True):
        tracker.learn_rows(X[rows], Y[rows])
    longer, shorter = trackers
    best = shorter.report()
    assert best.regret is not None
    longer.report()
    shorter.ledger.use_comparator(
        longer.ledger.comparator, same_events=shorter.ledger.same_events_as(longer.ledger)
    )
    report = shorter.report(seconds=0.0)
    assert report.regret_low is not None
    assert report.regret_high is not None
    assert report.regret_low <= best.regret <= report.regret_high


def test_equivalent_penalties_are_one_problem() -> None:
    penalties = {"one": P.L1(0.01), "other": P.ElasticNet(0.01, 0.0)}
    learners = {
        name: sl.LinearClassifier(R.DualAveraging(), penalty=penalty)
        for name, penalty in penalties.items()
    }
    one, other = (reports[0] for reports in curve(learners, X, Y, [100]).reports.values())
    assert one.comparator is not None
    assert one.comparator == other.comparator


def test_penalty_that_is_weighed_once_is_not_in_the_regret() -> None:
    """FTRL-Proximal weighs the penalty once, so its regret is of the losses alone."""
    X = np.random.default_rng(3).normal(size=(200, 4))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    with Tracker(sl.FTRLClassifier(l1=1.0), seed=0) as tracker:
        tracker.learn_rows(X, y)
        report = tracker.report()
    assert report.objective == report.progressive_loss
    assert report.comparator is not None
    assert report.comparator < 200 * np.log(2.0)


def test_comparator_with_features_missing_from_the_sample() -> None:
    """All rows with a feature may have been replaced."""
    X = scipy.sparse.csr_array(np.random.default_rng(3).normal(size=(40, 6)))
    y = np.where(X[:, [0]].toarray()[:, 0] > 0.0, 1.0, -1.0)
    task = ComparatorTask(sl.losses.Logistic(), sl.penalties.L2(0.1), "free")
    before = Sample(X, y, np.ones(40), 40.0)
    found = solve_comparator(before, task, None, gap=1e-6, seconds=10.0)
    narrow = Sample(scipy.sparse.csr_array(X[:30, :4]), y[:30], np.ones(30), 60.0)
    low, high = objective_and_bound(narrow, task, found)[::-1]
    assert low <= high
    assert estimate_objective(narrow, task, found)[0] > 0.0
    again = solve_comparator(narrow, task, found, gap=1e-6, seconds=10.0)
    assert again.solution.gap <= 1e-6
    np.testing.assert_allclose(again.solution.w[4:], 0.0, atol=1e-3)


def test_bracket_stays_narrow_between_solves() -> None:
    rng = np.random.default_rng(3)
    X = scipy.sparse.csr_array(rng.random((6000, 300)) * (rng.random((6000, 300)) < 0.05))
    y = np.asarray(X @ rng.standard_normal(300)) > 0.0
    learner = sl.DualAveragingClassifier(l1=1e-3)
    with Tracker(learner, sample_size=1000, seed=1) as tracker:
        tracker.learn_rows(X[:5500], y[:5500])
        before = tracker.report(seconds=10.0)
        tracker.learn_rows(X[5500:], y[5500:])
        later = tracker.report(seconds=0.0)
    assert not later.certified
    assert later.solved_at == 5500
    assert 0.0 <= width(later) < 1.1 * width(before)


def width(report: Report) -> float:
    """Return the width of the bracket per event."""
    assert report.regret_low is not None
    assert report.regret_high is not None
    return (report.regret_high - report.regret_low) / report.events


def test_ctrl_c_during_a_report_is_raised() -> None:
    """A solver returns its best solution at Ctrl-C; the report must not hide the interrupt."""

    def interrupt() -> bool:
        raise KeyboardInterrupt

    sample = Sample(X, Y.astype(float), W, float(M))
    task = ComparatorTask(L.Logistic(), P.L2(0.01), "none", 1)
    with pytest.raises(KeyboardInterrupt):
        solve_comparator(sample, task, None, gap=1e-12, seconds=60.0, cancelled=interrupt)
    found = solve_comparator(sample, task, None, gap=1e-12, seconds=60.0, cancelled=lambda: True)
    assert found.solution.interrupted
