"""Daemons as processes of their own, on a topic of the test's, and what must be true of their work.

Larger runs of the same tests are nightly; `STREAMLEARN_SOAK` sets how many events the soak learns.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon.collectors.audit import VARIABLE as AUDIT
from streamlearn.daemon.process.faults import VARIABLE as FAULT
from streamlearn.estimators import checkpoints, model_file
from tests.support.streams import event, replay_models

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Producer

    from tests.broker.processes import Process, Server

SOAK = int(os.environ.get("STREAMLEARN_SOAK", "5000000"))
SECONDS = 120.0  # after which a test has hung
KILLED = {-signal.SIGKILL, -signal.SIGTERM, 0}  # SIGTERM kills who has not yet begun

CONFIG = """\
[source]
kind = "kafka"
bootstrap = "{bootstrap}"
topics = ["{topic}"]
client = "{client}"
group_id = "{topic}"
batch = {batch}

[format]
label = "click"
weight = "w"
id = "id"

[[learner]]
name = "default"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"
{outputs}
[checkpoint]
path = "{path}"
every_events = {every}
every_seconds = 0.5
lease_seconds = {lease}
max_age_seconds = {max_age}

[regret]
enabled = false

[telemetry]
port = 0

[log]
format = "json"
"""


class Daemons:
    """Daemons over one topic and one directory of checkpoints."""

    def __init__(self, server: Server, directory: Path, **settings: Any) -> None:
        self.server = server
        self.models = Path(settings.pop("path", directory / "models"))
        self.config = directory / "config.toml"
        self.log = directory / "log"
        rest = {"batch": 500, "every": 2000, "lease": 1.0, "max_age": 300.0, "outputs": ""}
        text = CONFIG.format(**{**rest, **settings}, path=self.models)
        self.config.write_text(text, encoding="utf-8")
        self.environ: dict[str, str] = {}
        self.running: list[Process] = []

    def start(self, *arguments: str, fault: str = "") -> Process:
        """Start one."""
        command = ["run", str(self.config), *arguments]
        process = self.server.start(command, self.log, {**self.environ, AUDIT: "1", FAULT: fault})
        self.running.append(process)
        return process

    def run(self, *arguments: str, fault: str = "") -> int:
        """Start one and wait for its end."""
        return self.start(*arguments, fault=fault).wait(SECONDS)

    def stop_all(self) -> None:
        """Kill those that are left."""
        for process in self.running:
            process.kill()
            process.wait(10)

    def log_text(self) -> str:
        """What all of them have logged."""
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def newest(self) -> tuple[checkpoints.CheckpointId, dict[str, Any]] | None:
        """The newest checkpoint that is whole."""
        return checkpoints.newest(self.models)

    def records(self) -> int:
        """How many records the newest checkpoint has learned."""
        found = self.newest()
        return 0 if found is None else int(found[1]["counts"]["records"])

    def wait_for(self, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait until something is so, and no longer than this."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.log_text()[-3000:]
            time.sleep(0.01)

    def assert_learned_once(
        self,
        partitions: int,
        length: int,
        garbage: float = 0.0,
        period: int | None = None,
        reader: Any = None,
    ) -> Any:
        """Every record once; and each model is what the library makes of them in that order."""
        found = self.newest()
        assert found is not None, self.log_text()
        learned = found[1]["observers"]["audit"]
        ends = dict.fromkeys(range(partitions), 0)  # each range begins where the one before ended
        for _, number, start, end in learned:
            assert ends[number] == start
            ends[number] = end
        assert set(ends.values()) == {length}
        assert partitions * length == found[1]["counts"]["records"]
        if reader is None:  # as a daemon has them
            reader = sl.Names(max_bytes=config.FeaturesConfig().max_bytes)
        for name, model in replay_models(
            learned, garbage=garbage, reader=reader, period=period
        ).items():
            state = checkpoints.model(self.models, name)["state"]
            assert model_file.pack(state) == model_file.pack(model.state()), name
        return found[1]


def fill(
    producer: Producer, topic: str, partitions: int, length: int, garbage: float = 0.0
) -> None:
    """Write the made-up events; the offset of each is the number it is made of."""
    for partition in range(partitions):
        for offset in range(length):
            value = event(partition, offset, garbage=garbage)
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.05)
    assert producer.flush(60) == 0


def lines(log: str) -> list[dict[str, Any]]:
    """The log's lines."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]
