"""Workers on Ray, over a real broker: each record is learned once, whatever happens to anybody."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer

import streamlearn as sl
from streamlearn.daemon.process.exits import Exit
from streamlearn.fleet.cluster import SEVERAL_MACHINES
from streamlearn.serving import Snapshot
from tests.broker.conftest import grow, write
from tests.broker.daemons import Daemons, fill
from tests.broker.ray_cluster import ray_processes
from tests.support.streams import event, learnable

if TYPE_CHECKING:
    from tests.broker.conftest import MakeDaemons, MakeTopic

SETTINGS = (
    "--set=fleet.workers=2",
    "--set=fleet.round_seconds=0.3",
    "--set=fleet.warm_events=500",
    "--set=fleet.deadline_seconds=1",
    "--set=features.kind=hashing",
    "--set=features.bits=12",
    "--set=format.labels=[false, true]",
    "--set=regret.enabled=true",
)


@pytest.fixture
def options(ray: Any) -> list[str]:
    """What makes a daemon use workers of this cluster."""
    return [*SETTINGS, "--ray", ray.get_runtime_context().gcs_address]


def prepared(make_daemons: MakeDaemons, topic: str, **settings: Any) -> Daemons:
    daemons = make_daemons(topic, **settings)
    names = ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", SEVERAL_MACHINES)
    daemons.environ = {name: os.environ[name] for name in names}
    return daemons


def worker_processes() -> list[int]:
    """The processes of all workers on this machine that belong to this test's cluster."""
    return ray_processes(b"ray::RemoteWorker", os.environ["RAY_AUTH_TOKEN"])


def assert_learned_once(daemons: Daemons, partitions: int, length: int) -> None:
    """By the ranges that were merged, and by what the models have counted themselves."""
    found = daemons.newest()
    assert found is not None, daemons.log_text()
    data = found[1]
    ends = dict.fromkeys(range(partitions), 0)  # each range begins where the one before ended
    for _, number, start, end in data["observers"]["audit"]:
        assert ends[number] == start
        ends[number] = end
    assert set(ends.values()) == {length}
    assert data["counts"]["records"] == partitions * length
    examples = [
        example
        for partition in range(partitions)
        for offset in range(length)
        if (example := learnable(partition, offset, garbage=0.0)) is not None
    ]
    weights = [weight for _, _, weight in examples]
    labels = [weight if label else -weight for _, label, weight in examples]
    model = sl.LinearClassifier.load(daemons.models, learner="default")
    members: Any = getattr(model.rules[0], "members", ())
    [rate] = [one for one in members if isinstance(one, sl.rules.BaseRate)]
    assert (rate.mass, rate.labels) == (sum(weights), sum(labels))
    for learner in data["learners"].values():
        assert learner["learned"] == len(examples)
        assert learner["progress"]["loss"]["weight"] == sum(weights)
    for ledger in data["observers"]["regret"]["learners"].values():
        sums, pending = ledger["sums"], ledger["sums"]["pending"]
        assert sums["events"] + len(pending) == len(examples)
        assert sums["weight"] + sum(weight for _, _, weight, *_ in pending) == sum(weights)
    [sample] = data["observers"]["regret"]["samples"]
    assert sum(sample["rows"]) == len(examples)


def run_with_workers(
    daemons: Daemons,
    producer: Producer,
    topic: str,
    partitions: int,
    length: int,
    options: list[str],
    garbage: float = 0.0,
) -> None:
    """Write the first records, and all others once the workers learn; end then."""
    first = 400
    fill(producer, topic, partitions, first, garbage)
    process = daemons.start(*options)
    daemons.wait_for(lambda: "workers learn" in daemons.log_text())
    for partition in range(partitions):
        values = [event(partition, i, garbage=garbage) for i in range(first, length)]
        write(producer, topic, values, partition)
    daemons.wait_for(lambda: daemons.records() == partitions * length)
    process.terminate()
    assert process.wait(20) == Exit.OK, daemons.log_text()[-2000:]


@pytest.mark.parametrize(
    "library", ["kafka-python", pytest.param("confluent", marks=pytest.mark.nightly)]
)
def test_workers_learn_every_record_once(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    options: list[str],
    library: str,
) -> None:
    topic, length = make_topic(3), 4000
    daemons = prepared(make_any_daemons, topic, client=library, every=2000)
    served = [*options, "--set=serve.every_seconds=0.2"]
    run_with_workers(daemons, producer, topic, 3, length, served)
    assert_learned_once(daemons, 3, length)
    learner = daemons.newest()[1]["learners"]["default"]  # type: ignore[index]
    loss = learner["progress"]["loss"]
    assert loss["total"] / loss["weight"] < 0.7
    assert Snapshot(daemons.models / "serving", "default").version.events == learner["learned"]


def test_new_partitions_and_more_workers_than_partitions(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
    bootstrap: str,
    options: list[str],
) -> None:
    topic, length = make_topic(1), 1000
    fill(producer, topic, 1, length)
    daemons = prepared(make_any_daemons, topic, client="confluent")
    process = daemons.start(*options)
    daemons.wait_for(lambda: daemons.records() == length)
    daemons.wait_for(lambda: "workers learn" in daemons.log_text())
    grow(admin, topic, 2)
    fresh = Producer({"bootstrap.servers": bootstrap})  # one that knows of them
    write(fresh, topic, [event(1, i) for i in range(length)], 1)
    daemons.wait_for(lambda: daemons.records() == 2 * length)
    process.terminate()
    assert process.wait(20) == Exit.OK
    assert_learned_once(daemons, 2, length)


def test_predictions_and_dead_letters_of_workers_name_the_round(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    bootstrap: str,
    options: list[str],
) -> None:
    topic, predictions, letters, length = make_topic(2), make_topic(), make_topic(), 1500
    outputs = (
        f'[predictions]\ntopic = "{predictions}"\n[dead_letters]\ntopic = "{letters}"\n'
        "max_invalid_ratio = 0.5\n"
    )
    daemons = prepared(make_any_daemons, topic, client="confluent", outputs=outputs)
    run_with_workers(daemons, producer, topic, 2, length, options, garbage=0.02)
    found = daemons.newest()
    assert found is not None
    counts = found[1]["counts"]
    published = read(bootstrap, predictions)
    places = {(one["partition"], one["offset"]) for one in published}
    assert len(places) == len(published) == counts["events"]
    of_workers = [one for one in published if "round" in one]
    assert 0 < len(of_workers) < len(published)  # the daemon predicts the first ones
    assert {one["epoch"] for one in published} == {b"1"}
    letters_read = read(bootstrap, letters)
    assert len(letters_read) == counts["invalid"]
    assert any("streamlearn.round" in one for one in letters_read)


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """The headers of all records of a topic of one partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 20.0
    empty = 0
    while empty < (3 if found else 30) and time.monotonic() < deadline:
        messages = consumer.consume(10_000, 0.3)
        empty = 0 if messages else empty + 1
        found += [dict(one.headers() or ()) for one in messages]
    consumer.close()
    return found


def test_what_ends_a_worker_ends_the_daemon_with_its_code(
    make_any_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, options: list[str]
) -> None:
    topic = make_topic(1)
    fill(producer, topic, 1, 1000)
    daemons = prepared(make_any_daemons, topic, client="confluent")
    process = daemons.start(*options)
    daemons.wait_for(lambda: "workers learn" in daemons.log_text())
    write(producer, topic, [b"{"] * 1000, 0)
    assert process.wait(30) == Exit.INVALID_RECORDS, daemons.log_text()
    assert json.loads(daemons.log_text().splitlines()[-1])["exit"] == Exit.INVALID_RECORDS
