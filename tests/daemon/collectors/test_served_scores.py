"""What was served is measured once, whatever the labels are, and wherever a checkpoint falls."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.batch import Batch
from streamlearn.daemon.collectors.served_scores import ServedScores
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.status import Status
from streamlearn.stream import Partition, Records
from streamlearn.stream.impressions import ENCODER, HEADER, Served
from streamlearn.stream.polled import Polled

CONFIG = """
[source]
kind = "kafka"
bootstrap = "nowhere:1"
topics = ["shown"]
[format]
label = "y"
id = "id"
[labels]
topic = "labels"
hold_events = {hold}
on_timeout = {timeout}
[checkpoint]
path = "nowhere"
[[learner]]
name = "one"
rule = "FTRLProximal()"
task = "{task}"
[[learner]]
name = "two"
rule = "FTRLProximal(alpha=0.5)"
task = "{task}"
"""
LABELS: dict[str, list[Any]] = {
    "two labels": [False, True],
    "three labels": ["a", "b", "c"],
    "numbers": [0.5, -1.0, 2.0],
}


class Daemon:
    """The parts of a daemon between its source and its observers."""

    def __init__(self, task: str, hold: int = 1000, timeout: str = '"drop"') -> None:
        settings = config.parse(CONFIG.format(task=task, hold=hold, timeout=timeout), environ={})
        shared = config.feature_reader(settings.features)
        self.learners = Learners(config.estimators(settings), shared)
        self.reader = build.event_reader(settings, shared, list(self.learners))
        self.reader.attach(list(self.learners))
        self.served = ServedScores()
        self.served.on_start(self.learners, Status())
        self.offset = 0

    def process(self, topic: str, values: list[Any], headers: list[Any] | None = None) -> None:
        """Process a batch of records of one topic."""
        offsets = list(range(self.offset, self.offset + len(values)))
        self.offset += len(values)
        encoded = [json.dumps(value).encode() for value in values]
        given = [[] for _ in values] if headers is None else headers
        times = [1000 + offset for offset in offsets]
        polled = Polled(
            [Records(Partition(topic), offsets, encoded, self.offset, None, times, given)]
        )
        assert not self.reader.read(polled)
        rows, predicted = self.reader.rows, self.reader.predicted
        results = self.learners.learn(rows, self.reader.weights)
        self.served.on_batch(Batch([], polled, rows, results, predicted))


def header(learner: str, score: Any, arm: str | None = None, bucket: int = 0) -> Any:
    return [(HEADER, ENCODER.encode(Served(learner, "1-5", 0.0, bucket, score, arm)))]


def expected(daemon: Daemon, learner: str, score: Any, label: Any) -> float:
    """Return the loss of a served score by the loss itself."""
    model = daemon.learners[learner].model
    if isinstance(score, dict):
        scores = np.array([[score[name] for name in model.outputs]])
    else:
        scores = np.array([[score]])
    code = model.code_and_factor(label)[0]
    return float(model.score_measures["loss"](model, scores, np.array([code]))[0])


@pytest.mark.parametrize("kind", LABELS)
def test_each_served_event_counts_once(kind: str) -> None:
    labels, rng = LABELS[kind], np.random.default_rng(0)
    daemon = Daemon("regression" if kind == "numbers" else "classification")
    # all labels are known from the start
    daemon.process("shown", [{"id": f"first{i}", "x": 1.0} for i in range(6)])
    daemon.process("labels", [{"id": f"first{i}", "y": labels[i % len(labels)]} for i in range(6)])
    numbers = range(60)
    scores: list[Any] = [
        dict(zip(labels, rng.normal(size=3).tolist(), strict=True))
        if kind == "three labels"
        else float(rng.normal())
        for _ in numbers
    ]
    names = ["one" if i % 3 else "two" for i in numbers]
    arms = [None if i % 5 == 0 else names[i] for i in numbers]
    headers = [header(names[i], scores[i], arms[i], bucket=i) for i in numbers]
    events = [{"id": f"e{i}", "x": 1.0} for i in numbers]
    daemon.process("shown", events[:40], headers[:40])
    daemon.process("shown", events[:5], [header("one", 9.0) for _ in range(5)])  # repeated
    other = [header("none", 0.0), [(HEADER, b"{")], [("x", b"")]]
    daemon.process("shown", [{"id": f"other{i}", "x": 1.0} for i in range(3)], other)
    given = [labels[int(rng.integers(len(labels)))] for _ in numbers]
    of = [{"id": f"e{i}", "y": given[i]} for i in numbers]
    daemon.process("labels", of[:20])
    again = ServedScores()  # as after a restart
    again.restore(daemon.served.state())
    again.on_start(daemon.learners, Status())
    daemon.served = again
    daemon.process("labels", of[20:] + of[:10])  # the last 20 come before their events
    daemon.process("shown", events[40:], headers[40:])
    daemon.process("labels", [{"id": f"other{i}", "y": labels[0]} for i in range(3)])
    sums: dict[Any, list[float]] = {}
    for i in numbers:
        loss = expected(daemon, names[i], scores[i], given[i])
        sums.setdefault((names[i], arms[i] or ""), []).append(loss)
    found = {key: one for key, one in daemon.served.losses.arms.items() if one.events}
    assert found.keys() == sums.keys()
    for key, losses in sums.items():
        assert found[key].events == len(losses)
        assert found[key].mean == pytest.approx(np.mean(losses), rel=1e-12)


def test_timeouts_count_with_their_label() -> None:
    daemon = Daemon("classification", hold=3, timeout="false")
    events = [{"id": f"e{i}", "x": 1.0} for i in range(8)]
    daemon.process("shown", events[:2])
    daemon.process("labels", [{"id": "e0", "y": True}, {"id": "e1", "y": False}])
    daemon.process("shown", events[2:], [header("one", 0.5 + i) for i in range(6)])
    one = daemon.served.losses.arms["one", ""]
    losses = [expected(daemon, "one", 0.5 + i, False) for i in range(3)]  # three are held
    assert one.events == 3
    assert one.mean == pytest.approx(np.mean(losses))
