"""Data in shards have the solution of the same data in one piece."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import streamlearn as sl
from streamlearn.hindsight import METHODS, ArrayShard, Step, solve, solve_shards
from streamlearn.hindsight.executor import Threads
from streamlearn.hindsight.points import LONGEST
from streamlearn.hindsight.sharded import LocalHost, ShardData
from streamlearn.hindsight.sharded.shard import Shard

L, P, M = sl.losses, sl.penalties, sl.hindsight.multivariate
RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 6)) * (RNG.random((90, 6)) < 0.6)
SCORE = X @ RNG.normal(size=6) + 0.3 * RNG.normal(size=90)
SIGNS = np.where(SCORE > 0, 1, -1)
CLASSES = np.digitize(SCORE, [-1.0, 1.0])
CUTS = [0, 5, 5, 60, 90]  # of unlike size, one without rows
PARTS = [slice(a, b) for a, b in itertools.pairwise(CUTS)]
BY_ROW = [name for name, method in METHODS.items() if not method.needs_rows]
LOSSES: dict[str, tuple[Any, Any]] = {
    "logistic": (L.Logistic(), SIGNS),
    "hinge": (L.Hinge(), SIGNS),
    "squared": (L.Squared(), SCORE),
    "softmax": (L.Softmax(), CLASSES),
    "multiclass": (L.MulticlassHinge(), CLASSES),
    "multitarget": (L.MultiSquared(), np.stack([SCORE, SCORE**2], axis=1)),
}
# cutting planes need O(1/gap) passes
COARSE = {"bundle": 2e-1, "proximal-bundle": 1e-1, "bundle-ls": 1e-2}
PENALTIES = [P.L2(0.02), P.L1(0.02), P.ElasticNet(0.01, 0.01)]


def shards(y: Any, rows: Any = X, **more: Any) -> list[ArrayShard]:
    return [
        ArrayShard(rows[part], y[part], **{name: each[part] for name, each in more.items()})
        for part in PARTS
    ]


@pytest.mark.parametrize("method", ["auto", *BY_ROW])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_method_finds_the_solution_of_one_piece(
    method: str, loss: str, penalty: Any, fit_intercept: bool
) -> None:
    kind, y = LOSSES[loss]
    given: dict[str, Any] = {"fit_intercept": fit_intercept, "method": method}
    if method != "auto":
        reason = METHODS[method].why_unsupported(kind, penalty, fit_intercept=fit_intercept)
        if reason is not None:
            with pytest.raises(ValueError, match=method):
                solve_shards(shards(y), kind, penalty, **given)
            return
    given |= {"gap": COARSE.get(method, 1e-4)}
    weights = 1.0 + np.arange(90) % 3
    rows = scipy.sparse.csr_array(X)
    found = solve_shards(shards(y, rows, weights=weights), kind, penalty, **given)
    whole = solve(X, y, kind, penalty, weights=weights, **given)
    assert found.gap <= given["gap"]
    assert found.lower_bound <= whole.objective + 1e-12
    assert whole.lower_bound <= found.objective + 1e-12
    assert found.labels == whole.labels
    assert np.shape(found.w) == np.shape(whole.w)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in BY_ROW])
def test_a_method_that_needs_rows_is_refused_with_those_that_do_not(method: str) -> None:
    with pytest.raises(ValueError, match="shards keep to themselves; use method='newton-cg'"):
        solve_shards(shards(SIGNS), L.Logistic(), P.L2(0.1), method=method)


class RebuiltShards:
    """An executor that has lost all its shards before every call, and builds them again."""

    def __init__(self, sources: Any, loss: Any, agreements: Any) -> None:
        self.given = sources, loss, agreements
        self.share = self.build().share

    def build(self) -> Threads[Any]:
        sources, loss, agreements = self.given
        return Threads(
            [
                Shard(sources[i], loss).bind(each)
                for i, each in zip(agreements.used, agreements.each, strict=True)
            ]
        )

    def each(self, method: Any, *args: Any) -> list[Any]:
        return self.build().each(method, *args)


class LosingHost(LocalHost):
    def load(self, sources: Any, loss: Any) -> Any:
        self.given = sources, loss
        return super().load(sources, loss)

    def bind(self, agreements: Any) -> Any:
        return RebuiltShards(*self.given, agreements)


@pytest.mark.parametrize("method", BY_ROW)
def test_shards_that_are_rebuilt_give_the_same_bits(method: str) -> None:
    kind: Any = L.Logistic() if METHODS[method].takes_loss(L.Logistic()) else L.Hinge()
    given: dict[str, Any] = {"method": method, "gap": 1e-9, "max_iter": 2 * LONGEST}
    kept = solve_shards(shards(SIGNS), kind, P.L2(1e-3), **given)
    lost = solve_shards(shards(SIGNS), kind, P.L2(1e-3), host=LosingHost(), **given)
    np.testing.assert_array_equal(kept.w, lost.w)
    assert [step[:3] for step in kept.history] == [step[:3] for step in lost.history]


@dataclass
class Changing:
    """A source whose data change."""

    name: str = "changing.csv"
    loads: int = 0

    def load(self, loss: Any) -> ShardData:  # noqa: ARG002 - of an interface
        self.loads += 1
        return ShardData(X + self.loads, SIGNS)


def test_a_shard_that_is_rebuilt_from_other_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"changing\.csv was read again"):
        solve_shards([Changing()], L.Logistic(), P.L2(0.1), host=LosingHost())


def test_a_solver_that_is_stopped_returns_the_best_so_far() -> None:
    steps: list[Step] = []

    def stop(step: Step) -> bool:
        steps.append(step)
        return len(steps) == 4

    found = solve_shards(shards(SIGNS), L.Hinge(), P.L2(1e-4), gap=1e-9, callback=stop)
    assert found.interrupted
    assert found.history == steps
    assert found.objective == steps[-1].objective
    assert 0.0 < found.gap == steps[-1].gap


QUERIES = np.repeat(np.arange(9), [2, 3, 10, 20, 10, 15, 10, 10, 10])  # each within a shard


@pytest.mark.parametrize("loss", [M.ROCArea(), M.NDCG(), M.ReciprocalRank()], ids=repr)
def test_groups_within_shards_are_ranked_as_in_one_piece(loss: Any) -> None:
    y = SCORE > 0 if loss.kind == "binary" else CLASSES
    found = solve_shards(shards(y, groups=QUERIES), loss, P.L2(0.01), gap=1e-3)
    whole = solve(X, y, loss, P.L2(0.01), groups=QUERIES, gap=1e-3)
    assert found.lower_bound <= whole.objective
    assert whole.lower_bound <= found.objective


def test_a_label_that_a_shard_lacks_keeps_its_meaning() -> None:
    y = np.where(SCORE > 0, 7, 4)
    y[:5] = 4
    found = solve_shards(shards(y, groups=QUERIES), M.ROCArea(), P.L2(0.01), gap=1e-3)
    whole = solve(X, y, M.ROCArea(), P.L2(0.01), groups=QUERIES, gap=1e-3)
    assert found.lower_bound <= whole.objective
    assert whole.lower_bound <= found.objective
    texts = np.where(y == 7, "yes", "no")
    labeled = solve_shards(shards(texts), L.Logistic(), P.L2(0.01))
    assert labeled.labels == ["no", "yes"]


def test_a_loss_of_a_label_tree_is_a_mean_over_rows() -> None:
    loss = sl.hindsight.HierarchicalLogistic({0: None, 1: "p", 2: "p", "p": None})
    found = solve_shards(shards(CLASSES), loss, P.L2(0.01), gap=1e-3)
    whole = solve(X, CLASSES.tolist(), loss, P.L2(0.01), gap=1e-3)
    assert found.lower_bound <= whole.objective
    assert whole.lower_bound <= found.objective


@pytest.mark.parametrize(
    ("given", "loss", "named"),
    [
        ([], L.Logistic(), "at least one"),
        ([ArrayShard(X[:0], SIGNS[:0])], L.Logistic(), "no row has a label"),
        (shards(SIGNS), "hinge", "'hinge'"),
        (shards(SIGNS), M.ROCArea(), "all rows together"),
        (shards(SIGNS), M.FBeta(), "all rows together"),
        (shards(SIGNS, groups=np.arange(90) // 7), M.ROCArea(), "group 0 is in"),
        (shards(SIGNS, groups=QUERIES), L.Logistic(), "groups"),
        (shards(CLASSES), L.Logistic(), "3 classes"),
        ([ArrayShard(X, SIGNS), ArrayShard(X[:, :4], SIGNS)], L.Logistic(), "4 columns"),
        ([ArrayShard(X * np.nan, SIGNS, name="b.npy")], L.Logistic(), r"b\.npy: .*nan"),
        ([ArrayShard(X, SIGNS[1:], name="b.npy")], L.Logistic(), r"b\.npy: .*90 rows"),
        ([ArrayShard(X, SIGNS, -np.ones(90), name="b.npy")], L.Logistic(), r"b\.npy: weights"),
    ],
)
def test_bad_shards_are_refused_by_name(given: Any, loss: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        solve_shards(given, loss, P.L2(0.1))
