"""Records wait until a broker that was asked after they were fetched names their topic's id."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING, cast

import pytest

from streamlearn.errors import SourceChangedError, SourceDeniedError, SourceUnreachableError
from streamlearn.kafka.reader import Topic
from streamlearn.kafka.verification import UnverifiedRecords
from streamlearn.stream.records import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamlearn.kafka.reader import KafkaReader

SECONDS = 20.0  # after which a test has hung
Answer = dict[str, str] | Exception


class Broker:
    """Tells what it is asked, and answers when the test says so."""

    def __init__(self) -> None:
        self.questions: SimpleQueue[Sequence[str]] = SimpleQueue()
        self.answers: SimpleQueue[Answer] = SimpleQueue()

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        self.questions.put(names)
        answer = self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return {name: Topic(topic, 1) for name, topic in answer.items() if name in names}


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def held(broker: Broker) -> Iterator[UnverifiedRecords]:
    held = UnverifiedRecords(cast("KafkaReader", broker), {"a": "1", "b": "2", "old": ""})
    yield held
    held.close()
    broker.answers.put({})


def records(topic: str, offset: int) -> Records:
    return Records(Partition(topic), [offset], [b"x"], offset + 1)


def taken(held: UnverifiedRecords, seconds: float = 0.0) -> list[tuple[str, int]]:
    return [(one.partition.topic, one.offsets[0]) for one, _ in held.take(seconds)]


def test_an_answer_confirms_earlier_fetches_only(held: UnverifiedRecords, broker: Broker) -> None:
    held.add(records("a", 0), 10)
    assert broker.questions.get(timeout=SECONDS) == ["a"]
    held.add(records("a", 1), 10)
    assert taken(held) == []
    broker.answers.put({"a": "1"})
    assert taken(held, SECONDS) == [("a", 0)]
    assert list(held.partitions()) == [Partition("a")]
    assert held.size == 10
    broker.questions.get(timeout=SECONDS)
    broker.answers.put({"a": "1"})
    assert taken(held, SECONDS) == [("a", 1)]
    assert not held
    assert held.size == 0


def test_records_of_a_recreated_topic_are_held_back(
    held: UnverifiedRecords, broker: Broker
) -> None:
    held.add(records("a", 0), 10)
    broker.answers.put({"a": "3"})
    with pytest.raises(SourceChangedError, match="topic a "):
        held.take(SECONDS)


@pytest.mark.parametrize("silence", [{"b": "2"}, SourceUnreachableError("no answer")])
def test_records_wait_for_an_answer(
    held: UnverifiedRecords, broker: Broker, silence: Answer
) -> None:
    held.add(records("a", 0), 10)
    broker.answers.put(silence)
    for _ in range(2):
        broker.questions.get(timeout=SECONDS)
    assert taken(held) == []
    broker.answers.put({"a": "1"})
    assert taken(held, SECONDS) == [("a", 0)]


def test_a_deleted_topic_does_not_hold_up_the_others(
    held: UnverifiedRecords, broker: Broker
) -> None:
    held.add(records("a", 0), 10)
    broker.questions.get(timeout=SECONDS)
    held.add(records("b", 0), 10)
    broker.answers.put({})
    assert broker.questions.get(timeout=SECONDS) == ["a", "b"]
    broker.answers.put({"b": "2"})
    assert taken(held, SECONDS) == [("b", 0)]
    held.drop([Partition("a")])
    assert not held


def test_a_missing_right_is_an_error(held: UnverifiedRecords, broker: Broker) -> None:
    held.add(records("a", 0), 10)
    broker.answers.put(SourceDeniedError("not authorized"))
    with pytest.raises(SourceDeniedError):
        held.take(SECONDS)


def test_brokers_without_topic_ids_are_not_asked(held: UnverifiedRecords, broker: Broker) -> None:
    held.add(records("old", 0), 10)
    assert taken(held) == [("old", 0)]
    assert broker.questions.empty()
