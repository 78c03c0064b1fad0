"""In which order records of several partitions are taken, learned, and left out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from streamlearn.daemon.until import UntilCount
from streamlearn.kafka.backlog import Backlog
from streamlearn.stream import Partition, Records
from streamlearn.stream.polled import Polled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Log = dict[Partition, list[list[int]]]  # the times of records, in the chunks in which they came


def made(seed: int) -> Log:
    """Times that may go back, chunks without records, partitions of very different length."""
    draw = random.Random(seed)
    log: Log = {}
    for number in range(draw.randint(1, 4)):
        chunks = [
            [draw.randrange(50) for _ in range(draw.choice([0, 1, 2, 9, 30]))]
            for _ in range(draw.randint(1, 4))
        ]
        log[Partition("t", number)] = chunks
    return log


def backlog(log: Mapping[Partition, Sequence[Sequence[int]]], *, by_time: bool = True) -> Backlog:
    waiting = Backlog(by_time=by_time)
    for where, chunks in log.items():
        at = 0
        for times in chunks:
            offsets = range(at, at + len(times))
            at += len(times)
            values = [b"%d" % time for time in times]
            waiting.add(Records(where, offsets, values, at, times=times), 10 * len(times))
    return waiting


def plainly(log: Log) -> Iterator[tuple[Partition, int]]:
    """The least head, again and again, until a partition has run out."""
    left = {where: [time for times in log[where] for time in times] for where in log}
    at = dict.fromkeys(left, 0)
    while all(at[where] < len(left[where]) for where in left):
        where = min(left, key=lambda one: (left[one][at[one]], one))
        yield where, at[where]
        at[where] += 1


def found(polled: Sequence[Records]) -> list[tuple[Partition, int]]:
    whole = Polled([one for one in polled if len(one.offsets)] or polled)
    which, places = whole.find(np.arange(len(whole)))
    records = [whole.records[k] for k in which.tolist()]
    return [(one.partition, one.offsets[i]) for one, i in zip(records, places, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_by_time_the_earliest_record_comes_first(seed: int) -> None:
    log = made(seed)
    waiting, most = backlog(log), random.Random(seed).choice([1, 3, 10, 1000])
    taken: list[tuple[Partition, int]] = []
    while all(waiting.waits(where) for where in log):
        polled = waiting.take(most)
        assert polled
        order = found(polled)
        assert len(order) <= most
        taken += order
        ends = {one.partition: one.end for one in polled}
        for where, end in ends.items():
            assert end == sum(one == where for one, _ in taken)
    assert taken == list(plainly(log))


@pytest.mark.parametrize("by_time", [False, True])
def test_empty_backlog(by_time: bool) -> None:
    assert Backlog(by_time=by_time).take(10) == []


def polled_of(seed: int) -> list[Records]:
    log = {where: [sum(chunks, [1])] for where, chunks in made(seed).items()}
    return backlog(log).take(1000)


@pytest.mark.parametrize("seed", range(10))
def test_a_count_ends_at_its_record_in_any_order(seed: int) -> None:
    whole = found(polled_of(seed))
    for count in {0, 1, len(whole) // 2, len(whole) - 1, len(whole), len(whole) + 3}:
        until: Any = UntilCount(count)
        part = until.truncate(polled_of(seed))
        assert (found(part) if part else []) == whole[:count]
        assert until.remaining == max(count - len(whole), 0)


@pytest.mark.parametrize("seed", range(10))
def test_runs_are_the_records_in_their_order(seed: int) -> None:
    polled = polled_of(seed)
    at: dict[Partition, int] = {}
    told: list[tuple[Partition, int]] = []
    for where, end in Polled(polled).runs():
        told += [(where, i) for i in range(at.get(where, 0), end)]
        at[where] = end
    assert told == found(polled)


@pytest.mark.parametrize("seed", range(30))
def test_without_times_each_record_is_taken_once_as_many_as_are_wanted(seed: int) -> None:
    draw, log = random.Random(seed), made(seed)
    waiting = backlog(log, by_time=False)
    left = {where: sum(map(len, chunks)) for where, chunks in log.items()}
    at = dict.fromkeys(left, 0)
    while any(left.values()):
        most, before = draw.choice([1, 2, 3, 10, 1000]), dict(left)
        taken: dict[Partition, int] = dict.fromkeys(left, 0)
        for one in waiting.take(most):
            assert list(one.offsets) == list(range(at[one.partition], one.end))
            at[one.partition] = one.end
            taken[one.partition] += len(one.offsets)
            left[one.partition] -= len(one.offsets)
        assert sum(taken.values()) == min(most, sum(before.values()))
    assert set(left.values()) <= {0}
