"""The tracker's numbers compared with brute force: event by event, comparator by comparator."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.late.corrections import relearn
from streamlearn.regret import Ledger, Tracker, curve
from streamlearn.regret.comparator import Budget, ComparatorTask, Sample, minimize
from streamlearn.regret.findings import MORE_TIME
from streamlearn.regret.ledger import LEAST_MEMORY
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

SMALL = 10_000  # bytes

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
    assert report.regret_low <= report.regret <= report.regret_high
    return report.regret_low, report.regret_high


def sample_of(x: Any, y: Any) -> Sample:
    """Return a sample that is the whole stream."""
    m = len(y)
    return Sample(x, y, np.ones(m), float(m), np.arange(m), [m])


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


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
        assert report.why_unknown is not None
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
    assert report.regret is not None
    assert report.average_regret == report.regret / report.events


@pytest.mark.parametrize("name", ["pegasos", "l1 dual averaging", "softmax", "default"])
def test_tracking_does_not_change_the_model(name: str) -> None:
    alone, model = LEARNERS[name](), LEARNERS[name]()
    tracker = Tracker(model, memory_bytes=SMALL, seed=0)
    alone.learn_rows(X, Y, W)
    tracker.learn_rows(X, Y, W)
    np.testing.assert_array_equal(model.coef(N), alone.coef(N))
    assert model.intercept == pytest.approx(alone.intercept, abs=0.0)
    tracker.close()


def test_events_and_rows_give_the_same_report() -> None:
    one, other = (Tracker(LEARNERS["pegasos"](), memory_bytes=SMALL, seed=3) for _ in range(2))
    one.learn_rows(X, Y, W)
    for i in range(M):
        columns = range(X.indptr[i], X.indptr[i + 1])
        event = {int(X.indices[k]): float(X.data[k]) for k in columns}
        other.learn_one(event, int(Y[i]), float(W[i]))
    a, b = one.ledger.sums, other.ledger.sums
    assert a.events == b.events
    assert a.progressive_loss == pytest.approx(b.progressive_loss, rel=1e-12)
    assert a.penalty_estimate() == pytest.approx(b.penalty_estimate(), rel=1e-12)
    for ours, theirs in zip(a.cells.samples(), b.cells.samples(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    # the slots differ: names get theirs in the order in which they appear
    rows = [gather_rows(one.reservoir.snapshot()) for one in (a, b)]
    for name in ("positions", "labels", "weights", "values", "indptr"):
        np.testing.assert_array_equal(rows[0][name], rows[1][name])


def test_observed_batches_give_the_same_report() -> None:
    model = LEARNERS["l1 dual averaging"]()
    tracker = Tracker(model, memory_bytes=None)
    ledger = Ledger(
        model.objective.loss, model.objective.penalty, intercept="free", memory_bytes=None
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
        sums = ProgressiveSums(L.Logistic(), Reservoir())
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
            Tracker(LEARNERS["l1 dual averaging"](), seed=0, memory_bytes=SMALL) for _ in "ab"
        )
        for part in np.array_split(rows, 7):
            one.learn_rows(wide[part], Y[part])
            other.learn_rows(wide[part], Y[part])
            report = one.report(seconds=0.0)
        assert report.penalty == "sampled"
        assert 0.0 < one.ledger.sums.penalty_estimate()[1] < 0.05 * report.objective
        ends = one.ledger.sums.state(), other.ledger.sums.state()
        assert ends[0]["penalty"] == ends[1]["penalty"]
        one.close()
        other.close()


def test_psi_is_read_less_often_where_weights_lag() -> None:
    """With a subgradient of l1, weights near 0 replay all steps since an event touched them."""
    rows, events = scipy.sparse.csr_array(X[:1, :]), 20_000
    model, watched = (
        sl.LinearClassifier(R.GradientDescent(0.05), L.Logistic(), P.L1(0.01)) for _ in "ab"
    )
    tracker = Tracker(watched, seed=0)
    for learner in (model, tracker):
        learner.learn_rows(X, Y)
        for _ in range(events // 100):
            learner.learn_rows(rows[np.zeros(100, int)], np.ones(100))
    [alone], [tracked] = model.engine.learner.rules(), watched.engine.learner.rules()
    assert np.array_equal(alone.weights(), tracked.weights())
    assert 0 < tracked.replayed - alone.replayed < 50 * events
    tracker.close()


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
    assert "Softmax" in str(report.why_unknown)
    assert "up to the third class" in str(report.why_unknown)
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
def test_class_that_appears_late(intercept: Any) -> None:
    y = np.where(np.arange(M) < 300, np.arange(M) % 3, np.arange(M) % 5)
    learner = sl.LinearClassifier(R.AdaGrad(), L.Softmax(), P.L2(0.1), fit_intercept=intercept)
    tracker = Tracker(learner, seed=0, memory_bytes=None)
    tracker.learn_rows(X[:300], y[:300])
    early = tracker.report()
    tracker.learn_rows(X[300:], y[300:])
    late = tracker.report()
    assert early.comparator is not None
    assert late.comparator is not None
    # Weights assigned to the wrong classes would be worse than zero weights.
    assert early.comparator < 300 * (np.log(3) + 0.1)
    assert late.comparator < M * (np.log(5) + 0.1)
    assert late.certified


def test_regret_is_estimated_beyond_the_memory() -> None:
    x, y = scipy.sparse.csr_array(scipy.sparse.vstack([X] * 5)), np.concatenate([Y] * 5)
    exact = Tracker(LEARNERS["pegasos"](), memory_bytes=None)
    exact.learn_rows(x, y)
    truth = exact.report()
    assert truth.certified
    assert truth.regret is not None
    inside = 0
    for seed in range(20):
        tracker = Tracker(LEARNERS["pegasos"](), memory_bytes=300_000, seed=seed)
        tracker.learn_rows(x, y)
        report = tracker.report()
        assert report.objective == truth.objective
        assert not report.certified
        assert report.stderr > 0.0
        assert 1500 < report.sampled < 5 * M
        low, high = ends(report)
        inside += low <= truth.regret <= high
        assert report.regret is not None
        assert abs(report.regret - truth.regret) < 4.0 * report.stderr
    assert inside >= 18


def test_tracker_resumes_bit_for_bit() -> None:
    half = M // 2
    through, first = (
        Tracker(LEARNERS["l1 dual averaging"](), memory_bytes=SMALL, seed=1) for _ in "ab"
    )
    through.learn_rows(X, Y, W)
    first.learn_rows(X[:half], Y[:half], W[:half])
    second = Tracker(LEARNERS["l1 dual averaging"](), memory_bytes=SMALL, seed=1)
    second.restore(first.state())
    second.learn_rows(X[half:], Y[half:], W[half:])
    a, b = through.ledger.sums, second.ledger.sums
    assert (a.events, a.weight, a.progressive_loss) == (b.events, b.weight, b.progressive_loss)
    assert a.penalty_estimate() == b.penalty_estimate()
    assert a.reservoir.full
    assert_same(*(gather_rows(one.reservoir.snapshot()) for one in (a, b)))
    np.testing.assert_array_equal(a.cell_weights(), b.cell_weights())
    for ours, theirs in zip(a.cells.current_samples(), b.cells.current_samples(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_background_solves() -> None:
    tracker = Tracker(LEARNERS["pegasos"](), seed=0, cpu_share=1.0)
    nothing = tracker.report(0.0)
    assert nothing.why_unknown
    assert (nothing.solved_at, nothing.method, nothing.regret) == (0, None, None)
    tracker.learn_rows(X[:1000], Y[:1000])
    assert tracker.report(0.0).events == 1000  # which starts a solve
    tracker.ledger.comparison.wait()
    tracker.learn_rows(X[1000:], Y[1000:])
    stale, fresh = tracker.report(0.0), tracker.report()
    assert (stale.events, stale.solved_at, stale.sampled) == (M, 1000, 1000)
    assert (fresh.events, fresh.solved_at) == (M, M)
    assert stale.certified
    assert fresh.certified
    assert stale.regret is not None
    assert stale.average_regret == stale.regret / 1000
    tracker.close()


def test_interrupted_solve_gives_a_wider_bracket_or_none() -> None:
    tracker = Tracker(LEARNERS["pegasos"](), seed=0, gap=1e-12)
    tracker.learn_rows(X[:900], Y[:900])
    cut = tracker.report(seconds=1e-9)
    low, high = ends(tracker.report(seconds=60.0))
    if cut.regret is None:
        assert cut.why_unknown == MORE_TIME
    else:
        lower, higher = ends(cut)
        assert lower <= low + 1e-9
        assert high <= higher + 1e-9


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"estimator": "model"}, "estimator"),
        ({"memory_bytes": 9}, "memory_bytes"),
        ({"memory_bytes": LEAST_MEMORY - 1}, "memory_bytes"),
        ({"memory_bytes": 2**62}, "memory_bytes"),
        ({"memory_bytes": 1e5}, "memory_bytes"),
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
    assert "ElasticNet" in str(report.why_unknown)
    assert report.objective > 0.0


@pytest.mark.parametrize("loss", [L.Logistic(), L.Squared()], ids=repr)
@pytest.mark.parametrize("reach", [1e-3, 4.0, 40.0, 1e4])
def test_the_sum_of_losses_is_exact(loss: Any, reach: float) -> None:
    draw = np.random.default_rng(5)
    scores = reach * draw.random(3000) * draw.choice([-1, 1], 3000, p=[0.01, 0.99])
    weights = np.repeat(draw.choice([1.0, 0.5, 0.0, 3.0], 300), draw.integers(1, 80, 300))[:3000]
    sums, rows = ProgressiveSums(loss, Reservoir()), np.zeros(3001, int)
    sums.observe(rows, [], [], np.ones(3000), weights, scores)
    values = weights * loss.value(scores, 1.0)
    assert sums.progressive_loss == pytest.approx(math.fsum(values.tolist()), rel=1e-14)


@pytest.mark.parametrize("loss", [L.Logistic(), L.Softmax()])
def test_small_losses_count_beside_a_huge_one(loss: Any) -> None:
    """1e16 and 0.7 are one double; the sum keeps what such additions lose."""
    n, outputs = 1000, 3 if isinstance(loss, L.Softmax) else 1
    weights = np.array([1e16, *np.ones(n)])
    sums = ProgressiveSums(loss, Reservoir(), penalized=False)
    sums.observe(np.zeros(n + 2, int), [], [], np.ones(n + 1), weights, np.zeros((n + 1, outputs)))
    one = math.log(max(outputs, 2))
    huge = 1e16 * one
    few = 64 if outputs == 1 else 0  # that are summed together with the huge one
    assert sums.progressive_loss - huge == pytest.approx(n * one, abs=few + 2.0)


def test_a_penalty_that_was_not_read_at_each_event_is_never_exact_again() -> None:
    sums, exact = ProgressiveSums(L.Softmax(), Reservoir()), []
    for count in (1, 1, 3, 1):
        sums.observe(np.zeros(count + 1, int), [], [], np.ones(count), None, np.zeros((count, 3)))
        sums.record_penalty(0.5)
        exact.append(sums.penalty_estimate()[2])
    assert exact == [True, True, False, False]


def test_small_penalties_count_beside_a_huge_one() -> None:
    n, sums = 1000, ProgressiveSums(L.Softmax(), Reservoir())
    for value in [1e16, *[0.7] * n, 0.0]:
        sums.observe(np.zeros(2, int), [], [], np.ones(1), None, np.zeros((1, 3)))
        sums.record_penalty(value)
    total, _, exact = sums.penalty_estimate()
    assert exact
    assert total - 1e16 == pytest.approx(0.7 * n, abs=2.0)


def test_non_finite_scores_do_not_count() -> None:
    scores = np.array([[0.3, math.nan, -0.7, math.inf, 0.2], [0.1, 0.2, -math.inf, 0.4, 0.5]]).T
    for loss, width in ((L.Squared(), 1), (L.MultiSquared(), 2)):
        sums = ProgressiveSums(loss, Reservoir(width=width))
        labels, given = np.ones((5, width)), scores[:, :width]
        sums.observe(np.zeros(6, int), [], [], labels, None, given)
        good = np.isfinite(given).all(axis=1)
        values = 0.5 * (given[good] - 1.0) ** 2
        assert sums.events == np.count_nonzero(good)
        assert sums.progressive_loss == pytest.approx(values.sum(), rel=1e-12)
        assert len(sums.cells.samples()[0]) == np.count_nonzero(good)


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
    with pytest.raises(ValueError, match="checkpoints"):
        curve([sl.LinearClassifier()], X, Y, [1, len(Y) + 1])
    ends = curve([sl.LinearClassifier()], X, Y, [1, len(Y)])
    assert [[one.events for one in found] for found in ends.reports.values()] == [[1, len(Y)]]
    with pytest.raises(ValueError, match="estimators"):
        curve([], X, Y, [1])
    with pytest.raises(ValueError, match="minimizes"):
        curve([sl.LinearClassifier(), sl.PegasosClassifier(l2=0.1)], X, Y, [1])


def test_curve_refuses_different_class_weights() -> None:
    learners = [sl.PegasosClassifier(l2=0.1, class_weight={1: f, -1: f}) for f in (1.0, 5.0)]
    with pytest.raises(ValueError, match="class_weight"):
        curve(learners, X, Y, [100])
    assert curve([learners[0], sl.PegasosClassifier(l2=0.1)], X, Y, [100]).reports


def test_learners_share_a_sample_and_a_comparator() -> None:
    one = Tracker(LEARNERS["adaptive"](), seed=0)
    other, l1 = (
        Tracker(LEARNERS[name](), beside=one) for name in ("proximal", "l1 dual averaging")
    )
    trackers = (one, other, l1)
    for tracker in trackers:
        tracker.learn_rows(X, Y, W)
    first = one.report()
    assert other.ledger.findings is not None  # solved for both
    assert l1.ledger.findings is None
    for tracker in trackers:
        report = tracker.report()
        above, below = best(tracker.estimator, X, Y.astype(float), W)
        low, high = ends(report)
        assert report.certified
        assert low - 1e-6 <= report.objective - below
        assert report.objective - above <= high + 1e-6
    assert first.comparator == other.report().comparator


def test_a_learner_of_other_events_has_no_regret_beside() -> None:
    one = Tracker(LEARNERS["pegasos"](), seed=0)
    other = Tracker(LEARNERS["pegasos"](), beside=one)
    one.learn_rows(X, Y)
    other.learn_rows(X[1:], Y[1:])
    assert one.report().regret is not None
    report = other.report()
    assert report.regret is None
    assert "skipped" in str(report.why_unknown)
    weighted = sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(0.1), class_weight={1: 2.0})
    with pytest.raises(ValueError, match="beside"):
        Tracker(weighted, beside=one)


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


def test_leaving_a_tracker_ends_its_background_work(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    with Tracker(sl.LinearClassifier()) as tracker:
        monkeypatch.setattr(tracker.ledger, "close", lambda: closed.append(True))
        assert closed == []
    assert closed == [True]


def test_comparator_with_features_missing_from_the_sample() -> None:
    """The features of a previous comparator may all have left the sample."""
    x = scipy.sparse.csr_array(np.random.default_rng(3).normal(size=(40, 6)))
    y = np.where(x[:, [0]].toarray()[:, 0] > 0.0, 1.0, -1.0)
    task = ComparatorTask(L.Logistic(), P.L2(0.1), "free")
    found = minimize(sample_of(x, y), task, None, gap=1e-6, budget=Budget(10.0))
    narrow = scipy.sparse.csr_array(x[:30, :4])
    narrow = scipy.sparse.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(30, 6))
    sample = sample_of(narrow, y[:30])
    again = minimize(sample, task, found.solution, gap=1e-6, budget=Budget(10.0))
    assert again.solution.gap <= 1e-6
    np.testing.assert_allclose(again.solution.w[4:], 0.0, atol=1e-3)


def test_ctrl_c_during_a_report_is_raised() -> None:
    """A solver returns its best solution at Ctrl-C; the report must not hide the interrupt."""

    def interrupt() -> bool:
        raise KeyboardInterrupt

    sample = sample_of(X, Y.astype(float))
    task = ComparatorTask(L.Logistic(), P.L2(0.01), "none", 1)
    with pytest.raises(KeyboardInterrupt):
        minimize(sample, task, None, gap=1e-12, budget=Budget(60.0, 1.0, interrupt))
    found = minimize(sample, task, None, gap=1e-12, budget=Budget(60.0, 1.0, lambda: True))
    assert not found.finished


def test_a_report_interrupts_the_work_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = Tracker(LEARNERS["pegasos"](), memory_bytes=SMALL)
    comparison = tracker.ledger.comparison
    stops: list[bool] = []
    monkeypatch.setattr(comparison, "_solve", lambda *_: stops.append(comparison._must_stop()))
    comparison.solve(gap=0.1, seconds=1.0)
    assert stops == [True]
    assert not comparison._must_stop()
