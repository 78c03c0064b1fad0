"""Where a bounded run ends: which records it takes, and when it stops."""

from __future__ import annotations

from typing import Any

import pytest

from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.daemon.until import UntilTime, parse_until
from streamlearn.stream import Partition, Records

A, B = Partition("t", 0), Partition("t", 1)
LATER = 4_102_444_800_000  # in the year 2100


class Stub:
    """A source that is where it is told."""

    def __init__(self, lag: dict[Partition, int | None], *, ended: bool = False) -> None:
        self._lag, self._ended = lag, ended

    def ended(self) -> bool:
        return self._ended

    def lag(self) -> dict[Partition, int | None]:
        return self._lag


def batch(where: Partition, times: list[int] | None, count: int = 3) -> Records:
    offsets = list(range(10, 10 + (count if times is None else len(times))))
    return Records(where, offsets, [b"{}"] * len(offsets), 99, times=times)


def taken(until: Any, *batches: Records) -> list[tuple[Partition, list[int], int]]:
    return [(one.partition, list(one.offsets), one.end) for one in until.truncate(batches)]


def test_a_time_ends_each_partition_at_its_first_later_record() -> None:
    until = UntilTime(1000.0)
    early, mixed = batch(A, [1, 999]), batch(B, [999, 1000, 5])
    assert taken(until, early, mixed) == [(A, [10, 11], 99), (B, [10], 11)]
    # later batches of a partition that has ended are left out, also earlier records
    assert taken(until, batch(B, [1]), batch(A, [1000])) == []
    assert taken(until, batch(A, [1])) == []
    assert taken(UntilTime(1000.0), batch(A, [])) == [(A, [], 99)]


def test_a_time_needs_the_times_of_records() -> None:
    with pytest.raises(Stop) as caught:
        UntilTime(1000.0).truncate([batch(A, None)])
    assert caught.value.code == Exit.USAGE


def test_a_time_is_reached_once_no_partition_has_earlier_records() -> None:
    past = UntilTime(1000.0)
    past.truncate([batch(B, [1000])])
    assert past.reached(Stub({A: 0, B: 7}))  # type: ignore[arg-type]
    assert not past.reached(Stub({A: 1, B: 7}))  # type: ignore[arg-type]
    assert not past.reached(Stub({A: None, B: 7}))  # type: ignore[arg-type]
    assert not past.reached(Stub({}))  # type: ignore[arg-type]
    assert past.reached(Stub({A: 5}, ended=True))  # type: ignore[arg-type]
    assert not UntilTime(LATER).reached(Stub({A: 0}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "want"),
    [
        (2, [(A, [10, 11], 12)]),
        (3, [(A, [10, 11, 12], 99)]),
        (4, [(A, [10, 11, 12], 99), (B, [10], 11)]),
        (6, [(A, [10, 11, 12], 99), (B, [10, 11, 12], 99)]),
        (7, [(A, [10, 11, 12], 99), (B, [10, 11, 12], 99)]),
    ],
)
def test_a_number_is_that_of_the_records_taken(count: int, want: list[Any]) -> None:
    until = parse_until(str(count))
    assert taken(until, batch(A, None), batch(B, None)) == want
    assert until.reached(Stub({A: 1})) == (count <= 6)  # type: ignore[arg-type]
    assert until.reached(Stub({A: 1}, ended=True))  # type: ignore[arg-type]
    more = taken(until, batch(A, None))
    assert more == ([] if count <= 6 else [(A, [10], 11)])


def test_the_end_and_no_end_take_everything() -> None:
    for text, ended in (("end", True), (None, False)):
        until = parse_until(text)
        assert taken(until, batch(A, None)) == [(A, [10, 11, 12], 99)]
        assert not until.reached(Stub({A: 0}))  # type: ignore[arg-type]
        assert until.reached(Stub({A: 0}, ended=True)) == ended  # type: ignore[arg-type]


def test_what_is_no_end() -> None:
    until = parse_until("1970-01-01T00:00:01Z")
    assert isinstance(until, UntilTime)
    assert until.moment == 1000.0
    with pytest.raises(Stop) as caught:
        parse_until("someday")
    assert caught.value.code == Exit.USAGE
