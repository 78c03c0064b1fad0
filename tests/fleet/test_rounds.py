"""The protocol of rounds: each record is learned once, whatever workers and owners do."""

from __future__ import annotations

from collections import Counter

import pytest

from streamlearn.fleet.rounds import BaseId, Delta, Rounds
from streamlearn.stream import Partition
from tests.fleet.simulated_fleet import Fleet

SEEDS = range(10)
ONE, TWO = Partition("t", 0), Partition("t", 1)


def run(seed: int, kind: type[Rounds] = Rounds) -> Fleet:
    fleet = Fleet(seed, kind)
    fleet.run()
    return fleet


class WithoutPositions(Rounds):
    """A negative control: a delta may start anywhere."""

    def continues(self, delta: Delta) -> bool:
        del delta
        return True


class WithoutBase(Rounds):
    """A negative control: a delta may be of any base."""

    def has_base(self, delta: Delta) -> bool:
        del delta
        return True


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(10, 100))]
)
def test_each_record_is_learned_once(seed: int) -> None:
    fleet = run(seed)
    assert fleet.is_exact()
    assert min(fleet.faults[kind] for kind in ("killed", "frozen", "twice", "again", "owner")) > 0


def test_both_checks_refuse() -> None:
    refused: Counter[str] = Counter()
    for seed in SEEDS:
        refused += run(seed).refused
    assert refused["base"] > 0
    assert refused["position"] > 0


@pytest.mark.parametrize("kind", [WithoutPositions, WithoutBase])
def test_without_either_check_records_are_lost_or_doubled(kind: type[Rounds]) -> None:
    """Otherwise the test above would prove nothing."""
    assert not all(run(seed, kind).is_exact() for seed in SEEDS)


def test_model_and_positions_move_when_the_round_is_finished() -> None:
    rounds = Rounds(3, {ONE: 0, TWO: 5})
    first, second = rounds.tasks(2)
    assert (first.base, first.starts, second.starts) == (BaseId(3, 0), {ONE: 0}, {TWO: 5})
    late = Delta(second.base, 1, second.starts, {TWO: 9}, "b")
    assert rounds.offer(late) is None
    assert rounds.offer(Delta(first.base, 0, first.starts, {ONE: 4}, "a")) is None
    assert rounds.positions == {ONE: 0, TWO: 5}
    assert [delta.learned for delta in rounds.finish()] == ["a", "b"]
    assert (rounds.positions, rounds.base) == ({ONE: 4, TWO: 9}, BaseId(3, 1))


def test_a_round_that_learned_nothing_keeps_its_base() -> None:
    rounds = Rounds(1, {ONE: 0})
    [task] = rounds.tasks(4)
    assert rounds.offer(Delta(task.base, 0, task.starts, task.starts)) is None
    assert rounds.finish() == []
    assert rounds.base == BaseId(1, 0)


def test_what_was_learned_of_a_partition_that_moved_is_dropped() -> None:
    rounds = Rounds(1, {ONE: 0, TWO: 0})
    first, second = rounds.tasks(2)
    assert rounds.offer(Delta(first.base, 0, first.starts, {ONE: 4})) is None
    rounds.place({ONE: 10})
    rounds.remove([TWO])
    assert rounds.offer(Delta(second.base, 1, second.starts, {TWO: 4})) == "position"
    assert rounds.finish() == []
    assert rounds.positions == {ONE: 10}
