"""Multivariate losses through `solve`, label trees, and user-defined oracles."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from streamlearn.hindsight import (
    HierarchicalLogistic,
    HierarchicalMargin,
    Problem,
    solve,
    solve_risk,
)
from streamlearn.hindsight.structured import multivariate
from streamlearn.hindsight.structured.multivariate import MultivariateLoss, ROCArea
from streamlearn.losses import Hinge, MulticlassHinge, Softmax
from streamlearn.penalties import L1, L2, Ball, ElasticNet
from tests.support.members import members

Vector = NDArray[np.float64]
MULTIVARIATE = members(multivariate, MultivariateLoss)
both = pytest.mark.parametrize("method", ["bundle", "proximal-bundle"])
PARENTS = {"a": None, "b": None, "a1": "a", "a2": "a", "b1": "b", "b2": "b", "b21": "b2"}


def data(m: int = 60, n: int = 4) -> tuple[Vector, Vector]:
    random = np.random.default_rng(0)
    X = random.normal(size=(m, n))
    return X, X @ random.normal(size=n) + random.normal(size=m)


@pytest.mark.parametrize("method", ["bundle", "proximal-bundle", "bundle-ls"])
@pytest.mark.parametrize("loss", MULTIVARIATE, ids=repr)
def test_solve_supports_every_multivariate_loss(method: str, loss: MultivariateLoss) -> None:
    X, score = data()
    y = (score > 0.5) if loss.kind == "binary" else np.digitize(score, [-1.0, 0.5, 2.0])
    groups = np.arange(60) % 7 if loss.takes_groups else None
    for penalty in (L2(0.1), L1(0.05)):
        solution = solve(X, y, loss, penalty, method=method, groups=groups, gap=1e-2)
        assert solution.gap <= 1e-2
        assert solution.objective < loss.value(np.zeros(60), y, groups)
        value = loss.value(X @ solution.w, y, groups) + penalty.value(solution.w)
        assert value == pytest.approx(solution.objective)


def test_the_roc_area_loss_bounds_one_minus_auc() -> None:
    X, score = data(400, 10)
    y = score > 1.0
    solution = solve(X, y, ROCArea(), L2(1e-3), gap=1e-3)
    assert roc_auc_score(y, X @ solution.w) > 0.9
    assert 1 - roc_auc_score(y, X @ solution.w) <= solution.objective


@pytest.mark.parametrize("loss", MULTIVARIATE, ids=repr)
def test_arguments_that_a_loss_does_not_support_are_rejected(loss: MultivariateLoss) -> None:
    X, score = data()
    with pytest.raises(ValueError, match="weights"):
        solve(X, score > 0, loss, L2(1.0), weights=np.ones(60))
    with pytest.raises(ValueError, match="y "):
        solve(X, [1, 0], loss, L2(1.0))
    with pytest.raises(ValueError, match="groups"):
        solve(X, score > 0, Hinge(), L2(1.0), groups=np.zeros(60))


def trees() -> list[Any]:
    return [
        HierarchicalMargin(PARENTS),
        HierarchicalMargin(PARENTS, cost="error"),
        HierarchicalLogistic(PARENTS),
    ]


def path(node: str | None) -> list[str]:
    return [] if node is None else [*path(PARENTS[node]), node]


def by_paths(loss: Any, f: Vector, label: str) -> float:
    """Return the loss of one row, each leaf's path summed separately."""
    place = {node: k for k, node in enumerate(loss.labels)}
    leaves = [node for node in PARENTS if node not in PARENTS.values()]
    score = {leaf: math.fsum(f[place[node]] for node in path(leaf)) for leaf in leaves}
    if isinstance(loss, HierarchicalLogistic):
        return math.log(math.fsum(math.exp(s) for s in score.values())) - score[label]
    deltas = {
        leaf: max(len(path(leaf)), len(path(label))) - len({*path(leaf)} & {*path(label)})
        for leaf in leaves
    }
    cap = 1 if loss.cost == "error" else 99
    return max(score[leaf] - score[label] + min(cap, deltas[leaf]) for leaf in leaves)


@pytest.mark.parametrize("loss", trees(), ids=repr)
def test_tree_losses_sum_over_paths(loss: Any) -> None:
    random = np.random.default_rng(1)
    labels = random.choice(["a1", "a2", "b1", "b21"], 8)
    f = random.normal(size=(8, 7))
    weights = random.random(8)
    values = [by_paths(loss, row, label) for row, label in zip(f, labels, strict=True)]
    bound = loss.bind(labels, weights=weights)
    value, slope = bound.value_and_slope(f)
    assert value == pytest.approx(np.average(values, weights=weights))
    for far in (1e-3, 1.0, 10.0):
        g = f + far * random.normal(size=f.shape)
        assert value + float(np.vdot(slope, g - f)) <= bound.value_and_slope(g)[0] + 1e-12


@pytest.mark.parametrize(
    ("tree", "flat"), [(HierarchicalLogistic, Softmax()), (HierarchicalMargin, MulticlassHinge())]
)
def test_a_flat_tree_equals_the_flat_loss(tree: Any, flat: Any) -> None:
    X, score = data()
    y = np.digitize(score, [-1.0, 0.5, 2.0])
    loss = tree(dict.fromkeys(range(4)))
    for fit_intercept in (False, True):
        solution = solve(X, y, loss, L2(0.1), fit_intercept=fit_intercept, gap=1e-3)
        problem = Problem(X, y, flat, L2(0.1), fit_intercept=fit_intercept)
        assert solution.labels == [0, 1, 2, 3]
        assert solution.w.shape == (4, 4)
        assert problem.objective(problem.start(solution)) == pytest.approx(solution.objective)
        other = solve(X, y, flat, L2(0.1), method="bundle", fit_intercept=fit_intercept, gap=1e-3)
        assert other.objective == pytest.approx(solution.objective, abs=2e-3)


def test_invalid_labels_and_trees_are_rejected() -> None:
    with pytest.raises(ValueError, match="row 1: 'b'"):
        HierarchicalMargin(PARENTS).bind(["a1", "b"])
    for parents in ({"a1": "a"}, {"a": "b", "b": "a"}, {"a": None}):
        with pytest.raises(ValueError, match="parents"):
            HierarchicalMargin(parents)
    with pytest.raises(ValueError, match="cost"):
        HierarchicalMargin(PARENTS, cost="none")
    with pytest.raises(ValueError, match="y is empty"):
        HierarchicalMargin(PARENTS).bind([])


class MeanHinge:
    """A mean hinge loss as a user-defined oracle."""

    def __init__(self, X: Vector, y: Vector) -> None:
        self.rows = X * y[:, None]
        self.size = X.shape[1]

    def value_and_slope(self, w: Vector) -> tuple[float, Vector]:
        margin = 1 - self.rows @ w
        w[:] = 99.0  # an oracle may change its copy of w
        return float(np.maximum(margin, 0).mean()), -self.rows[margin > 0].sum(0) / len(margin)


@both
@pytest.mark.parametrize(
    "penalty", [L2(0.01), L1(0.05), ElasticNet(0.02, 0.01), Ball(1.0)], ids=repr
)
def test_an_oracle_gives_the_same_solution_as_the_loss(method: str, penalty: Any) -> None:
    X, score = data()
    y = np.sign(score)
    mine = solve_risk(MeanHinge(X, y), penalty, method=method, gap=1e-4)
    ours = solve(X, y, Hinge(), penalty, method="bundle", gap=1e-4)
    assert mine.gap <= 1e-4
    assert mine.objective == pytest.approx(ours.objective, abs=1e-4)


def test_an_oracle_with_intercepts_and_a_negative_lower_bound() -> None:
    X, score = data()
    y = np.sign(score)
    ones = np.ones((60, 1))

    class Lower(MeanHinge):
        def value_and_slope(self, w: Vector) -> tuple[float, Vector]:
            value, slope = super().value_and_slope(w)
            return value - 5, slope

    mine = solve_risk(Lower(np.hstack([X, ones]), y), L2(0.01), lowest=-5.0, intercepts=1)
    ours = solve(X, y, Hinge(), L2(0.01), method="bundle", fit_intercept=True)
    assert mine.gap <= 1e-4
    assert mine.objective + 5 == pytest.approx(ours.objective, abs=1e-4)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ((-1.0, [0.0, 0.0]), "lowest"),
        ((1.0, [0.0]), "slope"),
        ((math.nan, [0.0, 0.0]), "value"),
        ((1.0, [0.0, math.inf]), "slope"),
    ],
)
def test_invalid_results_of_an_oracle_are_rejected(answer: Any, named: str) -> None:
    class Wrong:
        size = 2

        def value_and_slope(self, w: Vector) -> Any:
            del w
            return answer

    with pytest.raises(ValueError, match=named):
        solve_risk(Wrong(), L2(1.0))


def test_invalid_oracles_and_options_are_rejected() -> None:
    oracle = MeanHinge(*data())
    with pytest.raises(ValueError, match="value_and_slope"):
        solve_risk(object(), L2(1.0))  # type: ignore[arg-type]
    oracle.size = 0
    with pytest.raises(ValueError, match="size"):
        solve_risk(oracle, L2(1.0))
    oracle.size = 4
    with pytest.raises(ValueError, match="L2"):
        solve_risk(oracle, L2(0.0))
    with pytest.raises(ValueError, match="method"):
        solve_risk(oracle, L2(1.0), method="sdca")
    with pytest.raises(ValueError, match="intercepts"):
        solve_risk(oracle, L2(1.0), intercepts=4)


def test_a_slope_that_is_not_a_subgradient_is_detected() -> None:
    class Uphill:
        size = 1

        def value_and_slope(self, w: Vector) -> tuple[float, Vector]:
            return abs(w[0] - 3.0), np.ones(1)

    with pytest.raises(ValueError, match="subgradient"):
        solve_risk(Uphill(), L2(0.1))
