"""Laws of merging what workers have learned, for every rule that does not say why it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.rules import Rule, merging
from streamlearn.rules.combining import combine
from streamlearn.rules.merging import merged
from streamlearn.rules.moves import Move, Snapshot, put, take
from streamlearn.rules.slot_state import PerSlot
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


def trained(rule: Any, penalty: Any, loss: Any) -> tuple[Any, Any]:
    """A bound rule in the middle of a stream, and a function that learns on from there."""
    data = stream_for(loss, weighed=False)
    model = estimator(rule, penalty, loss)
    know_all(model)
    model.learn_rows(data.X[:40], data.y[:40])

    def learn(start: int, stop: int, columns: Any = slice(None)) -> Move:
        worker = model.clone()
        know_all(worker)
        worker.restore(model.state())
        base = Snapshot(rule_of(worker))
        X = np.zeros_like(data.X[start:stop])
        X[:, columns] = data.X[start:stop, columns]
        worker.learn_rows(csr_array(X), data.y[start:stop])
        return base.moved()

    return rule_of(model), learn


def after(rule: Any, move: Move) -> Any:
    """A copy of a rule, moved."""
    found = rule.fresh()
    found.restore(rule.state())
    put(found, move)
    return found


def whole(rule: Any, move: Move) -> Move:
    """A move with all slots."""
    return take(after(rule, move), None)


def bits(move: Move) -> bytes:
    """All of a move."""
    rows = [one.tobytes() for one in move.rows]
    return b"".join([*rows, move.places().tobytes(), model_file.pack(move.scalars)])


def mergeable(case: tuple[Any, Any, Any]) -> bool:
    rule, penalty, loss = case
    return rule.bind(penalty, loss).why_no_merge is None


MERGED = [case for case in CASES if mergeable(case)]


def weights(rule: Any, move: Move) -> Any:
    return after(rule, move).weights()


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
    under_l1 = {"SparseMixture", "TargetedMixture", "Mixture", "CompositeMirrorDescent"}
    under_l1 |= {"FTRLAdaptive", "FTRLNewton", "FTRLCoinBetting"}
    assert names <= known | under_l1
    for rule, penalty, loss in refused:
        bound = rule.bind(penalty, loss)
        with pytest.raises(sl.IncompatibleError, match="use"):
            merged(bound, [])


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_merging_one_worker_changes_nothing(case: Any) -> None:
    rule, learn = trained(*case)
    idle = take(rule, np.empty(0, dtype=np.int32))
    one = learn(40, 60)
    assert merged(rule, [idle, one, idle]) is one
    before = rule.state()
    assert model_file.pack(after(rule, merged(rule, [idle, idle])).state()) == model_file.pack(
        before
    )


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_a_move_is_all_that_was_learned_and_can_be_undone(case: Any) -> None:
    """To the bit, like learning in one go."""
    rule, penalty, loss = case
    data = stream_for(loss, weighed=False)
    model, worker = (estimator(rule, penalty, loss) for _ in range(2))
    for one in (model, worker):
        know_all(one)
        one.learn_rows(csr_array(data.X[:40]), data.y[:40])
    before = model_file.pack(rule_of(worker).state())
    base = Snapshot(rule_of(worker))
    X, y = csr_array(data.X[40:60]), data.y[40:60]
    for _ in range(2):  # and again, from the same base
        worker.learn_rows(X, y)
        learned = base.moved()
        base.restore()
        assert model_file.pack(rule_of(worker).state()) == before
    model.learn_rows(X, y)
    expected = model_file.pack(rule_of(model).state())
    base.advance(learned)
    assert model_file.pack(rule_of(worker).state()) == expected
    base.restore()
    assert model_file.pack(rule_of(worker).state()) == expected


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_only_touched_slots_are_merged_as_all_would_be(
    monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    rule, learn = trained(*case)
    left, right = learn(40, 56, slice(0, 5)), learn(56, 72, slice(3, 9))
    sparse = merged(rule, [left, right])
    dense = merged(rule, [whole(rule, left), whole(rule, right)])
    assert bits(whole(rule, sparse)) == bits(whole(rule, dense))
    monkeypatch.setattr(merging, "CHUNK", 3)
    for moves in ([left, right], [left, whole(rule, right)]):
        found = merged(rule, moves)
        assert bits(whole(rule, found)) == bits(whole(rule, sparse))


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_workers_that_agree_are_confirmed(case: Any) -> None:
    rule, learn = trained(*case)
    one = learn(40, 60)
    both = merged(rule, [one, one, one])
    if rule.scalar_merges["t"] == "mean":
        assert both.scalars["t"] == one.scalars["t"]
    else:
        assert both.scalars["t"] - rule.t == 3 * (one.scalars["t"] - rule.t)
    close(weights(rule, both), weights(rule, one), 1e-6)


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_the_order_of_workers_only_rounds(case: Any) -> None:
    rule, learn = trained(*case)
    moves = [learn(40, 50), learn(50, 61), learn(61, 72)]
    forth, back = merged(rule, moves), merged(rule, moves[::-1])
    close(weights(rule, forth), weights(rule, back), 1e-6)
    assert np.isfinite(weights(rule, forth)).all()


BY_SLOT = [
    case
    for case in MERGED
    if (bound := case[0].bind(*case[1:])).evidence is not None and bound.merges_by_slot
]


@pytest.mark.parametrize("case", BY_SLOT, ids=brief)
def test_a_slot_that_one_worker_saw_is_that_workers(case: Any) -> None:
    rule, learn = trained(*case)
    left, right = learn(40, 56, slice(0, 2)), learn(56, 72, slice(2, 5))
    both = merged(rule, [left, right])
    columns = [k for k, field in enumerate(rule.fields) if field.merge == "slotwise"]
    names = [rule.fields[k].name for k in columns]
    if case in PAYING:  # sums have the penalty in them: see below
        columns.remove(names.index("gradients"))
    if "sigma" in names or "weight" in names:  # kept in other units
        columns = []
        rows = weights(rule, both), weights(rule, left), weights(rule, right)
        tolerance = 1e-6
        np.testing.assert_allclose(rows[0][:2], rows[1][:2], rtol=tolerance, atol=1e-9)
        np.testing.assert_allclose(rows[0][2:5], rows[2][2:5], rtol=tolerance, atol=1e-9)
    cells, of_left, of_right = (after(rule, move).slots() for move in (both, left, right))
    for k in columns:
        np.testing.assert_allclose(cells[:2, k], of_left[:2, k], rtol=1e-12)
        np.testing.assert_allclose(cells[2:5, k], of_right[2:5, k], rtol=1e-12)


PAYING = [
    case
    for case in BY_SLOT
    if case[0].fields[0].name == "gradients" and case[1].simple and case[1].l1 + case[1].l2 > 0.0
]


@pytest.mark.parametrize("case", PAYING, ids=brief)
def test_the_penalty_of_a_slot_is_divided_like_its_gradients(case: Any) -> None:
    """The weights of s_0 + sum ds / m and of t_0 + sum dt / m penalties, with the same m."""
    rule, learn = trained(*case)
    moves = [learn(40, 50, slice(0, 4)), learn(50, 60, slice(2, 6)), learn(60, 72, slice(2, 9))]
    both = after(rule, merged(rule, moves))
    before, workers = rule.slots(), [after(rule, move) for move in moves]
    moved = np.stack([one.slots() - before for one in workers])
    seen = np.abs(moved[:, :, [one.name for one in rule.fields].index(rule.evidence)])
    squares = (seen**2).sum(axis=0)
    shares = np.where(squares > 0.0, seen.sum(axis=0) ** 2 / np.maximum(squares, 1e-300), 3.0)
    events = rule.t + sum(one.t - rule.t for one in workers) / shares
    found = both.weights()
    for j, a in enumerate(events):
        sums, *rest = before[j] + moved[:, j].sum(axis=0) / shares[j]
        if rest:
            b = (rule.delta + np.sqrt(rest[0])) / rule.step
        else:
            b = 1.0 / both.step_size - both.t * rule.penalty.l2
        [expected] = rule.penalty.minimizer([sums], a, b, getattr(rule, "rho", 0.0))
        assert found[j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert len(set(events)) > 2


@pytest.mark.parametrize("case", MERGED, ids=brief)
def test_a_weight_that_is_zero_for_all_stays_zero(case: Any) -> None:
    rule, learn = trained(*case)
    moves = [learn(40, 56, slice(0, 5)), learn(56, 72, slice(0, 7))]
    found = weights(rule, merged(rule, moves))
    zeros = [weights(rule, move) == 0.0 for move in moves]
    if rule.evidence is not None and rule.merges_by_slot:
        # sums of slots that both saw may leave a threshold together
        zeros.append(rule.weights() == 0.0)
        zeros[-1][:7] = False
    assert (found[np.all(zeros, axis=0)] == 0.0).all()


@pytest.mark.parametrize(("how", "expected"), [("sum", 2.0), ("mean", 1.0), ("slotwise", 1.0)])
def test_sums_of_learned_moves_overshoot_and_means_do_not(how: str, expected: float) -> None:
    """On (w - 1)^2 / 2 two workers that went to 1 each go to 2 together, and to 1 by the mean."""

    class Moved(Rule):
        fields = (PerSlot("weight", merge=how), PerSlot("seen", merge=how))

    parts = [Moved().bind(sl.penalties.Zero(), sl.losses.Squared()) for _ in range(4)]
    for part in parts:
        part.extend(1)
    result, base, *workers = parts
    for worker in workers:
        worker.restore_slots(np.ones((1, 2)))
    combine(result, base, workers, 1, [1.0, 1.0], "seen")
    assert result.slots()[0, 0] == expected
