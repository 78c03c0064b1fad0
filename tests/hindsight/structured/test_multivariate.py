"""Multivariate losses against brute force over labelings and rankings; laws of all members."""

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from streamlearn.hindsight.structured import multivariate
from streamlearn.hindsight.structured.multivariate import (
    NDCG,
    ExpectedRankUtility,
    FBeta,
    MultivariateLoss,
    OrdinalRegression,
    PrecisionAtK,
    ReciprocalRank,
    ROCArea,
)
from tests.support.members import members

Vector = NDArray[np.float64]

MEMBERS: list[MultivariateLoss] = members(multivariate, MultivariateLoss)
every = pytest.mark.parametrize("loss", MEMBERS, ids=repr)


def labels(loss: MultivariateLoss, random: np.random.Generator, m: int) -> Vector:
    grades = 2 if loss.kind == "binary" else 4
    return random.integers(0, grades, m).astype(float)


def queries(loss: MultivariateLoss, random: np.random.Generator, m: int) -> NDArray[Any] | None:
    return random.integers(0, 3, m) if loss.takes_groups else None


def cases(
    loss: MultivariateLoss, m: int, count: int = 30
) -> Iterator[tuple[Vector, Vector, NDArray[Any] | None]]:
    """Scores with and without ties, labels, groups or none."""
    random = np.random.default_rng(m)
    for i in range(count):
        f = random.normal(size=m) * random.choice([0.1, 1.0, 5.0])
        if i % 3 == 0:
            f = np.round(f)
        yield f, labels(loss, random, m), queries(loss, random, m) if i % 2 else None


def pairs(loss: Any, f: Vector, y: Vector) -> float:
    """Maximize over the y_ij in (-1, 1), written out as in [Teo07] section 3.1."""
    del loss
    violated = [
        max((y_ij - 1) * (f[i] - f[j] - 0.5) for y_ij in (-1, 1))
        for i, j in itertools.permutations(range(len(f)), 2)
        if y[i] > y[j]
    ]
    return math.fsum(violated) / max(1, len(violated))


def labelings(loss: Any, f: Vector, y: Vector) -> float:
    signs = np.where(y > 0, 1, -1)
    values = []
    for guess in itertools.product([-1, 1], repeat=len(f)):
        called = np.array(guess)
        if isinstance(loss, FBeta):
            delta = 1 - f_beta(loss.beta, signs, called)
        elif np.array_equal(called, signs):
            delta = 0.0
        elif (called == 1).sum() == loss.k:
            delta = float(np.mean(signs[called == 1] == -1))
        else:
            continue
        values.append(delta + float((called - signs) @ f) / len(f))
    return max(values)


def f_beta(beta: float, signs: NDArray[Any], called: NDArray[Any]) -> float:
    hits = float(((signs == 1) & (called == 1)).sum())
    below = beta**2 * (signs == 1).sum() + (called == 1).sum()
    if not (signs == 1).any():
        return float(not (called == 1).any())
    return (1 + beta**2) * hits / float(below)


def rankings(loss: Any, f: Vector, y: Vector) -> float:
    """Return the structured loss against the mean of all rankings in order of the grades."""
    m = len(f)
    if len(set(y)) == 1:
        return 0.0
    a = utility_discounts(loss, m)
    c = c_of(loss, m, a)
    right = [p for p in itertools.permutations(range(m)) if np.all(np.diff(y[list(p)]) <= 0)]
    reference = float(np.mean([c @ f[list(p)] for p in right]))
    values = [
        float(c @ f[list(p)]) - reference + missing(loss, a, y, y[list(p)])
        for p in itertools.permutations(range(m))
    ]
    return max(values)


def utility_discounts(loss: Any, m: int) -> Vector:
    ranks = np.arange(1, m + 1)
    if isinstance(loss, NDCG):
        return np.array([1 / math.log2(1 + i) if i <= (loss.k or m) else 0.0 for i in ranks])
    if isinstance(loss, ExpectedRankUtility):
        return np.array([2.0 ** ((1 - i) / (loss.half_life - 1)) for i in ranks])
    return np.array([1 / i if i <= loss.depth else 0.0 for i in ranks])


def c_of(loss: Any, m: int, a: Vector) -> Vector:
    decay = getattr(loss, "decay", None)
    return a if decay is None else np.arange(1, m + 1) ** -decay


def missing(loss: Any, a: Vector, y: Vector, ranked: Vector) -> float:
    """Return the loss of a ranking, between 0 and 1."""
    if isinstance(loss, ReciprocalRank):
        first = int(np.argmax(ranked == y.max()))
        return 1 - float(a[first])
    gain: Callable[[Vector], Vector] = lambda grades: 2**grades - 1  # noqa: E731
    if isinstance(loss, ExpectedRankUtility):
        gain = lambda grades: np.maximum(grades - loss.neutral, 0)  # noqa: E731
    best = float(a @ gain(np.sort(y)[::-1]))
    return 1 - float(a @ gain(ranked)) / best if best > 0 else 0.0


BRUTE: dict[type, Callable[[Any, Vector, Vector], float]] = {
    ROCArea: pairs,
    OrdinalRegression: pairs,
    FBeta: labelings,
    PrecisionAtK: labelings,
    NDCG: rankings,
    ExpectedRankUtility: rankings,
    ReciprocalRank: rankings,
}


def by_force(loss: MultivariateLoss, f: Vector, y: Vector, groups: NDArray[Any] | None) -> float:
    force = BRUTE[type(loss)]
    if groups is None:
        return force(loss, f, y)
    return float(np.mean([force(loss, f[groups == g], y[groups == g]) for g in set(groups)]))


@every
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_is_the_maximum_over_all_outcomes(loss: MultivariateLoss, m: int) -> None:
    if isinstance(loss, PrecisionAtK) and m < loss.k:
        return
    for f, y, groups in cases(loss, m):
        if loss.kind == "binary" and len(set(y)) == 1:
            y[:] = 1.0  # alone, the label 1 is the positive one
        assert loss.value(f, y, groups) == pytest.approx(by_force(loss, f, y, groups), abs=1e-12)


@every
@pytest.mark.parametrize("m", [4, 17, 60])
def test_slope_is_a_subgradient(loss: MultivariateLoss, m: int) -> None:
    random = np.random.default_rng(m)
    for f, y, groups in cases(loss, m):
        bound = loss.bind(y, groups)
        value, slope = bound.value_and_slope(f)
        assert value >= 0
        for far in (1e-6, 0.3, 3.0, 100.0):
            g = f + far * random.normal(size=m)
            there = bound.value_and_slope(g)[0]
            tangent = value + float(slope @ (g - f))
            assert tangent <= there + 1e-10 * (1 + abs(there) + abs(tangent))


@every
def test_a_correct_order_with_large_margins_has_no_loss(loss: MultivariateLoss) -> None:
    """Equal grades have equal scores here."""
    for _, y, groups in cases(loss, 23):
        value, slope = loss.bind(y, groups).value_and_slope(100 * (2 * y - 1) * len(y))
        if isinstance(loss, PrecisionAtK):
            continue  # k labels are called positive, however many are
        assert value == pytest.approx(0, abs=1e-6)
        assert np.abs(slope).max() <= 1


@every
def test_the_order_of_rows_does_not_matter(loss: MultivariateLoss) -> None:
    random = np.random.default_rng(1)
    for tied, y, groups in cases(loss, 19):
        f = tied + 1e-3 * random.normal(size=19)  # a tie has several subgradients
        turn = random.permutation(len(f))
        turned = None if groups is None else groups[turn]
        assert loss.value(f[turn], y[turn], turned) == pytest.approx(loss.value(f, y, groups))
        np.testing.assert_allclose(
            loss.slope(f[turn], y[turn], turned), loss.slope(f, y, groups)[turn], atol=1e-12
        )


@every
def test_a_common_offset_changes_no_ranking(loss: MultivariateLoss) -> None:
    if isinstance(loss, FBeta | PrecisionAtK):
        return  # these compare scores with 0
    for f, y, groups in cases(loss, 13):
        slope = loss.slope(f, y, groups)
        if groups is None:
            assert abs(slope.sum()) < 1e-12
        assert loss.value(f + 7.0, y, groups) == pytest.approx(loss.value(f, y, groups), abs=1e-9)


@every
def test_groups_can_have_any_names(loss: MultivariateLoss) -> None:
    f, y, groups = list(cases(loss, 12))[1]
    if groups is None:
        with pytest.raises(ValueError, match="groups"):
            loss.bind(y, np.zeros(12))
        return
    named = np.array(["ann", "bob", "cyd"])[groups]
    assert loss.value(f, y, named) == loss.value(f, y, groups)
    with pytest.raises(ValueError, match="groups"):
        loss.bind(y, groups[1:])


@every
def test_equality_repr_and_pickle(loss: MultivariateLoss) -> None:
    for twin in (pickle.loads(pickle.dumps(loss)), type(loss)(**loss.params)):
        assert twin == loss
        assert repr(twin) == repr(loss)


@every
def test_bad_labels_are_rejected(loss: MultivariateLoss) -> None:
    for y in ([], [[1.0, 0.0]], ["a", "b"], [1.0, math.nan], [1.0, math.inf]):
        with pytest.raises(ValueError, match=r"label|y must"):
            loss.bind(y)
    if loss.kind == "binary":
        with pytest.raises(ValueError, match="y has 3"):
            loss.bind([0.0, 1.0, 2.0])


@every
def test_a_single_grade_is_well_posed(loss: MultivariateLoss) -> None:
    for grade in (0.0, 1.0):
        value, slope = loss.bind(np.full(6, grade)).value_and_slope(np.arange(6.0) / 10)
        assert 0 <= value < 10
        assert np.isfinite(slope).all()


@every
def test_cost_grows_no_faster_than_a_sort(
    loss: MultivariateLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No array is longer than a few times m, and there are O(log m) of them."""
    if getattr(loss, "decay", None) is not None:
        return  # linear assignment is cubic
    m = 100_000
    random = np.random.default_rng(0)
    y = np.arange(m) % 2.0 if loss.kind == "binary" else random.integers(0, 50, m).astype(float)
    bound = loss.bind(y)
    work = 0

    def counted(sort: Callable[..., Any]) -> Callable[..., Any]:
        def run(keys: Any, *args: Any, **options: Any) -> Any:
            nonlocal work
            work += np.size(keys)
            return sort(keys, *args, **options)

        return run

    for name in ("argsort", "lexsort", "cumsum"):
        monkeypatch.setattr(np, name, counted(getattr(np, name)))
    value, slope = bound.value_and_slope(random.normal(size=m))
    assert 0 < value < m
    assert np.isfinite(slope).all()
    assert work < 3 * m * math.log2(m)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FBeta(0), "beta"),
        (lambda: PrecisionAtK(0), "k"),
        (lambda: PrecisionAtK(cast("Any", 1.5)), "k"),
        (lambda: PrecisionAtK(5).bind([0, 1]), "5 rows"),
        (lambda: NDCG(k=0), "k"),
        (lambda: NDCG().bind([-1, 0]), "grades"),
        (lambda: NDCG(decay=0), "decay"),
        (lambda: ExpectedRankUtility(half_life=1), "half_life"),
        (lambda: ReciprocalRank(0), "depth"),
    ],
)
def test_invalid_parameters_are_rejected_by_name(make: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        make()
