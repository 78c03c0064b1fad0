"""Laws of merging what workers have learned, for every rule that does not say why it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.rules.merging import combined, merged, sharing
from tests.support.members import (
    LOSSES,
    RULES,
    allowed,
    brief,
    close,
    estimator,
    know_all,
    pairs,
    stream_for,
)

MERGES = {"sum", "max", "min", "mean", "average", "slotwise", "derived"}
CASES = [
    (rule, penalty, next(loss for loss in LOSSES if allowed(rule, penalty, loss)))
    for rule, penalty in pairs()
]


def rule_of(model: Any) -> Any:
    [rule] = model.engine.learner.rules()
    return rule


def trained(rule: Any, penalty: Any, loss: Any) -> tuple[Any, Any, Any]:
    """A bound rule, its state in the middle of a stream, and a function that learns on from it."""
    data = stream_for(loss, weighed=False)
    model = estimator(rule, penalty, loss)
    know_all(model)
    model.learn_rows(data.X[:40], data.y[:40])
    base = rule_of(model).state()

    def learn(start: int, stop: int, columns: Any = slice(None)) -> Any:
        worker = model.clone()
        know_all(worker)
        worker.restore(model.state())
        X = np.zeros_like(data.X[start:stop])
        X[:, columns] = data.X[start:stop, columns]
        worker.learn_rows(X, data.y[start:stop])
        return rule_of(worker).state()

    return rule_of(model), base, learn


def mergeable(case: tuple[Any, Any, Any]) -> bool:
    rule, penalty, loss = case
    return rule.bind(penalty, loss).why_no_merge is None


MERGED = [case for case in CASES if mergeable(case)]


def weights(rule: Any, state: Any) -> Any:
    found = rule.fresh()
    found.restore(state)
    return found.weights()


def test_every_number_says_how_it_merges() -> None:
    for rule in RULES:
        for part in (rule, *getattr(rule, "rules", ())):
            if type(part).__name__ in {"AcceleratedDualAveraging", "PolynomialAverage"}:
                continue
            assert {field.merge for field in part.fields} <= MERGES, part
            assert set(part.scalar_merges.values()) <= MERGES, part
            assert set(part.scalars) <= set(part.scalar_merges), part
            assert part.evidence is None or part.evidence in {f.name for f in part.fields}


def test_refused_rules_say_why() -> None:
    refused = [case for case in CASES if not mergeable(case)]
    names = {type(rule.bind(penalty, loss)).__name__ for rule, penalty, loss in refused}
    known = {"AcceleratedDualAveraging", "Proximal", "OptimisticProximal", "PolynomialAverage"}
    under_l1 = {"SparseMixture", "Mixture", "CompositeMirrorDescent"}
    under_l1 |= {"FTRLAdaptive", "FTRLNewton", "FTRLCoinBetting"}
    assert names <= known | under_l1
    for rule, penalty, loss in refused:
        bound = rule.bind(penalty, loss)
        with pytest.raises(sl.IncompatibleError, match="use"):
            merged(bound, bound.state(), [])


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_merging_one_worker_changes_nothing(case: Any) -> None:
    rule, base, learn = trained(*case)
    one = learn(40, 60)
    assert model_file.pack(merged(rule, base, [base, one, base])) == model_file.pack(one)
    assert model_file.pack(merged(rule, base, [base, base])) == model_file.pack(base)


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_workers_that_agree_are_confirmed(case: Any) -> None:
    rule, base, learn = trained(*case)
    one = learn(40, 60)
    both = merged(rule, base, [one, one, one])
    if rule.scalar_merges["t"] == "mean":
        assert both["t"] == one["t"]
        close(weights(rule, both), weights(rule, one), 1e-6)
    else:
        assert both["t"] - base["t"] == 3 * (one["t"] - base["t"])
        close(weights(rule, both), weights(rule, one), 1e-6)


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_the_order_of_workers_only_rounds(case: Any) -> None:
    rule, base, learn = trained(*case)
    states = [learn(40, 50), learn(50, 61), learn(61, 72)]
    forth, back = merged(rule, base, states), merged(rule, base, states[::-1])
    close(weights(rule, forth), weights(rule, back), 1e-6)
    assert np.isfinite(weights(rule, forth)).all()


BY_SLOT = [
    case
    for case in MERGED
    if (bound := case[0].bind(*case[1:])).evidence is not None and bound.merges_by_slot
]


@pytest.mark.parametrize("case", BY_SLOT, ids=brief)
def test_a_slot_that_one_worker_saw_is_that_workers(case: Any) -> None:
    rule, base, learn = trained(*case)
    left, right = learn(40, 56, slice(0, 2)), learn(56, 72, slice(2, 5))
    both = merged(rule, base, [left, right])
    columns = [k for k, field in enumerate(rule.fields) if field.merge == "slotwise"]
    names = [rule.fields[k].name for k in columns]
    if "sigma" in names or "weight" in names:  # kept in other units
        columns = []
        rows = weights(rule, both), weights(rule, left), weights(rule, right)
        tolerance = 1e-6
        np.testing.assert_allclose(rows[0][:2], rows[1][:2], rtol=tolerance, atol=1e-9)
        np.testing.assert_allclose(rows[0][2:5], rows[2][2:5], rtol=tolerance, atol=1e-9)
    for k in columns:
        np.testing.assert_allclose(both["cells"][:2, k], left["cells"][:2, k], rtol=1e-12)
        np.testing.assert_allclose(both["cells"][2:5, k], right["cells"][2:5, k], rtol=1e-12)


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_a_weight_that_is_zero_for_all_stays_zero(case: Any) -> None:
    rule, base, learn = trained(*case)
    states = [learn(40, 56, slice(0, 5)), learn(56, 72, slice(0, 7))]
    found = weights(rule, merged(rule, base, states))
    if rule.evidence is None or not rule.merges_by_slot:
        untouched = np.all([weights(rule, state) == 0.0 for state in states], axis=0)
    else:  # sums of slots that both saw may leave a threshold together
        untouched = np.all([weights(rule, s) == 0.0 for s in (base, *states)], axis=0)
        untouched[:7] = False
    assert (found[untouched] == 0.0).all()


def test_sums_of_learned_moves_overshoot_and_means_do_not() -> None:
    """On (w - 1)^2 / 2 two workers that went to 1 each go to 2 together, and to 1 by the mean."""
    base, workers = np.array([0.0]), np.array([[1.0], [1.0]])
    assert combined("sum", base, workers, np.ones(2), None) == 2.0
    assert combined("mean", base, workers, np.ones(2), None) == 1.0
    assert combined("slotwise", base, workers, np.ones(2), sharing([np.ones(1)] * 2)) == 1.0
