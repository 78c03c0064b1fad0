"""Passwords, certificates and tokens; and the true reason when no broker lets us in."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from kafka.admin import (
    ACLOperation,
    ResourceType,
)

from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SourceDeniedError,
    SourceError,
    SourceUnreachableError,
)
from streamlearn.kafka import Connection, Fencing, KafkaSource, Security
from streamlearn.kafka.confluent import settings as rdkafka
from streamlearn.kafka.kafka_python import settings as pure
from tests.broker import tokens
from tests.broker.apache_kafka import PASSWORD, USER, ApacheKafka, free_port
from tests.broker.conftest import MakeTopic, alice, all_of, denied, numbered, values, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Producer

    from streamlearn.kafka.connection import Client

FASTEST = 15.0  # seconds within which the reason must be told


def token() -> tuple[str, float]:
    """Return a token, such as a broker for tests accepts."""
    return tokens.unsigned(600)


def no_token() -> str:
    """Fail."""
    raise OSError("the identity provider is away")


def round_trip(connection: Connection, topic: str, producer: Producer) -> None:
    write(producer, topic, numbered(0, 20))
    sink = connection.sink(topic)
    sink.send(b"mine", key=b"key")
    sink.flush(10)
    sink.close()
    source = KafkaSource(connection, topics=[topic], group_id="ours")
    source.open({}, None)
    got = all_of(source)
    source.close()
    assert values(got) == [*numbered(0, 20), b"mine"]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_password_over_tls(
    own_broker: ApacheKafka,
    client: Client,
    mechanism: str,
    make_topic: MakeTopic,
    producer: Producer,
) -> None:
    security = alice(own_broker, mechanism)
    connection = Connection(bootstrap=own_broker.secure, client=client, security=security)
    assert PASSWORD not in repr(connection)
    round_trip(connection, make_topic(), producer)


def test_certificate(
    own_broker: ApacheKafka, client: Client, make_topic: MakeTopic, producer: Producer
) -> None:
    security = Security(
        cafile=own_broker.cafile, certfile=own_broker.certfile, keyfile=own_broker.keyfile
    )
    connection = Connection(bootstrap=own_broker.tls, client=client, security=security)
    round_trip(connection, make_topic(), producer)


def test_token_of_a_provider(
    own_broker: ApacheKafka, client: Client, make_topic: MakeTopic, producer: Producer
) -> None:
    security = Security(
        mechanism="OAUTHBEARER", cafile=own_broker.cafile, token_provider=f"{__name__}:token"
    )
    connection = Connection(bootstrap=own_broker.secure, client=client, security=security)
    round_trip(connection, make_topic(), producer)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a first answer than is the rule."""
    monkeypatch.setattr(pure, "ATTEMPTS", (0.5, 1.5))
    monkeypatch.setattr(rdkafka, "FIRST_SECONDS", 2.0)


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def failure(connection: Connection) -> SourceError:
    """Open a source that can't be opened, in time."""
    source = KafkaSource(connection, topics=["any"])
    start = time.monotonic()
    with pytest.raises(SourceError) as caught:
        source.open({}, None)
    assert time.monotonic() - start < FASTEST  # a promise, with room: it takes 1 to 8 s
    return caught.value


def test_wrong_password(own_broker: ApacheKafka, client: Client) -> None:
    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        security = alice(own_broker, mechanism, password="wrong")  # noqa: S106
        error = failure(Connection(bootstrap=own_broker.secure, client=client, security=security))
        assert isinstance(error, SourceDeniedError)
        assert own_broker.secure in str(error)
        assert "uthentication failed" in str(error)
        assert "password" in str(error)
        assert "wrong" not in str(error)


@pytest.mark.usefixtures("hasty")
def test_unreachable_broker(client: Client) -> None:
    nowhere = failure(Connection(bootstrap=f"127.0.0.1:{free_port()}", client=client))
    assert isinstance(nowhere, SourceUnreachableError)
    assert "check that the broker is running" in str(nowhere)


@pytest.mark.usefixtures("hasty")
def test_port_without_kafka(client: Client, deaf: int) -> None:
    nobody = failure(Connection(bootstrap="no-such-host.invalid:9092", client=client))
    assert isinstance(nobody, SourceUnreachableError)
    assert "check the host name" in str(nobody)
    silent = failure(Connection(bootstrap=f"127.0.0.1:{deaf}", client=client))
    assert isinstance(silent, SourceUnreachableError)


@pytest.mark.usefixtures("hasty")
def test_wrong_kind_of_port(client: Client, own_broker: ApacheKafka) -> None:
    plain = failure(Connection(bootstrap=own_broker.secure, client=client))
    assert "security.protocol" in str(plain)
    security = Security(protocol="SSL", cafile=own_broker.cafile)
    tls = failure(Connection(bootstrap=own_broker.bootstrap, client=client, security=security))
    assert isinstance(tls, SourceDeniedError)
    assert "security.protocol" in str(tls)


@pytest.mark.usefixtures("hasty")
def test_certificates_that_are_not_trusted(client: Client, own_broker: ApacheKafka) -> None:
    unknown = failure(
        Connection(bootstrap=own_broker.tls, client=client, security=Security(protocol="SSL"))
    )
    assert isinstance(unknown, SourceDeniedError)
    assert "security.cafile" in str(unknown)
    security = Security(cafile=own_broker.cafile)
    ours = failure(Connection(bootstrap=own_broker.tls, client=client, security=security))
    assert isinstance(ours, SourceDeniedError)
    assert "security.certfile" in str(ours)


def test_token_provider_that_fails(client: Client, own_broker: ApacheKafka) -> None:
    security = Security(
        mechanism="OAUTHBEARER", cafile=own_broker.cafile, token_provider=f"{__name__}:no_token"
    )
    error = failure(Connection(bootstrap=own_broker.secure, client=client, security=security))
    assert isinstance(error, SourceDeniedError)
    assert "OSError: the identity provider is away" in str(error)


def test_missing_rights(
    own_broker: ApacheKafka,
    client: Client,
    make_topic: MakeTopic,
    producer: Producer,
    admin: Any,
) -> None:
    security = alice(own_broker)
    connection = Connection(bootstrap=own_broker.secure, client=client, security=security)
    unreadable, unwritable = make_topic(), make_topic()
    write(producer, unreadable, numbered(0, 3))
    source = KafkaSource(connection, topics=[unreadable])
    with (
        denied(admin, unreadable, ACLOperation.READ),
        pytest.raises(SourceDeniedError, match=rf"{unreadable}.*user {USER}.*READ"),
    ):
        source.open({}, None)
    source.close()
    with (
        denied(admin, unwritable, ACLOperation.WRITE),
        pytest.raises(SinkError, match=rf"{unwritable}.*user {USER}.*WRITE"),
    ):
        connection.sink(unwritable)


def test_a_transactional_id_without_rights(
    own_broker: ApacheKafka, client: Client, make_topic: MakeTopic, admin: Any
) -> None:
    connection = Connection(
        bootstrap=own_broker.secure, client=client, security=alice(own_broker), client_id="group"
    )
    topic, fencing = make_topic(), Fencing("predictions", 60.0)
    sink = connection.sink(topic, fencing=fencing)
    name = fencing.id("group", topic)
    with (
        denied(admin, name, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        pytest.raises(SinkDeniedError, match=rf"{name}.*user {USER}.*WRITE.*prefix 'group-'"),
    ):
        sink.take_over(topic)
    sink.close()
