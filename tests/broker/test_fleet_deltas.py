"""Deltas that come twice, late or from a base that is gone, on a real broker and without Ray.

Ray kills workers that are replaced, so that they seldom answer late. Here they always do.
"""

from __future__ import annotations

import io
import pickle
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.process.log import Log
from streamlearn.fleet.instructions import prepare
from streamlearn.fleet.remote_worker import Base, RemoteWorker, WorkerInstructions
from streamlearn.fleet.round_pipeline import Round, RoundPipeline, base_state
from streamlearn.fleet.rounds import Delta, Rounds
from streamlearn.rules import BaseRate
from streamlearn.stream import Partition
from tests.broker.daemons import fill
from tests.fleet.test_rounds import WithoutBase, WithoutPositions
from tests.support.streams import learnable

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeTopic

PARTITIONS, LENGTH, BATCH = 3, 300, 20
OUTCOMES = ("well", "well", "twice", "late", "again")
SEEDS = range(3)
CONFIG = """
[source]
kind = "kafka"
bootstrap = "{bootstrap}"
topics = ["{topic}"]
client = "confluent"
batch = {batch}

[format]
label = "click"
weight = "w"
labels = [false, true]

[features]
kind = "hashing"
bits = 8

[checkpoint]
path = "models"

[telemetry]
port = 0

[fleet]
workers = 3
"""


class Owner:
    """What the daemon does with deltas, however they come."""

    def __init__(self, settings: config.Config, workers: list[RemoteWorker], topic: str) -> None:
        learners, events = prepare(WorkerInstructions(settings, 1 << 16))
        log = Log("json", stream=io.StringIO())
        self.pipeline: Any = build.pipeline(
            settings, events, learners, (None, None), log, [], RoundPipeline
        )
        for learner in learners:
            learner.model.know_labels(events.labels.labels)
        self.workers = workers
        self.start = {Partition(topic, k): 0 for k in range(PARTITIONS)}
        self.refused: set[str] = set()

    def run(self, seed: int, kind: type[Rounds]) -> None:
        """Learn all records."""
        draw, rounds, kept = random.Random(seed), kind(1 + seed, self.start), list[Delta]()
        while min(rounds.positions.values()) < LENGTH:
            base = Base(rounds.base, None, base_state(self.pipeline))
            goals = {where: min(at + 60, LENGTH) for where, at in rounds.positions.items()}
            came: list[Delta] = []
            for worker, task in zip(self.workers, rounds.tasks(len(self.workers)), strict=True):
                # as Ray does: the worker's own arrays are used again in the next round
                delta = pickle.loads(pickle.dumps(worker.learn(task, base, goals, 60.0)))
                assert isinstance(delta, Delta), delta
                outcome = draw.choice(OUTCOMES)
                came += [delta] * {"twice": 2, "late": 0}.get(outcome, 1)
                kept += [delta] * (outcome in {"late", "again"})
            early = draw.sample(kept, draw.randint(0, len(kept)))
            for delta in [*early, *came] if draw.random() < 0.7 else [*came, *early]:
                self.refused |= {rounds.offer(delta) or ""}
            if deltas := rounds.finish():
                self.pipeline.process(Round(deltas))

    def is_exact(self) -> bool:
        """Whether each record was learned once, by the counts and by what the model has counted."""
        examples = [
            example
            for partition in range(PARTITIONS)
            for offset in range(LENGTH)
            if (example := learnable(partition, offset, garbage=0.0)) is not None
        ]
        [learner] = self.pipeline.learners
        [rate] = [one for one in learner.model.rules[0].members if isinstance(one, BaseRate)]
        expected = sum(weight for *_, weight in examples)
        labels = sum(weight if label else -weight for _, label, weight in examples)
        counts = self.pipeline.counts
        found = (counts.records, learner.learned, rate.mass, rate.labels)
        return found == (PARTITIONS * LENGTH, len(examples), expected, labels)


@pytest.fixture
def make_owner(bootstrap: str, make_topic: MakeTopic, producer: Producer) -> Callable[[], Owner]:
    """Return a function that makes an owner, whose workers read the records of a topic."""
    topic = make_topic(PARTITIONS)
    fill(producer, topic, PARTITIONS, LENGTH)
    text = CONFIG.format(bootstrap=bootstrap, topic=topic, batch=BATCH)
    settings = config.parse(text, "test", {}, environ={})
    workers = [RemoteWorker() for _ in range(3)]
    for worker in workers:
        assert worker.start(WorkerInstructions(settings, 1 << 16)) is None
    return partial(Owner, settings, workers, topic)


def test_each_record_is_learned_once(make_owner: Callable[[], Owner]) -> None:
    refused = set()
    for seed in SEEDS:
        owner = make_owner()
        owner.run(seed, Rounds)
        assert owner.is_exact(), seed
        refused |= owner.refused
    assert refused == {"", "base", "position"}


@pytest.mark.parametrize("kind", [WithoutPositions, WithoutBase])
def test_without_either_check_records_are_lost_or_doubled(
    make_owner: Callable[[], Owner], kind: type[Rounds]
) -> None:
    """Otherwise the test above would prove nothing."""
    exact = []
    for seed in SEEDS:
        owner = make_owner()
        owner.run(seed, kind)
        exact.append(owner.is_exact())
    assert not all(exact)
