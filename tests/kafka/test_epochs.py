"""The last record before a position is found again, or the log was truncated."""

from __future__ import annotations

import pytest

from streamlearn.errors import SourceChangedError
from streamlearn.kafka.epochs import LeaderEpochs, Mark, marks_of, without, written
from streamlearn.stream.records import Partition, Records

HERE, THERE = Partition("clicks", 0), Partition("clicks", 1)
MARK = Mark(epoch=3, offset=41, position=44)  # 42 and 43 are marks of transactions


def came(*offsets: int, epoch: int = 3) -> Records:
    """Return records as a client library gives them."""
    end = offsets[-1] + 1 if offsets else 44
    return Records(HERE, offsets, [b""] * len(offsets), end, epochs=[epoch] * len(offsets))


@pytest.fixture
def epochs() -> LeaderEpochs:
    """Return marks of which one is sought."""
    epochs = LeaderEpochs()
    epochs.seek({HERE: MARK})
    return epochs


def test_reading_begins_at_the_mark_and_returns_what_follows(epochs: LeaderEpochs) -> None:
    assert epochs.start(HERE, 44) == 41
    assert epochs.start(THERE, 7) == 7
    new = epochs.new(came(41, 44, 45))
    assert (list(new.offsets), new.end) == ([44, 45], 46)
    assert epochs.new(came(46)).offsets == (46,)


def test_a_mark_does_not_move_a_position_back(epochs: LeaderEpochs) -> None:
    new = epochs.new(came(41))
    assert (list(new.offsets), new.end) == ([], 44)


@pytest.mark.parametrize("records", [came(41, 44, epoch=4), came(41, 42), came(42, epoch=4)])
def test_another_log(epochs: LeaderEpochs, records: Records) -> None:
    with pytest.raises(SourceChangedError, match=r"clicks/0 .* position 44"):
        epochs.new(records)


def test_a_compacted_or_deleted_mark_is_ignored(epochs: LeaderEpochs) -> None:
    assert epochs.new(came(45, epoch=4)).offsets == (45,)
    epochs.seek({HERE: MARK})
    assert epochs.give_up(HERE)
    assert not epochs.give_up(HERE)
    assert epochs.start(HERE, 44) == 44
    assert HERE not in epochs.marks


def test_marks_of_returned_records() -> None:
    epochs = LeaderEpochs()
    epochs.given(came(5, 6))
    epochs.given(Records(HERE, (), (), 9))
    epochs.given(Records(THERE, (), (), 9))
    assert epochs.marks == {HERE: Mark(3, 6, 9)}
    kept = {"cluster": "x", **written(epochs.marks)}
    assert marks_of(kept, {HERE: 9, THERE: 9}) == epochs.marks
    assert marks_of(kept, {HERE: 12}) == {}, "the records between were skipped"
    assert without(kept, [HERE]) == {"cluster": "x"}
