"""The daemon on a real broker: killed, frozen, poisoned, cut off; over both client libraries."""

from __future__ import annotations

import itertools
import json
import random
import signal
import statistics
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition

import streamlearn as sl
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.faults import STEPS
from streamlearn.estimators import checkpoints, model_file
from streamlearn.kafka import Connection, KafkaSource
from tests.broker.apache_kafka import PASSWORD, USER, free_port
from tests.broker.conftest import CLIENTS, all_of, create, delete, grow, values, write
from tests.broker.daemons import KILLED, SOAK, Daemons, fill, lines
from tests.support.streams import event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeDaemons, MakeTopic


def killed_often(daemons: Daemons, draw: random.Random, kills: int, *options: str) -> None:
    """Kill daemons at random moments, each some checkpoints after its start."""
    for kill in range(kills):
        before = daemons.records()
        process = daemons.start(*options)
        wanted = draw.random() < 0.8  # else it may die before its first checkpoint
        daemons.wait_for(lambda: not wanted or daemons.records() > before)  # noqa: B023
        time.sleep(draw.random() * 0.03)  # in which a daemon learns up to 20,000 events
        process.send_signal(signal.SIGTERM if kill % 2 else signal.SIGKILL)
        assert process.wait(20) in KILLED, daemons.log_text()


@pytest.mark.parametrize(
    ("events", "kills"), [(30_000, 4), pytest.param(300_000, 12, marks=pytest.mark.nightly)]
)
def test_killed_at_any_moment_each_record_is_learned_once(
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    connection: Connection,
    events: int,
    kills: int,
) -> None:
    partitions, length = 3, events // 3
    topic = make_topic(partitions)
    fill(producer, topic, partitions, length)
    daemons = make_daemons(topic, every=events // 100, batch=events // 200)
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)  # noqa: T201 -- shown if it fails
    killed_often(daemons, random.Random(seed), kills)
    # Each step has its test in tests/daemon, too; a short run halves them between the libraries.
    for step in STEPS if kills == 12 else STEPS[connection.client == "confluent" :: 2]:
        code = daemons.run("--until", "end", fault=f"{step}:1")
        assert code in KILLED, (step, daemons.log_text()[-2000:])
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    daemons.assert_learned_once(partitions, length)


def test_with_one_partition_kills_leave_no_trace(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, length = make_topic(1), 4000
    fill(producer, topic, 1, length)
    whole, torn = make_daemons(topic, "whole"), make_daemons(topic, "torn", every=500, batch=100)
    assert whole.run("--until", "end") == Exit.OK, whole.log_text()
    for n, step in enumerate(("write", "rename", "commit"), 1):
        assert torn.run("--until", "end", fault=f"{step}:{n}") in KILLED
    assert torn.run("--until", "end") == Exit.OK, torn.log_text()
    torn.assert_learned_once(1, length)
    for name in ("default", "sparse"):
        states = [checkpoints.model(d.models, name)["state"] for d in (whole, torn)]
        assert model_file.pack(states[0]) == model_file.pack(states[1])


def test_a_frozen_owner_is_overtaken(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, length = make_topic(1), 10_000
    fill(producer, topic, 1, length)
    daemons = make_daemons(topic, batch=50, every=200)
    owner = daemons.start()
    daemons.wait_for(lambda: daemons.records() > 0)
    owner.send_signal(signal.SIGSTOP)
    frozen = daemons.records()
    second = daemons.start()
    daemons.wait_for(lambda: max(checkpoints.epochs(daemons.models), default=0) == 2)
    assert daemons.records() >= frozen
    owner.send_signal(signal.SIGCONT)
    assert owner.wait(5) == Exit.FENCED, daemons.log_text()[-3000:]
    daemons.wait_for(lambda: daemons.records() == length)
    second.terminate()
    assert second.wait(15) == Exit.OK
    daemons.assert_learned_once(1, length)


def test_a_moved_directory_does_not_begin_a_new_model(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, length = make_topic(1), 10_000
    fill(producer, topic, 1, length)
    daemons, required = (
        make_daemons(topic, batch=50, every=200),
        ("--set", "checkpoint.required=true"),
    )
    assert daemons.run(*required, "--begin") == Exit.OK, daemons.log_text()
    process, away = daemons.start(*required), daemons.models.with_name("away")
    daemons.wait_for(lambda: daemons.records() > 0)
    daemons.models.rename(away)
    assert process.wait(20) == Exit.NO_CHECKPOINT, daemons.log_text()
    assert daemons.run(*required) == Exit.NO_CHECKPOINT
    assert not daemons.models.exists()
    away.rename(daemons.models)
    assert daemons.run(*required, "--until", "end") == Exit.OK, daemons.log_text()
    daemons.assert_learned_once(1, length)


def test_a_standby_takes_over_from_a_dead_owner_and_back(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, part = make_topic(1), 500
    daemons = make_daemons(topic, lease=3600.0)  # a dead owner's is not waited for

    def learn(number: int) -> None:
        write(producer, topic, [event(0, i) for i in range(part * number, part * (number + 1))])
        daemons.wait_for(lambda: daemons.records() == part * (number + 1))

    def logged(what: str) -> list[dict[str, Any]]:
        return [line for line in lines(daemons.log_text()) if line["event"] == what]

    owner = daemons.start()
    learn(0)
    for number in (1, 2):
        standby = daemons.start()
        daemons.wait_for(
            lambda: len(logged("standby")) == number  # noqa: B023
        )
        address = logged("telemetry started")[-1]["page"] + "readyz"
        with urllib.request.urlopen(address) as answer:  # noqa: S310 -- our own
            assert json.load(answer)["role"] == "standby"
        owner.kill()
        daemons.wait_for(lambda: logged("learning")[-1]["epoch"] == 1 + number)  # noqa: B023
        assert owner.wait(10) == -signal.SIGKILL
        learn(number)
        owner = standby
    owner.terminate()
    assert owner.wait(15) == Exit.OK
    daemons.assert_learned_once(1, 3 * part)


def test_the_configuration_changes_against_a_checkpoint(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic = make_topic(1)
    fill(producer, topic, 1, 1000)
    daemons = make_daemons(topic)
    written = daemons.config.read_text(encoding="utf-8")

    def run(changed: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Learn 100 more records; the exit code, and the last log line of each learner."""
        daemons.config.write_text(changed, encoding="utf-8")
        before = len(daemons.log_text()) if daemons.log.exists() else 0
        code = daemons.run("--until", "100", *arguments)
        logged = lines(daemons.log_text()[before:])
        logged = [line for line in logged if line["event"] != "learned"]
        return code, {line.get("name", line["event"]): line for line in logged}

    assert run(written)[0] == Exit.OK, daemons.log_text()
    other = written.replace('name = "default"', 'name = "ftrl"\nmodel = "FTRLClassifier(l1=0.1)"')
    code, last = run(other)
    assert code == Exit.OK, daemons.log_text()
    assert (last["sparse"]["event"], last["default"]["event"]) == (
        "learner resumed",
        "learner archived",
    )
    assert last["sparse"]["learned"] > 50
    assert (last["ftrl"]["event"], last["ftrl"]["at"]) == (
        "learner created",
        {f"{topic}:0": 100},
    )
    (archived,) = (daemons.models / "archive").iterdir()
    assert sl.LinearClassifier.load(archived).steps > 50

    for changed, difference in (
        (other.replace("gamma=5.0", "gamma=7.0"), "rule = DualAveraging(gamma=5.0"),
        (other + '\n[features]\nkind = "hashing"\n', "features.kind = names -> hashing"),
    ):
        name = "all" if "hashing" in changed else "sparse"
        before = daemons.records()
        code, last = run(changed)
        assert code == Exit.USAGE
        assert difference in last["stopped"]["reason"]
        assert "--reset" in last["stopped"]["reason"]
        assert daemons.records() == before, "the checkpoint is as it was"
        code, last = run(changed, "--reset", name)
        assert code == Exit.OK, daemons.log_text()
        assert last["sparse"]["event"] == "learner archived"
        assert last["ftrl"]["event"] == ("learner archived" if name == "all" else "learner resumed")
        assert daemons.records() == before + 100


def test_invalid_records_are_dead_letters(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, connection: Connection
) -> None:
    topic, dead, length = make_topic(2), make_topic(), 5000
    fill(producer, topic, 2, length, garbage=0.01)
    worst = [
        b'{"click":true,"x":"' + b"y" * 900_000 + b'"}',
        b"z" * 999_900,
        b"[" * 50_000,
        b'{"click":true,"x":' * 20_000,
        b'{"click":true,"x":NaN}',
        b'{"click":true,"x":{"y":[1,"a",null]}}',
        b"",
        b"\x00\x00\x00\x00\x07avro",
    ]
    write(producer, topic, worst, 0)
    daemons = make_daemons(
        topic, outputs=f'\n[dead_letters]\ntopic = "{dead}"\nmax_invalid_ratio = 0.5\n'
    )
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    found = daemons.newest()
    assert found is not None
    counts = found[1]["counts"]
    source = KafkaSource(connection, topics=[dead])
    source.open({}, None)
    polled = [records for records in all_of(source) if records.values]
    source.close()
    letters = {}
    for records in polled:
        for value, headers in zip(records.values, records.headers or (), strict=True):
            where = dict(headers)
            place = (
                int(where["streamlearn.partition"] or b""),
                int(where["streamlearn.offset"] or b""),
            )
            letters[place] = (value, where)
            assert where["streamlearn.reason"]
    bad = {
        (n, i)
        for n in range(2)
        for i in range(length)
        if event(n, i, garbage=0.01) != event(n, i) and event(n, i, garbage=0.01) is not None
    }
    assert bad <= set(letters)
    assert len(letters) == counts["invalid"]
    assert counts["records"] == 2 * length + len(worst)
    assert counts["events"] + counts["invalid"] + counts["tombstones"] == counts["records"]
    assert letters[0, length + 2][0] == worst[2], "raw bytes"
    cut = letters[0, length + 1]
    assert worst[1].startswith(cut[0] or b"")


def test_a_failed_start_has_an_exit_code_and_a_reason(
    make_daemons: MakeDaemons, make_topic: MakeTopic, own_broker: ApacheKafka
) -> None:
    topic, wrong = make_topic(), f"{make_topic()}-mistyped"
    nowhere = f"127.0.0.1:{free_port()}"
    login = f"""
[source.security]
mechanism = "SCRAM-SHA-512"
username = "{USER}"
password = "{{}}"
cafile = "{own_broker.cafile}"
"""
    dead = '\n[dead_letters]\ntopic = "{}"\n'
    cases = {
        "absent": (
            make_daemons(topic, "1", bootstrap=nowhere),
            Exit.SOURCE,
            nowhere,
        ),
        "unknown": (make_daemons(wrong, "2"), Exit.NOT_FOUND, wrong),
        "login": (
            make_daemons(topic, "3", bootstrap=own_broker.secure, outputs=login.format("wrong")),
            Exit.DENIED,
            "security.mechanism",
        ),
        # an output is looked at first
        "absent for outputs": (
            make_daemons(topic, "4", bootstrap=nowhere, outputs=dead.format(wrong)),
            Exit.SOURCE,
            nowhere,
        ),
        "unknown output": (
            make_daemons(topic, "5", outputs=dead.format(wrong)),
            Exit.NOT_FOUND,
            wrong,
        ),
    }
    started = time.monotonic()
    processes = {name: daemons.start() for name, (daemons, _, _) in cases.items()}
    for name, (daemons, code, reason) in cases.items():
        left = 45.0 - (time.monotonic() - started)
        assert processes[name].wait(left) == code, (name, daemons.log_text())
        errors = [line for line in lines(daemons.log_text()) if line["level"] == "error"]
        assert len(errors) == 1, errors
        assert errors[0]["event"] == "stopped"
        assert reason in errors[0]["reason"]
        assert "Traceback" not in daemons.log_text()
    let_in = make_daemons(topic, "6", bootstrap=own_broker.secure, outputs=login.format(PASSWORD))
    assert let_in.run("--until", "end") == Exit.OK, let_in.log_text()


@pytest.mark.parametrize("outage", [4.0, pytest.param(20.0, marks=pytest.mark.nightly)])
def test_the_broker_goes_away_and_comes_back(
    own_broker: ApacheKafka,
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    outage: float,
) -> None:
    topic, half = make_topic(2), 2000
    fill(producer, topic, 2, half)
    outputs = {client: make_topic() for client in CLIENTS}
    both = [
        make_any_daemons(
            topic,
            client,
            client=client,
            every=500,
            outputs=f'\n[predictions]\ntopic = "{output}"\nlearner = "sparse"\n',
        )
        for client, output in outputs.items()
    ]
    processes = [daemons.start() for daemons in both]
    for daemons in both:
        daemons.wait_for(lambda: daemons.records() == 2 * half)  # noqa: B023
    own_broker.stop()
    time.sleep(outage)
    own_broker.start()
    for partition in range(2):
        write(producer, topic, [event(partition, i) for i in range(half, 2 * half)], partition)
    back = time.monotonic()
    for process, daemons in zip(processes, both, strict=True):
        left = 25.0 - (time.monotonic() - back)  # 2, if nobody else uses the machine
        daemons.wait_for(lambda: daemons.records() == 4 * half, left)  # noqa: B023
        process.terminate()
    for process, daemons in zip(processes, both, strict=True):
        assert process.wait(15) == Exit.OK
        daemons.assert_learned_once(2, 2 * half)
    for output in outputs.values():
        places = [(partition, at) for _, partition, at in predicted(own_broker.bootstrap, output)]
        assert sorted(places) == [(n, at) for n in range(2) for at in range(2 * half)]


def test_gaps_and_recreated_topics_end_the_daemon_new_partitions_do_not(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, admin: Any, bootstrap: str
) -> None:
    topic, length = make_topic(1), 1000
    fill(producer, topic, 1, length)
    daemons = make_daemons(topic)
    assert daemons.run("--until", "500") == Exit.OK, daemons.log_text()
    learned = daemons.records()
    admin.delete_records({TopicPartition(topic, 0): 900})
    assert daemons.run("--until", "end") == Exit.SOURCE_CHANGED
    assert "--on-gap=continue" in daemons.log_text()
    assert daemons.records() == learned
    assert daemons.run("--until", "end", "--on-gap=continue") == Exit.OK, daemons.log_text()
    assert daemons.records() == learned + 100
    grow(admin, topic, 2)
    fresh = Producer({"bootstrap.servers": bootstrap})  # one that knows of them
    write(fresh, topic, [event(1, i) for i in range(50)], 1)
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()
    assert daemons.records() == learned + 150
    delete(admin, topic)
    create(admin, topic)
    assert daemons.run("--until", "end") == Exit.SOURCE_CHANGED
    assert "--reset-offsets" in daemons.log_text()


@pytest.mark.parametrize("frozen", [True, False])
def test_a_topic_created_again_while_it_is_read_is_not_learned(
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
    *,
    frozen: bool,
) -> None:
    topic, length = make_topic(2), 1500
    fill(producer, topic, 2, length)
    daemons = make_daemons(topic)
    process = daemons.start()
    daemons.wait_for(lambda: daemons.records() == 2 * length)
    if frozen:
        process.send_signal(signal.SIGSTOP)
    delete(admin, topic)
    create(admin, topic, 2)
    fill(producer, topic, 2, 2 * length)  # past the positions
    process.send_signal(signal.SIGCONT)
    assert process.wait(60) == Exit.SOURCE_CHANGED, daemons.log_text()
    assert daemons.records() == 2 * length
    daemons.assert_learned_once(2, length)
    assert daemons.run("--until", "end") == Exit.SOURCE_CHANGED
    assert daemons.run("--until", "end", "--reset-offsets") == Exit.OK, daemons.log_text()
    assert daemons.records() == 2 * length + 2 * 2 * length


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"may not mount a small disk here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


def test_full_disk(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, small_disk: Path
) -> None:
    topic, length = make_topic(1), 2000
    fill(producer, topic, 1, length)
    daemons = make_daemons(topic, path=small_disk / "models", max_age=2.0, every=100)
    assert daemons.run("--until", "1000") == Exit.OK, daemons.log_text()
    before = daemons.records()
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x" * 4096)
    assert daemons.run() == Exit.CHECKPOINT, daemons.log_text()[-3000:]
    assert daemons.records() == before, "the old checkpoint is as it was"
    (small_disk / "filler").unlink()
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(1, length)


@pytest.mark.nightly
def test_memory_stays_flat_over_millions_of_events(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, length = make_topic(1), SOAK
    some = [event(0, i) or b"" for i in range(10_000)]
    for _ in range(length // len(some)):
        write(producer, topic, some)
    daemons = make_daemons(topic, batch=5000, every=length // 50)
    process = daemons.start()
    curve: list[tuple[int, int]] = []
    while (learned := daemons.records()) < length:
        assert process.poll() is None, daemons.log_text()[-3000:]
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        if not curve or learned > curve[-1][0]:
            curve.append((learned, int(resident.split()[1])))
        time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == Exit.OK
    print("learned, kB resident:", curve)  # noqa: T201 -- shown if it fails, or with -s
    tenths: list[list[int]] = [[] for _ in range(10)]
    for learned, size in curve:
        tenths[10 * learned // length].append(size)
    # The first two are the warm-up; in the last the backlog ends, and with it what is fetched
    # ahead. Blocks of 4 MB come and go, so what counts is a third beside another.
    early, late = (
        statistics.median(itertools.chain(*sizes)) for sizes in (tenths[2:5], tenths[6:9])
    )
    assert late <= 1.05 * early, (early, late)


def test_predictions_are_published_before_their_checkpoint(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, connection: Connection
) -> None:
    topic, output, length = make_topic(2), make_topic(2), 2000
    fill(producer, topic, 2, length)
    daemons = make_daemons(
        topic, outputs=f'\n[predictions]\ntopic = "{output}"\nlearner = "sparse"\n'
    )
    for step in ("flush:2", "rename:3"):
        assert daemons.run("--until", "end", fault=step) in KILLED
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(2, length)
    source = KafkaSource(connection, topics=[output])
    source.open({}, None)
    got = all_of(source)
    source.close()
    places = {
        (headers["partition"], headers["offset"])
        for records in got
        for headers in map(dict, records.headers or ())
    }
    assert len(places) == 2 * length <= len(values(got))


def test_no_prediction_of_a_frozen_owner_follows_those_of_the_next(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, bootstrap: str
) -> None:
    topic, output, length = make_topic(), make_topic(), 40_000
    fill(producer, topic, 1, length)
    daemons = make_daemons(
        topic,
        outputs=f'\n[predictions]\ntopic = "{output}"\nlearner = "sparse"\n',
        batch=5000,
        every=5000,
    )
    owner = daemons.start()
    daemons.wait_for(lambda: daemons.records() > 0)
    owner.send_signal(signal.SIGSTOP)
    standby = daemons.start("--until", "end")
    try:
        daemons.wait_for(lambda: {of for of, _, _ in predicted(bootstrap, output)} >= {1, 2})
    finally:
        owner.send_signal(signal.SIGCONT)
    assert owner.wait(20) == Exit.FENCED, daemons.log_text()
    assert standby.wait(60) == Exit.OK, daemons.log_text()
    daemons.assert_learned_once(1, length)
    predictions = predicted(bootstrap, output)
    epochs = [epoch for epoch, _, _ in predictions]
    assert epochs == sorted(epochs)
    assert {(partition, offset) for _, partition, offset in predictions} == {
        (0, offset) for offset in range(length)
    }


def predicted(bootstrap: str, output: str) -> list[tuple[int, int, int]]:
    """Epoch, partition and offset of each prediction, as readers of committed records see them."""
    source = KafkaSource(Connection(bootstrap=bootstrap, client="confluent"), topics=[output])
    source.open({}, None)
    found = [
        (
            int(metadata["epoch"] or b""),
            int(metadata["partition"] or b""),
            int(metadata["offset"] or b""),
        )
        for records in all_of(source)
        for metadata in map(dict, records.headers or ())
    ]
    source.close()
    return found


def test_a_prediction_omits_a_huge_key_or_id(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, connection: Connection
) -> None:
    topic, output = make_topic(), make_topic(max_message_bytes="100000")
    huge = "h" * 150_000
    for number, (key, name) in enumerate([("k", "a"), (huge, "b"), ("k", huge), ("k", "d")]):
        value = json.dumps({"id": name, "x": 1.0, "click": number % 2})
        producer.produce(topic, value.encode(), key.encode())
    assert producer.flush(20) == 0
    daemons = make_daemons(
        topic, outputs=f'\n[predictions]\ntopic = "{output}"\nlearner = "sparse"\n'
    )
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    assert daemons.records() == 4
    source = KafkaSource(connection, topics=[output])
    source.open({}, None)
    got = [
        (key, json.loads(value or b"")["id"], "dropped" in dict(headers))
        for records in all_of(source)
        for key, value, headers in zip(
            records.keys or (), records.values, records.headers or (), strict=True
        )
    ]
    source.close()
    assert got == [(b"k", "a", False), (None, None, True), (None, None, True), (b"k", "d", False)]


def test_stray_labels_are_dead_letters_not_classes(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, connection: Connection
) -> None:
    topic, output, dead = make_topic(), make_topic(), make_topic()
    labels = [False, True, "false", *(f"stray {i}" for i in range(300)), True]
    write(producer, topic, [json.dumps({"x": 1.0, "click": one}).encode() for one in labels])
    daemons = make_daemons(
        topic,
        outputs=f'\n[predictions]\ntopic = "{output}"\nlearner = "sparse"\n'
        f'[dead_letters]\ntopic = "{dead}"\nmax_invalid_ratio = 1.0\n',
    )
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    found = daemons.newest()
    assert found is not None
    kept = found[1]["decoder"]["labels"]
    assert (kept["labels"], kept["closed"], kept["events"]) == ([False, True], True, 4)
    read = {}
    for name in (output, dead):
        source = KafkaSource(connection, topics=[name])
        source.open({}, None)
        read[name] = [
            (json.loads(value or b""), dict(headers))
            for records in all_of(source)
            for value, headers in zip(records.values, records.headers or (), strict=True)
        ]
        source.close()
    assert [event["click"] for event, _ in read[dead]] == labels[3:-1]
    assert {headers["streamlearn.code"] for _, headers in read[dead]} == {b"label"}
    assert ["probability" in told for told, _ in read[output]] == [False, False, True, True]
    assert {headers["schema"] for _, headers in read[output]} == {b"1"}
