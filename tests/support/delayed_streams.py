"""Impressions and clicks on two topics, a daemon over them, and a plain replay of both.

Delays have a long tail. Some clicks are early, duplicate, too late, or without an impression.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import streamlearn as sl
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.collectors.audit import Audit
from streamlearn.daemon.delayed_event_reader import DelayedEventReader
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.loop import Loop
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
from streamlearn.daemon.outputs.predictions import PredictionPublisher
from streamlearn.daemon.pipeline import Pipeline
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.process.watchdog import Watchdog
from streamlearn.daemon.until import parse_until
from streamlearn.late.join import Join
from streamlearn.stream import Fields, JSONDecoder, Partition, Records
from streamlearn.stream.sinks.json_lines import FileSink
from tests.reference import late
from tests.support.streams import make_policy, models, serve

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN, CLICKS = "impressions", "clicks"
OF_EVENTS = Fields(label=None, weight="w", id="id", time="time")
OF_LABELS = Fields(label="click", id="id", time="time", warmup=1000)
HOLD: dict[str, Any] = {"hold_events": 120, "hold_for": 100.0, "on_timeout": False}


def topics(length: int) -> dict[str, list[tuple[float, bytes]]]:
    """The records of both topics with their times: always the same."""
    draw = random.Random(7)
    shown, clicks = [], []
    for i in range(length):
        x = {
            "user": f"u{draw.randrange(30)}",
            "hour": draw.randrange(24),
            "w": draw.choice([1, 2]),
        }
        time = float(i)
        shown.append((time, json.dumps({"id": f"e{i}", "time": time, **x}).encode()))
        if draw.random() < 0.01:
            shown.append((time, draw.choice([b"{", b'{"user":"u1"}'])))
        if draw.random() < 0.5:
            tail = 10.0 * (draw.random() ** (-1 / 1.1) - 1.0)
            moment = time - 2.5 if draw.random() < 0.1 else round(time + tail, 3)
            text = {"id": f"e{i}", "click": draw.random() < 0.8, "time": moment}
            clicks += [(moment, json.dumps(text).encode())] * draw.choice([1, 1, 1, 2])
        if draw.random() < 0.02:
            stranger = {"id": f"none{i}", "click": True, "time": time}
            clicks.append((time, json.dumps(stranger).encode()))
    clicks.sort(key=lambda one: one[0])
    return {SHOWN: shown, CLICKS: clicks}


class TwoTopics:
    """A source that reads both topics roughly by time, in runs that depend on the seed."""

    def __init__(self, length: int, seed: int) -> None:
        self.log = topics(length)
        self.draw = random.Random(seed)
        self.positions = {Partition(topic): 0 for topic in self.log}

    def identity(self) -> dict[str, str]:
        return {"stream": "delayed"}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        assert identity in ({"stream": "delayed"}, None)
        self.positions |= positions

    def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002 - never waits
        runs = [run for _ in range(self.draw.randint(1, 12)) if (run := self.run()) is not None]
        return runs if self.draw.random() < 0.5 else taking_turns(runs)

    def run(self) -> Records | None:
        heads = {
            where: self.log[where.topic][at][0]
            for where, at in self.positions.items()
            if at < len(self.log[where.topic])
        }
        if not heads:
            return None
        where = min(heads, key=lambda one: heads[one])
        start = self.positions[where]
        end = min(start + self.draw.randint(1, 20), len(self.log[where.topic]))
        self.positions[where] = end
        values = [value for _, value in self.log[where.topic][start:end]]
        return Records(where, range(start, end), values, end)

    def lag(self) -> dict[Partition, int | None]:
        return {where: len(self.log[where.topic]) - at for where, at in self.positions.items()}

    def lost(self) -> Mapping[Partition, int]:
        return {}

    def ended(self) -> bool:
        return not any(self.lag().values())

    def commit(self, positions: Mapping[Partition, int]) -> None:
        pass

    def close(self) -> None:
        pass


def taking_turns(runs: list[Records]) -> list[Records]:
    """Group the same records by partition, with their turns."""
    found: dict[Partition, Records] = {}
    turn = 0
    for run in runs:
        turns = np.arange(turn, turn + len(run.offsets))
        turn += len(turns)
        before = found.get(run.partition)
        if before is None:
            found[run.partition] = replace(run, ranks=turns)
        else:
            found[run.partition] = Records(
                run.partition,
                [*before.offsets, *run.offsets],
                [*before.values, *run.values],
                run.end,
                ranks=np.concatenate([before.ranks, turns]),
            )
    return list(found.values())


def make_loop(directory: Path, source: Any, **policy: Any) -> Loop:
    """Build a daemon."""
    log, shared = Log("json"), sl.Names()
    learners = Learners(models(), shared)
    given = list(learners)
    event_reader = DelayedEventReader(
        Join(**HOLD, keep_orphans=True),
        JSONDecoder(shared, OF_EVENTS, given, grow_always=True),
        JSONDecoder(sl.Names({"*": "ignore"}), OF_LABELS, given),
        CLICKS,
    )
    sinks = {
        "predictions": FileSink(directory / "predictions.jsonl"),
        "dead": FileSink(directory / "dead.jsonl", binary=True),
    }
    pipeline = Pipeline(
        event_reader,
        learners,
        InvalidRecordLimit(0.5, 1000, 50),
        DeadLetterPublisher(sinks["dead"]),
        log,
        predictions=PredictionPublisher(sinks["predictions"]),
        predictor="sparse",
        observers=[Audit()],
    )
    return Loop(
        source,
        pipeline,
        Ownership(directory / "models", lease_seconds=1.0, report=print),
        make_policy(**{"every_events": 100, "until": parse_until("end"), **policy}),
        log,
        Watchdog(60.0, log),
        list(sinks.values()),
    )


class ReplayedModels:
    """Plain learners, after the same records in the same order, one by one."""

    def __init__(self, ranges: list[Any], log: dict[str, list[tuple[float, bytes]]]) -> None:
        self.join = late.Join(**HOLD)
        for topic, _, start, end in ranges:
            for _, value in log[topic][start:end]:
                self.read(topic, value)
        self.models = models()
        self.losses = {name: [0.0, 0.0] for name in self.models}
        for name, model in self.models.items():
            self.learn(model, self.losses[name])

    def read(self, topic: str, value: bytes) -> None:
        try:
            event = json.loads(value)
            key, time = event.pop("id"), event.pop("time")
        except (ValueError, KeyError):
            return
        if topic == CLICKS:
            self.join.label(key, event["click"], time)
        else:
            self.join.features(key, event, time, event.pop("w"))

    def learn(self, model: Any, sums: list[float]) -> None:
        """Learn the steps of the join; the loss is that of the first score."""
        then: dict[str, float] = {}
        for what, key, x, label, weight in self.join.steps:
            if what == "predict":
                then.setdefault(key, model.score_one(x))
                continue
            y = 1.0 if label else -1.0
            sums[0] += weight * math.log1p(math.exp(-y * then[key]))
            sums[1] += weight
            model.learn_one(x, label, weight)


def main(directory: str, seed: str, length: str, _: str) -> int:
    """Run a daemon as a separate process, to be killed."""
    source = TwoTopics(int(length), int(seed))
    return make_loop(Path(directory), source).run()


if __name__ == "__main__":
    serve(main)
