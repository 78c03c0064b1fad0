"""Laws of merging what workers have learned, for every rule that does not say why it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.estimators.merging import ModelSnapshot, merge
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

MERGES = {"sum", "max", "min", "mean", "average", "slotwise", "seen", "derived"}
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
def test_means_of_workers_that_agree_are_each_of_them(
    monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    monkeypatch.setattr(merging, "FARTHER", 0.0)
    rule, learn = trained(*case)
    one = learn(40, 60)
    both = merged(rule, [one, one, one])
    counts_all = rule.scalar_merges["t"] == "sum" or (
        type(rule).__name__ == "AdaGradDualAveraging" and rule.merges_by_slot
    )
    expected = (3 if counts_all else 1) * (one.scalars["t"] - rule.t)
    assert both.scalars["t"] - rule.t == expected
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
    columns = [k for k, field in enumerate(rule.fields) if field.merge in {"slotwise", "seen"}]
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


def farther(moved: Any) -> Any:
    """How much farther than the mean slots go, by the moves of each worker (a row)."""
    squares, total = (moved**2).sum(axis=0), moved.sum(axis=0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = np.where(total > squares, 1.0 - squares / total, 0.0)
    return 1.0 + merging.FARTHER * agree


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
    shares = np.where(squares > 0.0, seen.sum(axis=0) ** 2 / np.maximum(squares, 1e-300), 1.0)
    plain, shares = shares, np.maximum(shares / farther(moved[:, :, 0]), 1.0)
    events = rule.t + sum(one.t - rule.t for one in workers) / shares
    found = both.weights()
    for j, a in enumerate(events):
        sums, *rest = before[j] + moved[:, j].sum(axis=0) / [
            shares[j],
            *[plain[j]] * (len(rule.fields) - 1),
        ]
        if rest:
            b = (rule.delta + np.sqrt(rest[0])) / rule.step
        else:
            b = 1.0 / both.step_size - (both.t + both.charged) * rule.penalty.l2
        [expected] = rule.penalty.minimizer([sums], a, b, getattr(rule, "rho", 0.0))
        assert found[j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert len(set(events)) > 2


@pytest.mark.parametrize("case", PAYING, ids=brief)
def test_a_slot_that_nobody_saw_pays_the_penalty_of_all_events(case: Any) -> None:
    """As for one learner of the events of both, whatever the slots that they see."""
    rule, learn = trained(*case)
    moves = [learn(40, 52, slice(0, 3)), learn(52, 72, slice(2, 5))]
    both = after(rule, merged(rule, moves))
    events = rule.t + sum(move.scalars["t"] - rule.t for move in moves)
    for j in range(5, rule.n):
        sums, *rest = rule.slots()[j]
        b = (rule.delta + np.sqrt(rest[0])) / rule.step if rest else None
        if b is None:
            b = 1.0 / both.step_size - (both.t + both.charged) * rule.penalty.l2
        [expected] = rule.penalty.minimizer([sums], events, b, getattr(rule, "rho", 0.0))
        assert both.weights()[j] == pytest.approx(expected, rel=1e-9, abs=1e-12)


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


class Moved(Rule):
    """A weight, and how much of it was seen."""

    fields = (
        PerSlot("weight", merge="slotwise", flips_sign=True),
        PerSlot("seen", merge="seen"),
    )


def combined(start: Any, ends: Any, share: float, evidence: str | None = "seen") -> Any:
    """The slots (slots x 2 numbers) to which workers (ends) move those of a base."""
    parts = [Moved().bind(sl.penalties.Zero(), sl.losses.Squared()) for _ in range(2 + len(ends))]
    for part, cells in zip(parts, [start, start, *ends], strict=True):
        part.extend(len(cells))
        part.restore_slots(cells)
    result, base, *workers = parts
    combine(result, base, workers, len(start), np.ones(len(ends)), evidence, share)
    return result.slots()


@pytest.mark.parametrize("count", [2, 3, 16])
def test_slots_go_farther_where_workers_agree_and_never_beyond_the_sum(count: int) -> None:
    rng = np.random.default_rng(count)
    start = rng.normal(size=(200, 2))
    moves = rng.normal(size=(count, 200, 2)) + rng.normal(size=(200, 2))
    moves[:, :, 1] = np.abs(moves[:, :, 1]) * (rng.random((count, 200)) < 0.5)  # rare slots, too
    moves[moves[:, :, 1] == 0.0] = 0.0
    plain, found = (combined(start, start + moves, share) for share in (0.0, 0.5))
    shares = moves[:, :, 1].sum(axis=0) ** 2 / np.maximum((moves[:, :, 1] ** 2).sum(axis=0), 1e-9)
    by = np.minimum(farther(moves[:, :, 0]), np.maximum(shares, 1.0))
    np.testing.assert_allclose(found[:, 0] - start[:, 0], by * (plain - start)[:, 0], atol=1e-12)
    assert by.min() == 1.0
    assert 1.2 < by.max() <= 1.5
    assert found[:, 1].tobytes() == plain[:, 1].tobytes()  # what was seen is a fact


@pytest.mark.parametrize("count", [2, 4, 16])
def test_slots_whose_workers_disagree_are_means_to_the_bit(count: int) -> None:
    start = np.full((1, 2), 0.7)
    ends = [start + np.array([[(-1.0) ** k * 0.3, 1.0]]) for k in range(count)]
    plain, found = (combined(start, ends, share) for share in (0.0, 0.5))
    assert found.tobytes() == plain.tobytes()
    ends[0][0, 0] += 5.0  # one goes far alone: its move is no agreement
    assert combined(start, ends, 0.5)[0, 0] - 0.7 < 1.1 * (combined(start, ends, 0.0)[0, 0] - 0.7)
    agree = [start + np.array([[0.3, 1.0]])] * count
    assert combined(start, agree, 0.5, None).tobytes() == combined(start, agree, 0.0).tobytes()


@pytest.mark.parametrize("count", [4, 16])
def test_going_farther_settles_below_one_and_may_diverge_above(count: int) -> None:
    """Each worker goes a share of the way to the optimum, 0, from the merged weight."""

    def far(way: float, share: float) -> float:
        at = np.ones((1, 2))
        for _ in range(50):
            end = np.array([[at[0, 0] * (1.0 - way), at[0, 1] + 1.0]])
            at = combined(at, [end] * count, share)
        return float(abs(at[0, 0]))

    for way in (0.1, 0.5, 0.9, 1.0):
        assert far(way, merging.FARTHER) < far(way, 0.0) + 1e-12
    assert far(1.0, 4.0) > 1.0


def test_workers_that_are_on_their_way_lose_less_where_they_go_farther(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((6000, 200)) < 0.05).astype(float)
    truth = rng.normal(size=200)
    labels = rng.random(6000) < 1.0 / (1.0 + np.exp(-rows @ truth))

    def loss(model: Any) -> float:
        model.know_labels([False, True])
        model.learn_rows(csr_array(rows[:1000]), labels[:1000])
        copies = [model.clone() for _ in range(8)]
        for copy in copies:
            copy.know_labels([False, True])
            copy.restore(model.state())
        bases, total = [ModelSnapshot(copy) for copy in copies], 0.0
        for first in range(1000, 6000, 500):
            for k, copy in enumerate(copies):
                mine = slice(first + k, first + 500, 8)
                scores = copy.progressive_rows(csr_array(rows[mine]), labels[mine])
                total += np.logaddexp(0.0, np.where(labels[mine], -scores, scores)).sum()
            learned = [base.moved() for base in bases]
            for base in bases:
                base.restore()
            moved = merge(model, learned)
            for base in bases:
                base.advance(moved)
        return float(total / 5000)

    slow = (
        sl.rules.DualAveraging(3.0),
        sl.rules.AdaGradDualAveraging(0.1),
        sl.rules.FTRLProximal(0.1),
    )
    for rule in slow:
        found = loss(sl.LinearClassifier(rule))
        with monkeypatch.context() as plain:
            plain.setattr(merging, "FARTHER", 0.0)
            before = loss(sl.LinearClassifier(rule))
        assert found < before - 0.0005, rule


@pytest.mark.parametrize(
    ("how", "expected"), [("sum", 2.0), ("mean", 1.0), ("slotwise", 1.0), ("seen", 1.0)]
)
def test_sums_of_learned_moves_overshoot_and_means_do_not(how: str, expected: float) -> None:
    """On (w - 1)^2 / 2 two workers that went to 1 each go to 2 together, and to 1 by the mean."""

    class Plain(Rule):
        fields = (PerSlot("weight", merge=how), PerSlot("seen", merge=how))

    parts = [Plain().bind(sl.penalties.Zero(), sl.losses.Squared()) for _ in range(4)]
    for part in parts:
        part.extend(1)
    result, base, *workers = parts
    for worker in workers:
        worker.restore_slots(np.ones((1, 2)))
    combine(result, base, workers, 1, [1.0, 1.0], "seen")
    assert result.slots()[0, 0] == expected
