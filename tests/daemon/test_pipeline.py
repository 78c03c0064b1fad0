"""What a pipeline reports, saves and restores, poll by poll."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.daemon.process.log import Log
from streamlearn.stream import Partition, Records
from tests.support.streams import TOPIC, event, make_loop, skip_to

if TYPE_CHECKING:
    from streamlearn.daemon.pipeline import Pipeline


def records(partition: int, start: int, good: list[bool], end: int | None = None) -> Records:
    """Consecutive records, some of them valid; `end` may be later."""
    offsets = range(start, start + len(good))
    values = [event(partition, i) if fine else b"{" for i, fine in zip(offsets, good, strict=True)]
    return Records(Partition(TOPIC, partition), offsets, values, end or offsets.stop)


def fresh() -> Pipeline:
    return make_loop(None, log=Log("json", "error"), ratio=0.5).pipeline


def stop_of(pipeline: Pipeline, *polls: list[Records]) -> tuple[int, Exit, str] | None:
    """The index of the poll with too many invalid records, the exit code and the reason."""
    for k, poll in enumerate(polls):
        try:
            pipeline.process(poll)
        except Stop as stop:
            return k, stop.code, str(stop)
    return None


def test_skip_to_remedy_resumes_after_the_poll_of_the_last_invalid_record() -> None:
    """A block has 20 records; the partition of the last one in the block is named."""
    polls = [
        [records(0, 0, [False] * 35), records(1, 100, [False] * 40, end=170), records(2, 7, [True])]
    ]
    found = stop_of(fresh(), *polls)
    assert found is not None
    at, code, reason = found
    assert (at, code) == (0, Exit.INVALID_RECORDS)
    # the 60th record is the 25th of partition 1, and its poll ended at 170
    assert f"{TOPIC}:1:124:" in reason
    assert skip_to(reason) == f"{TOPIC}:1:170"


def test_consistent_after_each_completed_poll() -> None:
    """A batch that failed must not be saved."""
    pipeline = fresh()
    assert pipeline.consistent
    for k in range(2):
        pipeline.process([records(0, 10 * k, [True] * 10)])
        assert pipeline.consistent
        assert pipeline.revision == k + 1
    assert stop_of(pipeline, [records(0, 20, [False] * 90)]) is not None
    assert not pipeline.consistent
    assert pipeline.revision == 2
    assert pipeline.positions == {Partition(TOPIC, 0): 20}


def test_limit_of_invalid_records_is_resumed() -> None:
    polls = [[records(0, 30 * k, [k % 3 == 0] * 30)] for k in range(8)]
    through = fresh()
    expected = stop_of(through, *polls)
    assert expected is not None
    for cut in range(1, expected[0] + 1):
        first, second = fresh(), fresh()
        assert stop_of(first, *polls[:cut]) is None
        second.restore(first.state(), resumed=["default", "sparse"], features=True)
        assert second.counts == first.counts
        found = stop_of(second, *polls[cut:])
        assert found is not None
        assert (found[0] + cut, *found[1:]) == expected


def test_observer_whose_state_fails_is_dropped() -> None:
    class Forgetful(Observer):
        name = "forgetful"
        polls = 0

        def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - any
            self.polls += 1

        def state(self) -> Any:
            raise ValueError("not today")

    class Faithful(Forgetful):
        name = "faithful"

        def state(self) -> Any:
            return self.polls

    pipeline = fresh()
    one, other = Forgetful(), Faithful()
    pipeline.observers = [one, other]
    pipeline.process([records(0, 0, [True])])
    assert pipeline.state()["observers"] == {"faithful": 1}
    assert pipeline.observers == [other]
    pipeline.process([records(0, 1, [True])])
    assert (one.polls, other.polls) == (1, 2)
    assert pipeline.state()["observers"] == {"faithful": 2}


@pytest.mark.parametrize("failing", ["restore", "on_batch"])
def test_observer_that_fails_in_another_method(failing: str) -> None:
    """An observer whose state is damaged starts fresh; one that fails on a batch is dropped."""

    class Failing(Observer):
        name = "failing"

    def fail(*_: Any) -> None:
        raise ValueError("not today")

    pipeline, observer = fresh(), Failing()
    setattr(observer, failing, fail)
    pipeline.observers = [observer]
    state = {**fresh().state(), "observers": {"failing": 3}}
    pipeline.restore(state, resumed=[], features=False)
    pipeline.process([records(0, 0, [True])])
    assert (observer in pipeline.observers) == (failing == "restore")
    assert pipeline.counts.records == 1
