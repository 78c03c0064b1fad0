"""One real broker a run, topics of fresh names, and ways to write to them.

`STREAMLEARN_BOOTSTRAP` names a broker to use instead; what needs to restart one, or its passwords,
is then skipped.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import NodeNotReadyError

from streamlearn.fleet.cluster import connected
from streamlearn.kafka import Connection, KafkaSource, Security
from tests.broker.apache_kafka import PASSWORD, USER, ApacheKafka, Unavailable
from tests.broker.daemons import SECONDS, Daemons
from tests.broker.processes import Server
from tests.broker.ray_cluster import RayCluster
from tests.support.missing import skip_unless_ci

if TYPE_CHECKING:
    from streamlearn.kafka.connection import Client
    from streamlearn.stream.records import Partition, Records

ELSEWHERE = os.environ.get("STREAMLEARN_BOOTSTRAP")
CLIENTS: tuple[Client, ...] = ("kafka-python", "confluent")
HERE = Path(__file__).parent
_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for daemons say what those have logged, before their own limit comes."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("nightly") is None:
            item.add_marker(pytest.mark.timeout(2.0 * SECONDS))


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A broker that may be restarted, with its passwords and certificates."""
    if ELSEWHERE:
        pytest.skip("needs a broker of its own, and STREAMLEARN_BOOTSTRAP names another")
    try:
        broker = ApacheKafka(tmp_path_factory.mktemp("kafka"))
        broker.start()
    except Unavailable as reason:
        skip_unless_ci(reason)
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Where the broker is."""
    if ELSEWHERE:
        return ELSEWHERE
    broker: ApacheKafka = request.getfixturevalue("own_broker")
    return broker.bootstrap


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """What starts daemons."""
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """A Ray cluster for all daemons."""
    with connected("local", cpus=8, object_store_bytes=200 << 20) as module:
        yield module


@pytest.fixture
def ray_cluster() -> Iterator[RayCluster]:
    """A Ray cluster whose head may be killed."""
    cluster = RayCluster()
    yield cluster
    cluster.stop()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    """Each client library in turn."""
    name: Client = request.param
    return name


@pytest.fixture
def connection(bootstrap: str, client: Client) -> Connection:
    """The way to the broker over one library."""
    return Connection(bootstrap=bootstrap, client=client)


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Any]:
    """Makes and deletes topics."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


MakeTopic = Callable[..., str]


@pytest.fixture
def make_topic(admin: Any) -> MakeTopic:
    """Return a function that makes a topic of a fresh name."""

    def make(partitions: int = 1, name: str = "events", **settings: str) -> str:
        topic = f"{name}-{os.getpid()}-{next(_numbers)}"
        create(admin, topic, partitions, **settings)
        return topic

    return make


MakeDaemons = Callable[..., Daemons]


@pytest.fixture
def make_any_daemons(bootstrap: str, server: Server, tmp_path: Path) -> Iterator[MakeDaemons]:
    """Return a function that sets daemons up over a topic; they are ended in the end."""
    made: list[Daemons] = []

    def set_up(topic: str, name: str = "one", **settings: Any) -> Daemons:
        (tmp_path / name).mkdir()
        made.append(
            Daemons(server, tmp_path / name, topic=topic, **{"bootstrap": bootstrap, **settings})
        )
        return made[-1]

    yield set_up
    for daemons in made:
        daemons.stop_all()


@pytest.fixture
def make_daemons(make_any_daemons: MakeDaemons, client: Client) -> MakeDaemons:
    """The same with one client library."""
    return functools.partial(make_any_daemons, client=client)


def create(
    admin: Any, topic: str, partitions: int = 1, replicas: int = 1, /, **settings: str
) -> None:
    """Make a topic, and wait until it can be written to."""
    # Records of 1970 are of use to tests, and would be deleted for their age.
    configs = {"retention.ms": "-1"}
    configs |= {name.replace("_", "."): value for name, value in settings.items()}
    about = {"num_partitions": partitions, "replication_factor": replicas, "configs": configs}
    deadline = time.monotonic() + 20
    while True:
        try:
            admin.create_topics({topic: about}, wait_for_metadata=True)
        except NodeNotReadyError:  # after a restart
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def delete(admin: Any, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    admin.delete_topics([topic])
    until(lambda: topic not in admin.list_topics())


def grow(admin: Any, topic: str, partitions: int) -> None:
    """Give a topic more partitions, and wait until they can be written to."""
    admin.create_partitions({topic: partitions})
    until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == partitions)


def until(condition: Callable[[], bool]) -> None:
    """Wait until what was asked of the broker has taken effect."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def producer(bootstrap: str) -> Iterator[Producer]:
    """A plain producer, without the code under test."""
    # Without idempotence what is sent again after a failure comes behind what followed it.
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True}
    )
    yield producer
    producer.flush(10)


def write(
    producer: Producer,
    topic: str,
    values: Sequence[bytes | None],
    partition: int = 0,
    times: Sequence[int] | None = None,
) -> None:
    """Write records to one partition, and wait until they are there."""
    refused: list[object] = []
    for number, value in enumerate(values):
        time_ms = times[number] if times is not None else 0
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    f"k{number}".encode(),
                    partition,
                    on_delivery=lambda error, _: refused.append(error) if error else None,
                    timestamp=time_ms,
                )
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(30) == 0
    assert not refused, refused[0]


def read(
    source: KafkaSource, until: Callable[[list[Records]], bool], seconds: float = 20
) -> list[Records]:
    """Poll until enough is there."""
    deadline = time.monotonic() + seconds
    got: list[Records] = []
    while not until(got):
        assert time.monotonic() < deadline, f"after {seconds} s only {positions(got)}"
        got += source.poll(0.25)
    return got


def all_of(source: KafkaSource) -> list[Records]:
    """Poll until everything is read that was there when the source was opened."""
    return read(source, lambda _: source.ended())


def values(got: Sequence[Records], partition: int | None = None) -> list[bytes | None]:
    """The values in the order in which they came."""
    return [
        value
        for records in got
        if partition is None or records.partition.number == partition
        for value in records.values
    ]


def positions(got: Sequence[Records]) -> dict[Partition, int]:
    """Where to go on."""
    return {records.partition: records.end for records in got}


def numbered(start: int, stop: int) -> list[bytes | None]:
    """Values that tell their number."""
    return [b"%d" % number for number in range(start, stop)]


@contextmanager
def denied(
    admin: Any, name: str, operation: ACLOperation, kind: ResourceType = ResourceType.TOPIC
) -> Iterator[None]:
    """Take a right away from alice for a while."""
    rule = ACL(
        principal=f"User:{USER}",
        host="*",
        operation=operation,
        permission_type=ACLPermissionType.DENY,
        resource_pattern=ResourcePattern(kind, name),
    )
    admin.create_acls([rule])
    until(lambda: bool(admin.describe_acls(rule)[0]))
    try:
        yield
    finally:
        admin.delete_acls([rule])
        until(lambda: not admin.describe_acls(rule)[0])


def alice(broker: ApacheKafka, mechanism: str = "SCRAM-SHA-512", **changes: str) -> Security:
    """The user with a password."""
    login = {"username": USER, "password": PASSWORD, "cafile": broker.cafile, **changes}
    return Security(mechanism=mechanism, **login)
