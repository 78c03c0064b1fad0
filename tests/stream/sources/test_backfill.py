"""History, then a stream, as one source that resumes in either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streamlearn.errors import SourceChangedError
from streamlearn.stream import Files, Partition, Records, Source, Synthetic
from streamlearn.stream.sources.backfill import Backfill, refuse_unfinished
from streamlearn.stream.sources.clicks import Clicks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LINES, EVENTS = 25, 30
STREAM = Partition("synthetic")


class Stream(Synthetic):
    """A stream that first tells where it starts, as a Kafka source does."""

    def __init__(self) -> None:
        super().__init__(Clicks(), events=EVENTS, batch=7)
        self.starts: list[Records] = []

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        super().open(positions, identity)
        self.starts = [Records(STREAM, (), (), positions.get(STREAM, 0))]

    def poll(self, seconds: float) -> list[Records]:
        starts, self.starts = self.starts, []
        return starts or super().poll(seconds)


def backfill(path: Path, cut: str = "T", starts: dict[Partition, int] | None = None) -> Backfill:
    return Backfill(Files([str(path)], batch=4), Stream(), cut=cut, starts=starts)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"line {i}\n" for i in range(LINES)), encoding="utf-8")
    return path


def drained(source: Source, polls: int = 1000) -> list[Records]:
    found: list[Records] = []
    while not source.ended() and len(found) < polls:
        found += source.poll(0.0)
    source.close()
    return found


def test_history_comes_before_the_stream(history: Path) -> None:
    source = backfill(history)
    source.open({}, None)
    found = drained(source)
    values = [value for one in found for value in one.values]
    assert values[:LINES] == [b"line %d" % i for i in range(LINES)]
    assert values[LINES:] == Clicks().values(0, EVENTS)


@pytest.mark.parametrize("polls", range(1, 14))
def test_it_resumes_after_any_poll(history: Path, polls: int) -> None:
    whole = backfill(history)
    whole.open({}, None)
    expected = [value for one in drained(whole) for value in one.values]
    first = backfill(history)
    first.open({}, None)
    found = drained(first, polls)
    identity = first.identity()
    second = backfill(history)
    second.open({one.partition: one.end for one in found}, identity)
    found += drained(second)
    assert [value for one in found for value in one.values] == expected


def test_history_may_be_removed_once_it_is_read(history: Path) -> None:
    source = backfill(history)
    source.open({}, None)
    while source.in_history:
        source.poll(0.0)
    positions, identity = {STREAM: 5}, source.identity()
    history.unlink()
    resumed = backfill(history)
    resumed.open(positions, identity)
    found = drained(resumed)
    assert found[0].end == found[1].offsets[0] == 5
    assert source.lag() == {STREAM: EVENTS}
    refuse_unfinished(identity)


def test_the_stream_starts_where_it_is_told(history: Path) -> None:
    source = backfill(history, starts={STREAM: 11})
    source.open({}, None)
    found = [one for one in drained(source) if one.partition == STREAM]
    assert found[0].end == found[2].offsets[0] == 11
    assert found[-1].end == EVENTS


def test_another_cut_is_refused(history: Path) -> None:
    source = backfill(history)
    source.open({}, None)
    for identity in (source.identity(), {}):
        with pytest.raises(SourceChangedError):
            backfill(history, cut="T2").open({}, identity)
    with pytest.raises(SourceChangedError):
        refuse_unfinished(source.identity())
