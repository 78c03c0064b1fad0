"""Readers on Ray, over a real broker: each record is learned once, whatever happens to readers."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

import streamlearn as sl
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import model_file
from streamlearn.fleet.cluster import SEVERAL_MACHINES
from tests.broker.conftest import grow, write
from tests.broker.daemons import KILLED, Daemons, fill
from tests.broker.test_delayed_labels import LABELS
from tests.daemon.test_delayed_labels import LENGTH
from tests.support.delayed_streams import CLICKS, SHOWN, topics
from tests.support.streams import event

if TYPE_CHECKING:
    from tests.broker.conftest import MakeDaemons, MakeTopic

SETTINGS = (
    "--set=fleet.readers=2",
    "--set=features.kind=hashing",
    "--set=features.bits=12",
    "--set=format.labels=[false, true]",
)


@pytest.fixture
def options(ray: Any) -> list[str]:
    """What makes a daemon use readers of this cluster."""
    return [*SETTINGS, "--ray", ray.get_runtime_context().gcs_address]


def prepared(make_daemons: MakeDaemons, topic: str, **settings: Any) -> Daemons:
    daemons = make_daemons(topic, **settings)
    names = ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", SEVERAL_MACHINES)
    daemons.environ = {name: os.environ[name] for name in names}
    return daemons


def without_time(letter: dict[str, Any]) -> Any:
    """A dead letter, but for the time at which it was written."""
    del letter["headers"]["streamlearn.time"]
    return letter


def reader_processes() -> list[int]:
    """The processes of all readers on this machine that belong to this test's cluster."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes()
            own = os.environ["RAY_AUTH_TOKEN"].encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::RemoteReader") and own:
            found.append(int(process.name))
    return found


def test_readers_feed_one_learner_and_the_recorded_order_replays(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, options: list[str]
) -> None:
    topic, length = make_topic(3), 4000
    fill(producer, topic, 3, length, garbage=0.01)
    daemons = prepared(make_daemons, topic, every=2000)
    assert daemons.run("--until", "end", *options) == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(3, length, 0.01, reader=sl.Hashing(12))


def test_delayed_labels_predictions_and_dead_letters_are_those_of_one_process(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    options: list[str],
    tmp_path: Path,
) -> None:
    names = {make_topic(name=name): name for name in (SHOWN, CLICKS)}
    for topic, name in names.items():
        log = topics(LENGTH)[name]
        times = [1_000_000 + round(1000.0 * time) for time, _ in log]
        write(producer, topic, [value for _, value in log], times=times)
    shown, clicks = names
    found = []
    for name, own in (("plain", SETTINGS[1:]), ("readers", options)):
        outputs = LABELS.format(topic=clicks) + "".join(
            f'[{table}]\npath = "{tmp_path / name}-{table}"\n'
            for table in ("predictions", "dead_letters")
        )
        daemons = prepared(make_any_daemons, shown, name=name, client="confluent", outputs=outputs)
        by_time = ["--set", "source.order=time", "--set", "format.time=time"]
        assert daemons.run(*by_time, *own, "--until", "end") == Exit.OK, daemons.log_text()[-2000:]
        checkpoint = daemons.newest()
        assert checkpoint is not None
        data = checkpoint[1]
        join = {name: data["join"][name] for name in ("clock", "counts", "delays", "unconfirmed")}
        learners = {
            name: {kept: one[kept] for kept in ("model", "progress", "learned")}
            for name, one in data["learners"].items()
        }
        kept = ("counts", "labels", "decoder", "positions")
        state = {name: data[name] for name in kept} | {"join": join, "learners": learners}
        predictions = (tmp_path / f"{name}-predictions").read_bytes()
        letters = (tmp_path / f"{name}-dead_letters").read_text().splitlines()
        values = [without_time(json.loads(line)) for line in letters]
        found.append((model_file.pack(state), predictions, values))
    assert found[0][1] == found[1][1]
    assert found[0][2] == found[1][2]
    assert len(found[0][2]) > 3
    assert found[0][0] == found[1][0]


@pytest.mark.parametrize("faults", [3, pytest.param(60, marks=pytest.mark.nightly)])
def test_killed_and_frozen_readers_and_daemons_leave_no_trace(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    options: list[str],
    faults: int,
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)  # noqa: T201 -- shown if it fails
    draw = random.Random(seed)
    partitions, length = 3, 1000 * faults
    topic = make_topic(partitions)
    daemons = prepared(make_any_daemons, topic, client="confluent", every=2000)
    arguments = [*options, "--set=fleet.deadline_seconds=1"]
    process = daemons.start(*arguments)
    written, started, frozen = 0, 1, []
    kinds = ["kill", "freeze", "daemon"] * (faults // 3)
    draw.shuffle(kinds)
    for kind in kinds:
        for partition in range(partitions):
            values = [event(partition, i) for i in range(written, written + 1000)]
            write(producer, topic, values, partition)
        written += 1000
        daemons.wait_for(lambda: daemons.log_text().count("readers started") == started)  # noqa: B023
        time.sleep(draw.random() * 0.5)
        victims = [pid for pid in reader_processes() if pid not in frozen]
        if kind == "daemon" or not victims:
            process.send_signal(signal.SIGKILL)
            assert process.wait(20) in KILLED, daemons.log_text()
            process, started = daemons.start(*arguments), started + 1
        else:
            victim = draw.choice(victims)
            os.kill(victim, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
            frozen += [victim] if kind == "freeze" else []
        learned = written * partitions
        daemons.wait_for(lambda: daemons.records() == learned, 30.0)  # noqa: B023
        for pid in frozen:  # it answers late
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    process.terminate()
    assert process.wait(20) in {Exit.OK, -signal.SIGTERM}, daemons.log_text()[-2000:]
    assert daemons.run(*arguments, "--until", "end") == Exit.OK, daemons.log_text()[-2000:]
    daemons.assert_learned_once(partitions, length, reader=sl.Hashing(12))


def test_new_partitions_and_more_readers_than_partitions(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
    bootstrap: str,
    options: list[str],
) -> None:
    topic, length = make_topic(1), 500
    fill(producer, topic, 1, length)
    daemons = prepared(make_any_daemons, topic, client="confluent")
    process = daemons.start(*options)
    daemons.wait_for(lambda: daemons.records() == length)
    grow(admin, topic, 2)
    fresh = Producer({"bootstrap.servers": bootstrap})  # one that knows of them
    write(fresh, topic, [event(1, i) for i in range(length)], 1)
    daemons.wait_for(lambda: daemons.records() == 2 * length)
    process.terminate()
    assert process.wait(20) == Exit.OK
    daemons.assert_learned_once(2, length, reader=sl.Hashing(12))


def test_what_readers_cannot_do_is_refused(
    make_any_daemons: MakeDaemons, make_topic: MakeTopic, options: list[str]
) -> None:
    topic = make_topic(1)
    daemons = prepared(make_any_daemons, topic, client="confluent")
    for changed, remedy in (
        ("format.labels=[]", "format.labels"),
        ("features.kind=names", "hashing"),
        ("features.fields={x = 'buckets(10)'}", "fleet.readers = 0"),
    ):
        code = daemons.run(*options, "--set", changed, "--until", "end")
        assert code == Exit.USAGE, daemons.log_text()
        assert remedy in daemons.log_text().splitlines()[-1]
