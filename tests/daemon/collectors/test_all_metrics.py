"""Every metric of a daemon equals what is counted or computed without it."""

from __future__ import annotations

import hashlib
import io
import json
import math
import platform
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import streamlearn as sl
from streamlearn import config
from streamlearn.config import effective
from streamlearn.daemon import build
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints
from streamlearn.telemetry.catalog import METRICS
from tests.support.memory_kafka import MemoryCluster
from tests.support.streams import event, learnable

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_900_000_000.5
GARBAGE, PARTITIONS, FIRST, LENGTH = 0.05, 2, 300, 500
# metrics of other tests, and those that this daemon does not have
ELSEWHERE = (
    *("regret", "comparator", "worker", "round", "serve", "held", "delayed", "label_delay"),
    "batch_seconds",
)
ABSENT = {"absolute_error", "recent_absolute_error", "schema_records_total", "rejected_features"}
CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks"]

[format]
label = "click"
weight = "w"
id = "id"
labels = [false, true]

[features]
kind = "hashing"
bits = 8

[[learner]]
name = "default"

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"
penalty = "L1(1e-3)"

[predictions]
learner = "best"
topic = "predictions"
best = {{ by = "log_loss", window = 200 }}

[dead_letters]
max_invalid_ratio = 1.0

[checkpoint]
path = "{path}"
every_events = 100
transactions = false

[regret]
enabled = false

[telemetry]
port = 0

[run]
until = "end"
"""


class Noted(Observer):
    """What other observers are told."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {"poll": [], "decode": [], "learn": [], "publish": []}
        self.checkpoints: list[Any] = []

    def on_poll(self, seconds: float, records: int) -> None:  # noqa: ARG002 - an observer's
        self.times["poll"].append(seconds)

    def on_batch(self, batch: Any) -> None:
        for stage, seconds in batch.seconds.items():
            self.times[stage].append(seconds)

    def on_checkpoint(self, result: Any) -> None:
        self.checkpoints.append(result)


def records(first: int, end: int) -> list[bytes | None]:
    return [event(k, i, garbage=GARBAGE) for k in range(PARTITIONS) for i in range(first, end)]


def examples(first: int, end: int) -> int:
    """How many records have an event with a label."""
    found = [learnable(k, i, garbage=GARBAGE) for k in range(PARTITIONS) for i in range(first, end)]
    return sum(one is not None for one in found)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A daemon that has run twice, and what observers of the second run were told."""
    cluster = MemoryCluster()
    cluster.install(monkeypatch)
    cluster.create("clicks", PARTITIONS)
    cluster.create("predictions")
    settings = config.parse(CONFIG.format(path=tmp_path), "test", {}, environ={})
    for first, end in ((0, FIRST), (FIRST, LENGTH)):
        for k in range(PARTITIONS):
            values = [event(k, i, garbage=GARBAGE) for i in range(first, end)]
            cluster.write("clicks", values, k)
        loop, noted = build.loop(settings, Log("json", stream=io.StringIO())), Noted()
        observers = loop.pipeline.observers
        [telemetry] = [one for one in observers if isinstance(one, TelemetryCollector)]
        for part in (telemetry, telemetry.counts, telemetry.weights):
            part.clock = lambda: NOW
        observers.append(noted)
        assert loop.run() == Exit.OK
        telemetry.weights._next = telemetry.quality._next = 0.0  # due at once
        telemetry.refresh(loop.status)
    return loop, telemetry, noted


def test_every_metric_is_what_it_says(ran: Any, tmp_path: Path) -> None:
    loop, telemetry, noted = ran
    learners = list(loop.pipeline.learners)
    assert [one.name for one in learners] == ["default", "sparse"]

    def each(of: Any) -> dict[tuple[str, ...], Any]:
        """A value of each learner."""
        return {(one.name,): of(one) for one in learners}

    fresh = records(FIRST, LENGTH)
    tombstones = sum(one is None for one in fresh)
    learned, all_learned = examples(FIRST, LENGTH), examples(0, LENGTH)
    board = telemetry.board
    invalid = sum(board.values("invalid_records_total").values())
    events = len(fresh) - tombstones - invalid
    places = [(("clicks", str(k))) for k in range(PARTITIONS)]
    newest = checkpoints.newest(tmp_path)
    assert newest is not None
    default, sparse = (one.model for one in learners)
    [mixture] = default.rules
    used = (default.coefficients() != 0.0).any(axis=0) | (sparse.coefficients() != 0.0).any(axis=0)
    windows = {one.name: telemetry.quality.recent[one.name].window() for one in learners}
    text = effective.text(telemetry_settings(tmp_path))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]

    def area(name: str) -> float:
        scores, positive, weights = windows[name]
        return float(roc_auc_score(positive, scores, sample_weight=weights))

    def calibration(name: str) -> float:
        scores, positive, weights = windows[name]
        return float(weights @ (1.0 / (1.0 + np.exp(-scores))) / weights[positive].sum())

    expected: dict[str, dict[tuple[str, ...], Any]] = {
        "events_polled_total": dict.fromkeys(places, LENGTH - FIRST),
        "polled_bytes_total": {("clicks",): sum(len(one or b"") for one in fresh)},
        "events_predicted_total": each(lambda _: events),
        "events_learned_total": each(lambda _: learned),
        "events_unlabeled_total": {(): events - learned},
        "events_since_label": {(): loop.pipeline.counts.since_label},
        "events_deleted_total": {(): tombstones},
        "events_lost_total": dict.fromkeys(places, 0),
        "lag_events": dict.fromkeys(places, 0),
        "position_offset": dict.fromkeys(places, LENGTH),
        "last_batch_timestamp_seconds": {(): NOW},
        "lifetime_events_learned": each(lambda _: all_learned),
        "lifetime_events_diverged": each(lambda _: 0),
        "progressive_loss": each(lambda one: one.progress["loss"].mean),
        "recent_loss": each(lambda one: one.progress["loss"].recent),
        "error_ratio": each(lambda one: one.progress["error"].mean),
        "recent_error_ratio": each(lambda one: one.progress["error"].recent),
        "recent_roc_auc": each(lambda one: area(one.name)),
        "recent_calibration_ratio": each(lambda one: calibration(one.name)),
        "currently_best": each(lambda one: float(one.name == loop.pipeline.learners.choice.name)),
        "mixture_weight_ratio": {
            ("default", str(member)): share
            for member, share in zip(mixture.members, mixture.shares, strict=True)
        },
        "nonzero_weights": each(lambda one: np.count_nonzero(one.model.coefficients())),
        "weights_norm": each(lambda one: np.linalg.norm(one.model.coefficients())),
        "weights_timestamp_seconds": each(lambda _: NOW),
        "steps": each(lambda one: one.model.steps),
        "step_size": {("sparse",): sparse.rules[0].step_size},
        "slots": {(): 1 << 8},
        "hash_load_ratio": {(): used.mean()},
        "checkpoint_timestamp_seconds": {(): NOW},
        "checkpoint_bytes": {(): (tmp_path / newest[0].name).stat().st_size},
        "checkpoint_duration_seconds": {(): noted.checkpoints[-1].seconds},
        "checkpoint_failures_total": {(): 0},
        "active": {(): 0.0},
        "standby": {(): 0.0},
        "epoch": {(): 2},
        "restarts": {(): 1},
        "start_timestamp_seconds": {(): board.about.started},
        "build_info": {(sl.__version__, platform.python_version()): 1},
        "config_info": {("kafka", "json", "hashing", digest): 1},
    }
    for name, values in expected.items():
        assert board.values(name) == pytest.approx(values), name
    assert sum(Counter(one.code for one in board.invalid_records).values()) == min(invalid, 50)
    names = {labels[0] for labels in board.values("learner_info")}
    assert names == {"default", "sparse"}
    assert board.values("recent_calibration_error").keys() == {("default",), ("sparse",)}
    in_part = {"invalid_records_total", "learner_info", "recent_calibration_error"}  # above
    assert expected.keys() | in_part | ABSENT == {
        name for name in METRICS if not name.startswith(ELSEWHERE)
    }
    assert [name for name in ABSENT if board.values(name)] == []


def telemetry_settings(path: Path) -> config.Config:
    return config.parse(CONFIG.format(path=path), "test", {}, environ={})


def test_the_address_of_the_page_is_logged(ran: Any) -> None:
    loop, telemetry, _ = ran
    lines = map(json.loads, loop.log.stream.getvalue().splitlines())
    [line] = [line for line in lines if line["event"] == "telemetry started"]
    assert line["page"] == f"http://127.0.0.1:{telemetry.server.port}/"


def test_durations_of_stages_add_up(ran: Any) -> None:
    _, telemetry, noted = ran
    stages = telemetry.board.stages()
    assert {stage for (stage,) in stages} == noted.times.keys()
    for (stage,), (counts, total) in stages.items():
        own = noted.times[stage]
        assert total == pytest.approx(math.fsum(own))
        assert counts[-1] == len(own) or sum(counts) == len(own)
