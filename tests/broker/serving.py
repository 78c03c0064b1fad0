"""The whole loop over a real broker: serve, log, label, join, learn; and what must be true."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from confluent_kafka import Consumer, TopicPartition

from streamlearn.estimators import checkpoints
from streamlearn.stream.impressions import Served, read
from tests.broker.daemons import SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from confluent_kafka import Producer

    from tests.broker.processes import Process, Server

CONFIG = """\
[source]
kind = "kafka"
bootstrap = "{bootstrap}"
topics = ["{impressions}"]
client = "{client}"

[format]
label = "clicked"
id = "id"
labels = [false, true]

[labels]
topic = "{clicks}"

[[learner]]
name = "champion"

[[learner]]
name = "challenger"
rule = "FTRLProximal()"

[checkpoint]
path = "{path}/models"
every_seconds = 0.3
lease_seconds = 1.0

[regret]
enabled = false

[telemetry]
port = 0

[serve]
path = "{path}/snapshots"

[serve.log]
topic = "{impressions}"
ack = "{ack}"
on_full = "{on_full}"

[serve.split]
by = "user"
salt = "spring"
arms = {{ champion = 0.7, challenger = 0.3 }}

[log]
format = "json"
"""


def event(number: int) -> dict[str, Any]:
    """Return an event; whether it is clicked depends on its ad alone."""
    return {"id": f"e{number}", "user": f"u{number % 97}", "ad": f"a{number % 5}"}


def clicked(number: int) -> bool:
    """Return the label of an event."""
    return number % 5 < 2


@dataclass
class Loop:
    """Daemons and servers over one configuration, and what clients were answered."""

    server: Server
    directory: Path
    bootstrap: str
    impressions: str
    clicks: str
    client: str = "confluent"
    ack: str = "before"
    on_full: str = "refuse"
    running: list[Process] = field(default_factory=list)
    answered: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("bootstrap", "impressions", "clicks", "client", "ack", "on_full")
        values = {name: getattr(self, name) for name in names}
        self.config = self.directory / "loop.toml"
        self.config.write_text(CONFIG.format(**values, path=self.directory))

    def daemon(self) -> Process:
        """Start a daemon."""
        return self.start("run", str(self.config))

    def serve(self, *arguments: str) -> tuple[Process, str]:
        """Start a server; return it with its address."""
        log = self.directory / f"serve-{len(self.running)}.log"
        process = self.start("serve", str(self.config), "--port", "0", *arguments, log=log)
        url = re.compile(r'"url": ?"(http://[\d.:]+)')
        self.wait_for(lambda: log.exists() and url.search(log.read_text()) is not None)
        found = url.search(log.read_text())
        assert found is not None
        self.wait_for(lambda: self.is_ready(found[1]))
        return process, found[1]

    def start(self, *arguments: str, log: Path | None = None) -> Process:
        """Start a process."""
        process = self.server.start(
            list(arguments), log or self.directory / "daemon.log", {"PYTHONUNBUFFERED": "1"}
        )
        self.running.append(process)
        return process

    @staticmethod
    def is_ready(url: str) -> bool:
        """Tell whether a server answers with a model."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/v2/health/ready", timeout=5.0).status_code == 200
        return False

    @staticmethod
    def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def ask(self, http: httpx.Client, number: int) -> bool:
        """Ask for a prediction; return whether there was an answer, which is kept."""
        given = event(number)
        name = given["id"]
        self.tries[name] = self.tries.get(name, 0) + 1
        with contextlib.suppress(httpx.TransportError):
            answer = http.post("/v1/predict", json=given)
            if answer.status_code == 200:
                self.answered.setdefault(name, []).append(answer.json())
                return True
            assert answer.status_code == 503, answer.text
        return False

    def label(self, producer: Producer, numbers: Iterable[int]) -> None:
        """Write the labels of events."""
        for number in numbers:
            value = {"id": f"e{number}", "clicked": clicked(number)}
            producer.produce(self.clicks, json.dumps(value).encode(), f"e{number}")
        assert producer.flush(30) == 0

    def logged(self) -> Iterator[tuple[str, Served]]:
        """Yield the id and the prediction of all records of the log."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test"})
        try:
            where = TopicPartition(self.impressions, 0, 0)
            end = consumer.get_watermark_offsets(where, timeout=20)[1]
            consumer.assign([where])
            at = 0
            while at < end:
                record = consumer.poll(20)
                assert record is not None
                assert record.error() is None
                at += 1
                headers = record.headers()
                assert isinstance(headers, list)
                [(header, value)] = headers
                assert isinstance(value, bytes)
                served = read([(header, value)])
                assert served is not None
                name = json.loads(record.value() or b"")["id"]
                assert record.key() == name.encode()
                yield name, served
        finally:
            consumer.close()

    def state(self) -> dict[str, Any]:
        """Return the newest checkpoint."""
        found = checkpoints.newest(self.directory / "models")
        return {} if found is None else found[1]

    def joined(self) -> int:
        """Return how many events were learned with their label."""
        state = self.state()
        return int(state["join"]["counts"]["joined"]) if state else 0

    def assert_learned_once(self, labeled: Iterable[int]) -> None:
        """Check the newest checkpoint against the log, and the log against the answers."""
        first: dict[str, Served] = {}
        every: dict[str, list[Served]] = {}
        for name, served in self.logged():
            first.setdefault(name, served)
            every.setdefault(name, []).append(served)
        for name, answers in self.answered.items():
            for one in answers:  # each answer was logged as it was given
                assert any(
                    (served.version, served.arm, served.learner)
                    == (one["version"], one["arm"], one["learner"])
                    and served.score in {None, one["score"]}
                    for served in every[name]
                ), name
        state = self.state()
        counts = state["join"]["counts"]
        names = {f"e{number}": clicked(number) for number in labeled}
        assert counts["joined"] == len(names.keys() & first.keys())
        assert counts["duplicates"] == 0
        assert counts["repeated"] == sum(map(len, every.values())) - len(every)
        sums: dict[tuple[str, str], list[float]] = {}
        for name in names.keys() & first.keys():
            served = first[name]
            if served.score is None:  # no label was known yet
                continue
            assert isinstance(served.score, float)
            loss = math.log1p(math.exp(-served.score if names[name] else served.score))
            sums.setdefault((served.learner, served.arm or ""), []).append(loss)
        found = {
            (one["learner"], one["arm"]): (one["events"], one["loss"].sum())
            for one in state["observers"]["served"]["losses"]
            if one["events"]
        }
        assert found.keys() == sums.keys()
        for pair, losses in sums.items():
            assert found[pair][0] == len(losses)
            assert math.isclose(found[pair][1], math.fsum(losses), rel_tol=1e-9)

    def stop_all(self) -> None:
        """Kill what is left."""
        for process in self.running:
            process.kill()
            process.wait(10)
