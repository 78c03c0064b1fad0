"""Three brokers, of which some fail: the models are exact, or the daemon stops and says where."""

from __future__ import annotations

import itertools
import os
import signal
import time
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streamlearn.daemon.process.exits import Exit
from streamlearn.kafka import Connection, KafkaSource
from tests.broker.apache_kafka import Cluster, Unavailable
from tests.broker.conftest import ELSEWHERE, all_of, create, until, write
from tests.broker.daemons import lines
from tests.support.missing import skip_unless_ci
from tests.support.streams import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.daemons import Daemons

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]

OUTAGE = 5.0  # seconds
NO_GAP = "--on-gap=continue"  # what was cut is none
PREDICTIONS = '\n[predictions]\ntopic = "{}"\nlearner = "sparse"\n'
_numbers = itertools.count()


@pytest.fixture(scope="module")
def whole_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers for all tests here."""
    if ELSEWHERE:
        pytest.skip("needs brokers of its own, and STREAMLEARN_BOOTSTRAP names another")
    try:
        cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    except Unavailable as reason:
        skip_unless_ci(reason)
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(whole_cluster: Cluster) -> Cluster:
    """All three run, whatever the test before has done."""
    whole_cluster.start()
    return whole_cluster


@pytest.fixture
def bootstrap(cluster: Cluster) -> str:
    """Where they are."""
    return cluster.bootstrap


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Any]:
    """Makes topics, and tells who leads."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    until(lambda: len(ask(admin.describe_cluster)["brokers"]) == 3)
    yield admin
    admin.close()


@pytest.fixture
def make_topic(cluster: Cluster, admin: Any) -> MakeTopic:
    """Return a function that makes a topic on three brokers, or on fewer."""

    def make(partitions: int = 1, replicas: int = 3, **settings: str) -> str:
        topic = f"cluster-{os.getpid()}-{next(_numbers)}"
        create(admin, topic, partitions, replicas, **settings)
        until(lambda: all(len(one["isr_nodes"]) == replicas for one in described(admin, topic)))
        # A daemon stops if the broker that it asks has not heard of a topic.
        until(lambda: all(knows(node.bootstrap, topic) for node in cluster.nodes.values()))
        return topic

    return make


def knows(broker: str, topic: str) -> bool:
    """Whether this broker has heard of the topic: a new client asks the one that it was told of."""
    found = AdminClient({"bootstrap.servers": broker}).list_topics(topic, timeout=10)
    return found.topics[topic].error is None


def ask(question: Callable[..., Any], *arguments: object) -> Any:
    """Ask again while the broker that is asked is away."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return question(*arguments)
        except KafkaError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def described(admin: Any, topic: str) -> list[dict[str, Any]]:
    """Return the topic's partitions: their leaders, replicas and in-sync replicas."""
    found: list[dict[str, Any]] = ask(admin.describe_topics, [topic])[0]["partitions"]
    return sorted(found, key=lambda one: int(one["partition_index"]))


def controller(admin: Any) -> int:
    """Return the number of the active controller."""
    quorum = ask(admin.describe_metadata_quorum)
    return int(quorum["topics"][0]["partitions"][0]["leader_id"])


def reason(daemons: Daemons) -> str:
    """Why it has stopped."""
    return str(lines(daemons.log_text())[-1]["reason"])


def predicted(bootstrap: str, output: str) -> set[tuple[int, int]]:
    """Return the places of the records that were predicted."""
    source = KafkaSource(Connection(bootstrap=bootstrap, client="confluent"), topics=[output])
    source.open({}, None)
    got = all_of(source)
    source.close()
    headers = [dict(one) for records in got for one in records.headers or ()]
    return {(int(one["partition"] or b""), int(one["offset"] or b"")) for one in headers}


def write_some(producer: Producer, topic: str, partitions: int, start: int, stop: int) -> None:
    """Write the synthetic events from one offset to another, to each partition."""
    for partition in range(partitions):
        write(producer, topic, [event(partition, i) for i in range(start, stop)], partition)


def test_the_leader_is_killed_and_moves(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    topic, output, length = make_topic(3), make_topic(3), 6000
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(output), every=500)
    process = daemons.start()
    step = length // 3
    for number in range(3):
        write_some(producer, topic, 3, number * step, number * step + step // 2)
        daemons.wait_for(lambda: daemons.records() > 3 * number * step)  # noqa: B023
        leader = described(admin, topic)[number]["leader_id"]
        cluster.nodes[leader].kill()
        write_some(producer, topic, 3, number * step + step // 2, (number + 1) * step)
        daemons.wait_for(lambda: daemons.records() == 3 * (number + 1) * step)  # noqa: B023
        cluster.start()
        until(lambda: all(len(one["isr_nodes"]) == 3 for one in described(admin, topic)))
    process.terminate()
    assert process.wait(20) == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(3, length)
    assert predicted(cluster.bootstrap, output) == {(n, i) for n in range(3) for i in range(length)}


def below_the_minimum(cluster: Cluster, admin: Any, topic: str) -> None:
    """Stop all brokers but the leader of this topic."""
    leader = described(admin, topic)[0]["leader_id"]
    for number, node in cluster.nodes.items():
        if number != leader:
            node.stop()


def is_healthy(daemons: Daemons) -> bool:
    """Whether the running daemon says that it is alive."""
    events = [line for line in lines(daemons.log_text()) if line["event"] == "telemetry started"]
    page = events[0]["page"]
    with urllib.request.urlopen(page + "healthz") as answer:  # noqa: S310 -- our own
        return bool(answer.status == HTTPStatus.OK)


def test_in_sync_replicas_below_the_minimum(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    topic, output, length = make_topic(min_insync_replicas="1"), make_topic(), 2000
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(output), every=200)
    process = daemons.start()
    write_some(producer, topic, 1, 0, length // 2)
    daemons.wait_for(lambda: daemons.records() == length // 2)
    below_the_minimum(cluster, admin, topic)
    write_some(producer, topic, 1, length // 2, length)
    time.sleep(OUTAGE)
    assert process.poll() is None, daemons.log_text()[-3000:]
    assert is_healthy(daemons)
    assert daemons.records() == length // 2, "no checkpoint passes what is not delivered"
    cluster.start()
    daemons.wait_for(lambda: daemons.records() == length)
    process.terminate()
    assert process.wait(20) == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(1, length)
    assert predicted(cluster.bootstrap, output) == {(0, i) for i in range(length)}


def test_in_sync_replicas_below_the_minimum_for_too_long(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    topic, output, length = make_topic(min_insync_replicas="1"), make_topic(), 2000
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(output), every=200, max_age=3.0)
    process = daemons.start()
    write_some(producer, topic, 1, 0, length // 2)
    daemons.wait_for(lambda: daemons.records() == length // 2)
    below_the_minimum(cluster, admin, topic)
    write_some(producer, topic, 1, length // 2, length)
    assert process.wait(60) == Exit.CHECKPOINT, daemons.log_text()[-3000:]
    assert daemons.records() == length // 2
    cluster.start()
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(1, length)
    assert predicted(cluster.bootstrap, output) == {(0, i) for i in range(length)}


def cut(
    cluster: Cluster, admin: Any, topic: str, before: Callable[[], None], regrown: int = 0
) -> None:
    """Let a follower lead that lacks what is written while it is away, and write other records."""
    (partition,) = described(admin, topic)
    leader = partition["leader_id"]
    (follower,) = set(partition["replica_nodes"]) - {leader}
    cluster.nodes[follower].stop()
    until(lambda: described(admin, topic)[0]["isr_nodes"] == [leader])
    before()
    cluster.nodes[leader].kill()
    cluster.nodes[follower].start()
    until(lambda: described(admin, topic)[0]["leader_id"] == follower)
    if regrown:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        write(producer, topic, [event(1, i) for i in range(regrown)])


@pytest.mark.parametrize("regrown", [0, 1000], ids=["shorter", "regrown"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_an_unclean_election_truncates_learned_records(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
    *,
    regrown: int,
    running: bool,
) -> None:
    topic = make_topic(replicas=2, min_insync_replicas="1", unclean_leader_election_enable="true")
    kept, learned = 1000, 1500
    write_some(producer, topic, 1, 0, kept)
    daemons = make_daemons(topic, batch=100, every=100)
    process = daemons.start(NO_GAP)

    def learn() -> None:
        write_some(producer, topic, 1, kept, learned)
        daemons.wait_for(lambda: daemons.records() == learned)
        if running:
            process.send_signal(signal.SIGSTOP)
        else:
            process.terminate()
            assert process.wait(20) == Exit.OK

    cut(cluster, admin, topic, learn, regrown)
    if running:
        process.send_signal(signal.SIGCONT)
    else:
        process = daemons.start(NO_GAP)
    assert process.wait(60) == Exit.SOURCE_CHANGED, daemons.log_text()[-3000:]
    assert f"{topic}/0" in reason(daemons)
    assert str(learned) in reason(daemons)
    # where it was cut is known, unless that was while no daemon ran and the log has grown since
    assert str(kept) in reason(daemons) or (regrown and not running)
    daemons.assert_learned_once(1, learned)


def test_a_rolling_restart(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    topic, output, length = make_topic(3), make_topic(3), 6000
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(output), every=500)
    process = daemons.start()
    step = length // 3
    for number, node in enumerate(cluster.nodes.values()):
        write_some(producer, topic, 3, number * step, number * step + step // 2)
        node.stop()
        write_some(producer, topic, 3, number * step + step // 2, (number + 1) * step)
        node.start()
        until(lambda: all(len(one["isr_nodes"]) == 3 for one in described(admin, topic)))
        daemons.wait_for(lambda: daemons.records() == 3 * (number + 1) * step)  # noqa: B023
    assert process.poll() is None
    process.terminate()
    assert process.wait(20) == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(3, length)
    assert predicted(cluster.bootstrap, output) == {(n, i) for n in range(3) for i in range(length)}


def test_the_active_controller_fails(
    cluster: Cluster,
    make_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    topic, output, length = make_topic(3), make_topic(3), 2000
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(output), every=500)
    process = daemons.start()
    write_some(producer, topic, 3, 0, length // 2)
    daemons.wait_for(lambda: daemons.records() > 0)
    failed = controller(admin)
    cluster.nodes[failed].kill()
    until(lambda: controller(admin) not in {failed, -1})
    write_some(producer, topic, 3, length // 2, length)
    daemons.wait_for(lambda: daemons.records() == 3 * length)
    process.terminate()
    assert process.wait(20) == Exit.OK, daemons.log_text()[-3000:]
    daemons.assert_learned_once(3, length)
    assert predicted(cluster.bootstrap, output) == {(n, i) for n in range(3) for i in range(length)}
