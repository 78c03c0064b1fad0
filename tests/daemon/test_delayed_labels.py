"""Delayed labels in the daemon: after any kill, every pair and every timeout is learned once."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.delayed_event_reader import DelayedEventReader
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher, InvalidRecordLimit
from streamlearn.daemon.pipeline import Pipeline
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.faults import STEPS
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.until import parse_until
from streamlearn.estimators import checkpoints, model_file
from streamlearn.late.join import Join
from streamlearn.late.joined_rows import CORRECTED
from streamlearn.stream import JSONDecoder, Partition, Records
from streamlearn.stream.polled import Polled
from streamlearn.telemetry import views
from streamlearn.telemetry.catalog import OUTCOMES
from streamlearn.telemetry.metrics import BoardCollector, Exposition
from tests.daemon.test_kills import KILLED, Daemons, whole
from tests.support.delayed_streams import (
    CLICKS,
    HOLD,
    OF_EVENTS,
    OF_LABELS,
    SHOWN,
    ReplayedModels,
    TwoTopics,
    make_loop,
    topics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LENGTH = 1500


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    found = Daemons(tmp_path_factory.mktemp("said") / "stderr", "delayed_streams.py")
    yield found
    found.server.kill()
    found.server.communicate()


def newest(models: Path) -> dict[str, Any]:
    found = checkpoints.newest(models)
    assert found is not None
    return found[1]


def assert_learned_once(
    models: Path, names: dict[str, str] | None = None, length: int = LENGTH
) -> Counter[str]:
    """Each record once; pairs, time-outs, weights and losses are those of the plain way.

    `names`: what the topics are called there.
    """
    log, data = topics(length), newest(models)
    learned = [
        ((names or {}).get(topic, topic), *rest) for topic, *rest in data["observers"]["audit"]
    ]
    places = Counter((topic, i) for topic, _, start, end in learned for i in range(start, end))
    assert set(places.values()) == {1}
    assert len(places) == sum(map(len, log.values())) == data["counts"]["records"]
    plain = ReplayedModels(learned, log)
    assert data["join"]["counts"] == plain.join.counts
    steps = Counter(what for what, *_ in plain.join.steps)
    assert data["counts"]["learned"] == steps["learn"] + steps["time out"]
    assert data["counts"]["events"] == steps["predict"]
    for name, model in plain.models.items():
        kept = type(model).load(models, learner=name)
        assert kept.weights == model.weights
        assert kept.intercept == model.intercept
        loss = data["learners"][name]["progress"]["loss"]
        total, weight = loss["total"], loss["weight"]
        assert (total, weight) == pytest.approx(plain.losses[name], rel=1e-9)
    return steps


@pytest.mark.parametrize("step", [step for step in STEPS if step != "take-over"])
def test_killed_at_each_step(step: str, tmp_path: Path, daemons: Daemons) -> None:
    for seed, n in enumerate([1] if step == "claim" else [1, 2]):
        assert daemons.run(tmp_path, seed, f"{step}:{n}", LENGTH) in KILLED
    assert daemons.run(tmp_path, 9, "", LENGTH) == Exit.OK
    steps = assert_learned_once(tmp_path / "models")
    assert steps["learn"] > 400
    assert steps["time out"] > 400
    dead = [
        json.loads(line)
        for line in (tmp_path / "dead.jsonl").read_bytes().splitlines()
        if whole(line)
    ]
    orphans = {
        letter["headers"]["streamlearn.offset"]
        for letter in dead
        if letter["headers"]["streamlearn.topic"] == CLICKS
    }
    # a run that was killed may have read in another order, and had others
    assert len(orphans) >= newest(tmp_path / "models")["join"]["counts"]["orphaned"] > 10
    published = (tmp_path / "predictions.jsonl").read_bytes().splitlines()
    shown = {json.loads(line)["headers"]["offset"] for line in published if whole(line)}
    assert len(shown) == newest(tmp_path / "models")["counts"]["events"]


class InOrder(TwoTopics):
    """The same order of records, in other batches for each seed."""

    def __init__(self, length: int, seed: int) -> None:
        super().__init__(length, seed)
        both = sorted(
            (time, topic, i) for topic, log in self.log.items() for i, (time, _) in enumerate(log)
        )
        self.order = [(topic, i) for _, topic, i in both]

    def run(self) -> Any:
        done = sum(self.positions.values())
        if done == len(self.order):
            return None
        topic, start = self.order[done]
        stop = done + 1
        while stop < min(done + self.draw.randint(1, 20), len(self.order)):
            if self.order[stop][0] != topic:
                break
            stop += 1
        where = next(one for one in self.positions if one.topic == topic)
        self.positions[where] = end = start + stop - done
        values = [value for _, value in self.log[topic][start:end]]
        return Records(where, range(start, end), values, end)


def test_resume_is_bit_identical_to_an_uninterrupted_run(tmp_path: Path) -> None:
    """Whatever the batches are, and however often it was stopped."""
    found = []
    for seed, stops in enumerate([[], [300, 301, 900]]):
        directory = tmp_path / str(seed)
        directory.mkdir()
        for stop in stops:
            assert (
                make_loop(directory, InOrder(LENGTH, stop), until=parse_until(str(stop))).run()
                == Exit.OK
            )
        assert make_loop(directory, InOrder(LENGTH, seed)).run() == Exit.OK
        data = newest(directory / "models")
        found.append(
            model_file.pack(
                [
                    data["counts"],
                    data["join"]["counts"],
                    data["join"]["delays"],
                    data["join"]["clock"],
                    {
                        name: [one["model"], one["progress"]]
                        for name, one in data["learners"].items()
                    },
                ]
            )
        )
    assert found[0] == found[1]
    assert newest(tmp_path / "1" / "models")["restarts"] == 3
    assert set(topics(10)) == {SHOWN, CLICKS}


CONFIG = """
[source]
kind = "synthetic"
stream = "delayed"
events = 8000

[labels]
hold_for = 2.0
on_timeout = false

[[learner]]
name = "sparse"
rule = "DualAveraging(gamma=5.0)"

[telemetry]
port = 0

[checkpoint]
path = "{path}"

[run]
until = "end"
"""


def test_counters_start_at_zero_after_a_restart(tmp_path: Path) -> None:
    """The join counts over its lifetime, the metrics over that of the process."""
    counted = []
    for until in ("6000", "end"):
        text = CONFIG.format(path=tmp_path / "models")
        loop = build.loop(config.parse(text, overrides={"run.until": until}), Log(level="error"))
        [watching] = [one for one in loop.pipeline.observers if isinstance(one, TelemetryCollector)]
        assert loop.run() == Exit.OK
        watching.delayed_labels.measure()
        outcomes = watching.board.values("delayed_labels_total")
        counted.append({labels[0]: count for labels, count in outcomes.items()})
    join = loop.pipeline.learners["sparse"].delayed
    assert join is not None
    assert {
        outcome: sum(one[outcome] for one in counted) for outcome in OUTCOMES
    } == join.join.counts
    assert counted[1]["joined"] > 100
    assert counted[1]["timed_out"] > 100
    text = Exposition(BoardCollector(watching.board)).text("text/plain")[0].decode()
    assert f"streamlearn_held_events {float(join.join.held)}" in text
    assert f"streamlearn_label_delay_seconds_count {float(counted[1]['joined'])}" in text
    status = views.status(watching.board, config=False)
    assert status["delayed_labels_total"] == counted[1]
    assert 0.0 <= status["held_oldest_seconds"] < 2.0


def test_held_events_are_not_dropped_silently(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "models"
    text = CONFIG.format(path=path)
    assert build.loop(config.parse(text), Log(level="error")).run() == Exit.OK
    held = newest(path)["join"]["pending"]
    left = sum(segment["live"] for segment in held)
    assert left > 10
    begin, rest = text.split("[labels]")
    plain = f"{begin}[[learner]]{rest.partition('[[learner]]')[2]}"
    now = config.parse(plain, overrides={"source.stream": "clicks"})
    assert build.loop(now, Log("json", "error")).run() == Exit.USAGE
    reason = json.loads(capfd.readouterr().err)["reason"]
    assert f"[labels] was removed while {left} " in reason
    # a reset drops them; here the stream is another one too, which stops the run
    assert build.loop(now, Log(level="error"), reset=("all",)).run() == Exit.SOURCE_CHANGED


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"labels.topic": "clicks"}, "labels.topic"),
        ({"labels.id": "other"}, "labels.id"),
        ({"labels.corrections": True}, None),
        ({"labels.corrections": True, "labels.on_timeout": "drop"}, "labels.corrections"),
        ({"labels.corrections": True, "learner": [{"name": "a"}]}, "labels.corrections"),
        ({"labels.orphans": True}, "labels.orphans"),
        ({"labels.hold_for": 0.0}, "labels.hold_for"),
        ({"source.events": None}, "source.events"),
        ({"source": {"kind": "file", "paths": ["x"]}, "format.label": "y"}, "format.id"),
        (
            {
                "source": {"kind": "kafka", "bootstrap": "b:1", "topics": ["x"]},
                "format": {"label": "y", "id": "id"},
                "labels.topic": "z",
            },
            "source.order",
        ),
    ],
)
def test_invalid_combinations_are_refused_by_key(changes: dict[str, Any], key: str | None) -> None:
    text = CONFIG.format(path="models")
    with pytest.raises(config.ConfigError, match="labels: missing"):
        config.parse(text.partition("[labels]")[0])
    if key is None:
        config.parse(text, overrides=changes)
        return
    with pytest.raises(config.ConfigError, match=rf"{re.escape(key)}: "):
        config.parse(text, overrides=changes)


@pytest.mark.parametrize("corrections", [True, False])
def test_corrected_event_is_counted_once(corrections: bool) -> None:
    """A correction is learned after its timeout, but not measured or counted again."""
    reader = sl.Names()
    joining = DelayedEventReader(
        Join(hold_events=40, hold_for=30.0, on_timeout=False, corrections=corrections),
        JSONDecoder(reader, OF_EVENTS, grow_always=True),
        JSONDecoder(reader, OF_LABELS),
        CLICKS,
    )
    models = {"it": sl.LinearClassifier(sl.rules.DualAveraging(), sl.losses.Logistic())}
    learners = Learners(models, reader)
    pipeline = Pipeline(
        joining,
        learners,
        InvalidRecordLimit(1.0, 1000, 50),
        DeadLetterPublisher(None),
        Log("json", "error"),
    )
    source, seen = TwoTopics(400, seed=3), Counter[int]()
    while not source.ended():
        pipeline.process(source.poll(0.0))
        seen.update(joining.join.rows.roles.tolist())
    counts = joining.join.counts
    assert counts["joined"] > 50
    assert counts["timed_out"] > 50
    assert (seen[CORRECTED] > 10) == corrections
    learned = counts["joined"] + counts["timed_out"]
    assert pipeline.counts.learned == learned
    learner = learners["it"]
    assert learner.learned == learner.progress["loss"].count == learned
    assert learner.diverged == 0
    learners.close()


def test_polled_order_of_partitions_is_kept() -> None:
    """A poll of many partitions is read like its records one by one."""
    draw, log = random.Random(4), topics(300)
    found = sorted((time, topic, value) for topic in log for time, value in log[topic])
    where = [Partition(topic, draw.randrange(3)) for _, topic, _ in found]
    rows: list[list[Any]] = []
    for whole_poll in (True, False):
        joining = DelayedEventReader(
            Join(**HOLD),
            JSONDecoder(sl.Names(), OF_EVENTS, grow_always=True),
            JSONDecoder(sl.Names({"*": "ignore"}), OF_LABELS),
            CLICKS,
        )
        polls = [range(len(found))] if whole_poll else [[k] for k in range(len(found))]
        rows.append([])
        for poll in polls:
            given = []
            for one in sorted(set(where)):
                turns = [k for k in poll if where[k] == one]
                if turns:
                    values = [found[k][2] for k in turns]
                    given.append(Records(one, turns, values, turns[-1] + 1, ranks=np.array(turns)))
            invalid = joining.read(Polled(given))
            rows[-1] += [(poll[bad.number], bad.reason) for bad in invalid]
            events = joining.rows
            rows[-1] += [(events.id_of(i), events.label_of(i)) for i in range(len(events))]
        counts = joining.join.counts
        assert counts["joined"] > 50
    assert len([one for one in rows[0] if isinstance(one[0], int)]) > 1
    # for a whole poll the invalid records come first
    assert sorted(rows[0], key=repr) == sorted(rows[1], key=repr)
    assert [one for one in rows[0] if not isinstance(one[0], int)] == [
        one for one in rows[1] if not isinstance(one[0], int)
    ]
