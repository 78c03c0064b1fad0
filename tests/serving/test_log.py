"""The log of served predictions: what is promised while its sink is slow, full, away or broken."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.errors import SinkError, SinkNotFoundError
from streamlearn.serving.http import log as module
from streamlearn.serving.http.log import ImpressionLog
from streamlearn.serving.http.metrics import RequestCounts, count_of
from streamlearn.serving.http.options import LogOptions
from streamlearn.serving.http.reading import RequestError
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamlearn.stream.sinks.sink import Record


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.05)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)


class Topic:
    """What sinks of a test have in common: a topic, which may be away or gone."""

    def __init__(self) -> None:
        self.away = threading.Event()
        self.gone = threading.Event()
        self.stored: list[Record] = []
        self.connections = 0

    def connect(self) -> Any:
        self.connections += 1
        if self.gone.is_set():
            raise SinkNotFoundError("no topic")
        return TopicSink(self)


class TopicSink(Sink):
    """A sink that stores what it has taken once its topic is there, as Kafka's clients do."""

    max_bytes = 1000

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.taken: list[Record] = []

    def send_all(self, records: Sequence[Record]) -> None:
        self.taken += records

    def send(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""

    def flush(self, seconds: float) -> None:
        if self.topic.gone.is_set():
            raise SinkNotFoundError("topic deleted")
        if self.topic.away.is_set():
            time.sleep(seconds)
            raise SinkError("not delivered in time")
        self.topic.stored += self.taken
        self.taken.clear()


def record(number: int, size: int = 10) -> Record:
    return b"x" * size, b"e%d" % number, [("streamlearn.served", b"{}")]


async def until_written(log: ImpressionLog) -> None:
    """Wait until nothing waits."""
    while log.waiting:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.01)


Scenario = Callable[[ImpressionLog, Topic], Any]


def run(path: Path, scenario: Scenario, topic: Topic, **settings: Any) -> RequestCounts:
    """Run a scenario with a log; return the counts of its end."""
    counts = RequestCounts(path)
    options = LogOptions(
        settings=config.ServeLogConfig(**{"topic": "log", "wait_seconds": 0.2, **settings}),
        connect=topic.connect,
    )

    async def main() -> None:
        log = ImpressionLog(options, counts)
        log.start()
        try:
            await scenario(log, topic)
        finally:
            await log.close(2.0)

    asyncio.run(main())
    return counts


def totals(counts: RequestCounts, *names: str) -> list[float]:
    """Return counts, of this process as if it had died, too."""
    running, dead = counts.totals()
    return [count_of(name, running + dead) for name in names]


def test_an_answer_before_is_stored(tmp_path: Path) -> None:
    async def scenario(log: ImpressionLog, topic: Topic) -> None:
        for i in range(5):
            await log.add([record(i), record(100 + i)])
            assert len(topic.stored) == 2 * (i + 1)
        assert log.waiting == 0

    topic = Topic()
    counts = run(tmp_path, scenario, topic)
    assert totals(counts, "log_accepted", "log_stored") == [10, 10]


@pytest.mark.parametrize("ack", ["before", "after"])
@pytest.mark.parametrize("on_full", ["refuse", "serve"])
def test_away(tmp_path: Path, ack: str, on_full: str) -> None:
    """While the topic is away, the buffer is bounded, and nothing that it took is lost."""
    outcomes = []

    async def scenario(log: ImpressionLog, topic: Topic) -> None:
        topic.away.set()
        for i in range(40):
            try:
                await log.add([record(i, size=500)])
                outcomes.append(200)
            except RequestError as error:
                outcomes.append(error.status)
            assert log.waiting < 11_000
        topic.away.clear()
        await until_written(log)
        await log.add([record(40)])

    topic = Topic()
    counts = run(
        tmp_path, scenario, topic, ack=ack, on_full=on_full, buffer_bytes=10_000, wait_seconds=0.02
    )
    accepted, stored, refused, unlogged = totals(
        counts, "log_accepted", "log_stored", "log_refused_requests", "unlogged_events"
    )
    assert accepted == stored == len(topic.stored)
    assert [one[1] for one in topic.stored] == [
        *(b"e%d" % i for i in range(int(accepted) - 1)),
        b"e40",
    ]
    late = 40 if ack == "before" else 40 - (int(accepted) - 1)
    assert (refused, unlogged) == ((late, 0) if on_full == "refuse" else (0, late))
    assert outcomes.count(503) == (late if on_full == "refuse" else 0)


def test_a_deleted_topic_that_comes_back(tmp_path: Path) -> None:
    """A sink that is broken for good is replaced, and what it had not stored is sent again."""

    async def scenario(log: ImpressionLog, topic: Topic) -> None:
        await log.add([record(0)])
        topic.gone.set()
        waits = asyncio.create_task(log.add([record(1)]))
        await asyncio.sleep(0.1)
        topic.gone.clear()
        await waits

    topic = Topic()
    run(tmp_path, scenario, topic, wait_seconds=5.0)
    assert [one[1] for one in topic.stored] == [b"e0", b"e1"]
    assert topic.connections > 2


def test_too_large(tmp_path: Path) -> None:
    async def scenario(log: ImpressionLog, topic: Topic) -> None:  # noqa: ARG001 - a scenario
        await log.add([record(0)])
        with pytest.raises(RequestError) as refused:
            await log.add([record(1), record(2, size=2000)])
        assert refused.value.status == 413

    topic = Topic()
    run(tmp_path, scenario, topic)
    assert [one[1] for one in topic.stored] == [b"e0"]


@pytest.mark.parametrize("away", [False, True])
def test_shutdown_writes_what_waits(tmp_path: Path, *, away: bool) -> None:
    async def scenario(log: ImpressionLog, topic: Topic) -> None:
        if away:
            topic.away.set()
        await log.add([record(i) for i in range(100)])
        await log.add([record(i) for i in range(100, 150)])

    topic = Topic()
    counts = run(tmp_path, scenario, topic, ack="after")
    expected = 0 if away else 150
    assert len(topic.stored) == expected
    assert totals(counts, "log_accepted", "log_stored") == [150, expected]
