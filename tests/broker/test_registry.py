"""The daemon on a real broker, with records of Confluent's own serializers, and read by them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, json_format, message_factory

from streamlearn.daemon.process.exits import Exit
from streamlearn.stream.formats.protobuf_plan import message_named
from tests.broker.apache_kafka import Unavailable
from tests.broker.conftest import write
from tests.support.apicurio import Apicurio
from tests.support.missing import skip_unless_ci
from tests.support.schema_registry import FakeRegistry
from tests.support.serialized import serializer
from tests.support.streams import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic

Registry = FakeRegistry | Apicurio
OUTPUTS = """
[predictions]
topic = "{predictions}"
learner = "sparse"
format = "{kind}"

[dead_letters]
topic = "{letters}"
format = "{kind}"

[registry]
url = "{url}"
wait_seconds = 0
subjects = "{subjects}"
"""
FAULTS = {"avro": 503, "protobuf": 401}
NAMES = {"predictions": "Prediction", "letters": "DeadLetter"}


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_each_record_is_learned_once_whatever_the_registry_does(
    kind: str, make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic = make_topic(2)
    with FakeRegistry() as registry:
        before = serializer(kind, registry.url)
        for partition in range(2):
            values = [before(event(partition, i) or b"") for i in range(1000)]
            write(producer, topic, [*values], partition)
        table = f'[registry]\nurl = "{registry.url}"\nwait_seconds = 0\n'
        daemons = make_daemons(topic, outputs=table)
        options = ("--set", f"format.kind={kind}", "--until", "end")
        assert daemons.run(*options) == Exit.OK, daemons.log_text()
        after = serializer(kind, registry.url, "price")
        for partition in range(2):
            values = [after(event(partition, i) or b"") for i in range(1000, 2000)]
            write(producer, topic, [*values], partition)
        registry.fault = (FAULTS[kind], b"")
        assert daemons.run(*options) == Exit.REGISTRY, daemons.log_text()
        registry.fault = None
        assert daemons.run(*options) == Exit.OK, daemons.log_text()
        daemons.assert_learned_once(2, 2000)


@pytest.fixture(
    params=[FakeRegistry, pytest.param("apicurio", marks=pytest.mark.nightly)],
    ids=["minimal", "apicurio"],
)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    """A registry: of tests, and a real one."""
    try:
        made: AbstractContextManager[Registry] = (
            Apicurio(tmp_path / "registry.log") if request.param == "apicurio" else FakeRegistry()
        )
    except Unavailable as reason:
        skip_unless_ci(reason)
    with made as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "subjects", "client"),
    [("avro", "topic-record", "confluent"), ("protobuf", "topic", "kafka-python")],
)
def test_outputs_are_read_by_confluents_deserializers(
    kind: str,
    subjects: str,
    client: str,
    registry: Registry,
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    bootstrap: str,
) -> None:
    topic, predictions, letters = make_topic(), make_topic(), make_topic()
    to_bytes = serializer("avro", registry.url)
    values = [to_bytes(event(0, i) or b"") for i in range(300)]
    values[100], values[200] = values[100][:-3], b"\0\0\0\x7f\xff"  # cut, and of no schema
    write(producer, topic, [*values])
    topics = {"predictions": predictions, "letters": letters}
    table = OUTPUTS.format(kind=kind, url=registry.url, subjects=subjects, **topics)
    daemons = make_any_daemons(topic, outputs=table, client=client)
    assert daemons.run("--set", "format.kind=avro", "--until", "end") == Exit.OK, daemons.log_text()
    registered = SchemaRegistryClient({"url": registry.url})
    found = {}
    for name, one in topics.items():
        record = f"streamlearn.{NAMES[name]}"
        subject = f"{one}-value" if subjects == "topic" else f"{one}-{record}"
        text = registered.get_latest_version(subject).schema.schema_str
        found[name] = read_all(bootstrap, one, deserializer(kind, registered, str(text), record))
    assert len(found["predictions"]) == 298
    last = found["predictions"][-1]
    assert last["id"] == "0-299"
    assert last["learner"] == "sparse"
    assert int(last["step"]) > 250
    assert 0.0 <= last["probability"] <= 1.0
    assert [
        (int(one["offset"]), one["code"], one.get("field"), one["topic"])
        for one in found["letters"]
    ] == [(100, "value", "w", topic), (200, "schema", None, topic)]


def deserializer(kind: str, registered: Any, text: str, record: str) -> Callable[[bytes, Any], Any]:
    """Confluent's, which gets the schema from the registry; messages are of the registered file."""
    if kind == "avro":
        avro: Callable[[bytes, Any], Any] = AvroDeserializer(registered)
        return avro
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    message = message_factory.GetMessageClass(message_named([file], record))
    read = ProtobufDeserializer(message, {"use.deprecated.format": False})
    return lambda value, context: json_format.MessageToDict(
        read(value, context), preserving_proto_field_name=True
    )


def read_all(bootstrap: str, topic: str, deserialize: Any) -> list[dict[str, Any]]:
    """Return what a topic has."""
    context = SerializationContext(topic, MessageField.VALUE)
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(20.0)) is not None and message.error() is None:
        found.append(deserialize(message.value(), context))
    consumer.close()
    return found
