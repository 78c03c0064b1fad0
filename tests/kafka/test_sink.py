"""Errors of topics that are not writable, without a broker."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import InvalidTimestampError

from streamlearn.errors import SinkDeniedError, SinkError, SinkNotFoundError
from streamlearn.kafka import Connection
from streamlearn.kafka.confluent import sink
from streamlearn.kafka.sink import refused


class Admin:
    """An admin client whose every answer is an error."""

    def __init__(self, code: int) -> None:
        self.code = code

    def describe_topics(self, topics: Any, **_: object) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(topics.topic_names, answer)


@pytest.mark.parametrize(
    ("code", "kind", "named"),
    [
        (KafkaError._TIMED_OUT, SinkError, "out"),
        (KafkaError._TRANSPORT, SinkError, "out"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, SinkNotFoundError, "out"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, SinkDeniedError, "WRITE"),
    ],
)
def test_a_slow_broker_is_not_a_missing_topic(code: int, kind: type[SinkError], named: str) -> None:
    with pytest.raises(SinkError, match=named) as caught:
        sink._examine(Admin(code), Connection(bootstrap="b:1", client="confluent"), "out")  # type: ignore[arg-type]
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "why", [KafkaError(KafkaError.INVALID_TIMESTAMP).str(), str(InvalidTimestampError())]
)
def test_a_clock_that_is_ahead_is_no_fault_of_the_topic(why: str) -> None:
    assert "clock" in str(refused("out", why))
    assert "clock" not in str(refused("out", KafkaError(KafkaError.INVALID_CONFIG).str()))
