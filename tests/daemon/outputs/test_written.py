"""Predictions and dead letters in Avro and Protobuf, as Confluent's own deserializers read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import message_factory

from streamlearn import config
from streamlearn.core.invalid_record import InvalidRecord
from streamlearn.daemon import build
from streamlearn.daemon.outputs import written
from streamlearn.daemon.outputs.dead_letter_reader import read_records
from streamlearn.daemon.outputs.dead_letters import DeadLetterPublisher
from streamlearn.daemon.outputs.predictions import PredictionPublisher
from streamlearn.daemon.process.log import Log
from streamlearn.errors import RegistryError, SchemaError
from streamlearn.stream import Clicks, Partition, Records, Synthetic
from streamlearn.stream.formats.writers import AvroWriter
from streamlearn.stream.schema_registry import SchemaRegistry
from streamlearn.stream.sinks.sink import Sink
from tests.support.schema_registry import FakeRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Kind = Literal["avro", "protobuf"]
KINDS: list[Kind] = ["avro", "protobuf"]
SETTINGS = """
[source]
kind = "kafka"
bootstrap = "localhost:1"
topics = ["clicks"]
[format]
label = "clicked"
id = "id"
[[learner]]
name = "default"
task = "{task}"
[predictions]
topic = "scores"
format = "{kind}"
[registry]
url = "{url}"
[checkpoint]
path = "{path}"
[regret]
enabled = false
[telemetry]
enabled = false
[run]
until = "end"
"""


class Sent(list[Any], Sink):
    """A sink that is a list."""

    def send(self, value: bytes | None, *, key: bytes | None = None, headers: Any = ()) -> None:
        self.append((value, key, headers))

    def flush(self, seconds: float) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with FakeRegistry() as registry:
        yield registry


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The sink of predictions of all daemons."""
    sent = Sent()
    monkeypatch.setattr(
        build, "sink", lambda output, *_, **__: None if output.topic is None else sent
    )
    return sent


def deserializer(kind: Kind, name: str, url: str, topic: str) -> Callable[[bytes], dict[str, Any]]:
    """What a consumer has."""
    client = SchemaRegistryClient({"url": url})
    context = SerializationContext(topic, MessageField.VALUE)
    if kind == "avro":
        of_avro = AvroDeserializer(client)
        return lambda value: {
            name: one for name, one in dict(of_avro(value, context)).items() if one is not None
        }
    found = message_factory.GetMessageClass(written.message(name))
    of_protobuf = ProtobufDeserializer(found, {"use.deprecated.format": False}, client)

    def read(value: bytes) -> dict[str, Any]:
        fields = {field.name: one for field, one in of_protobuf(value, context).ListFields()}
        label = [fields.pop(one) for one in written.CHOICES.values() if one in fields]
        found = {**fields, **({"prediction": label[0]} if label else {})}
        if name == "Prediction":
            found.setdefault("step", 0)
        if "probabilities" in found:
            found["probabilities"] = dict(found["probabilities"])
        return found

    return read


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", ["clicks", "spending", "spam"])
def test_predictions_are_those_in_json(
    kind: Kind, stream: str, server: FakeRegistry, outputs: Sent, tmp_path: Any
) -> None:
    task = "regression" if stream == "spending" else "classification"
    label = {"clicks": "clicked", "spending": "spent", "spam": "label"}[stream]
    found = {}
    for form in ("json", kind):
        text = SETTINGS.format(kind=form, url=server.url, path=tmp_path / form, task=task)
        text = text.replace('label = "clicked"', f'label = "{label}"')
        if form == "json":
            text = text.replace(f'[registry]\nurl = "{server.url}"\n', "")
        outputs.clear()
        loop = build.loop(config.parse(text), Log("json", "error"))
        loop.source = Synthetic(Clicks(stream, seed=2), events=300)
        assert loop.run() == 0
        found[form] = [value for value, _, _ in outputs]
    assert list(server.subjects) == ["scores-value"]
    read = deserializer(kind, "Prediction", server.url, "scores")
    for text, value in zip(found["json"], found[kind], strict=True):
        expected = {name: one for name, one in json.loads(text).items() if one is not None}
        assert read(value) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_dead_letters_have_the_record_inside(kind: Kind, server: FakeRegistry) -> None:
    writer = written.writer_of(kind, "DeadLetter")
    registry = SchemaRegistry(server.url)
    written.register(writer, registry, "dead", "topic")
    read = deserializer(kind, "DeadLetter", server.url, "dead")
    values = [b"\0\xff", None, b""]
    records = Records(Partition("clicks", 3), [17, 18, 20], values, 21, [b"k", None, b""])
    sent = Sent()
    DeadLetterPublisher(sent, 5, writer).publish(
        records,
        [
            InvalidRecord(0, "age", "value", "field 'age' is nan"),
            InvalidRecord(1, None, "syntax", "é"),
            InvalidRecord(2, None, "syntax", "empty"),
        ],
    )
    letters = [read(value) for value, _, _ in sent]
    assert [one.get("offset") for one in letters] == [17, 18, 20]
    assert {(one["topic"], one["partition"]) for one in letters} == {("clicks", 3)}
    assert [one.get("field") for one in letters] == ["age", None, None]
    assert [one["reason"] for one in letters] == ["field 'age' is nan", "é", "empty"]
    assert [one["code"] for one in letters] == ["value", "syntax", "syntax"]
    assert [one.get("value") for one in letters] == values
    # replay finds the records inside, and those that were sent as they are
    DeadLetterPublisher(sent, 5).publish(records, [InvalidRecord(0, None, "syntax", "raw")])
    topic = Records(
        Partition("dead"), range(4), [one[0] for one in sent], 4, headers=[one[2] for one in sent]
    )
    assert [one.value for one in read_records(topic)] == [*values, b"\0\xff"]
    assert all(one.undeliverable is None for one in read_records(topic))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("outputs")
def test_a_prediction_too_large_for_its_topic_is_cut(kind: Kind) -> None:
    writer = written.writer_of(kind, "Prediction")
    sent = Sent()
    publisher = PredictionPublisher(sent, writer=writer)
    publisher.max_bytes = 2000
    text = SETTINGS.format(kind="json", url="http://a", path="x", task="classification")
    text = text.replace('[registry]\nurl = "http://a"\n', "")
    pipeline = build.loop(config.parse(text), Log("json", "error")).pipeline
    pipeline.predictions = publisher
    values: list[bytes | None] = [
        json.dumps({"id": size * "i", "clicked": True}).encode() for size in (5, 3000)
    ]
    pipeline.process([Records(Partition("clicks"), [0, 1], values, 2, keys=[b"k", b"k"])])
    small, cut = sent
    assert writer.read(small[0])["id"] == "iiiii"
    assert writer.read(cut[0]).get("id") is None
    assert (small[1], cut[1]) == (b"k", None)
    assert dict(cut[2])["dropped"]


def test_subjects_and_registration(server: FakeRegistry) -> None:
    registry = SchemaRegistry(server.url)
    for strategy in ("topic", "record", "topic-record"):
        written.register(written.writer_of("avro", "Prediction"), registry, "scores", strategy)
    assert list(server.subjects) == [
        "scores-value",
        "streamlearn.Prediction",
        "scores-streamlearn.Prediction",
    ]
    assert len(server.schemas) == 1
    writer = written.writer_of("avro", "Prediction")
    written.register(writer, registry, "scores", "topic", allowed=False)
    assert writer.prefix == b"\0\0\0\0\1"
    with pytest.raises(RegistryError, match="other-value"):
        written.register(writer, registry, "other", "topic", allowed=False)
    server.fault = (409, b'{"error_code": 409, "message": "incompatible"}')
    with pytest.raises(RegistryError, match="incompatible"):
        written.register(writer, registry, "scores", "topic")


def test_a_value_of_another_schema_is_refused() -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]}
    for wrong in ({"n": "x"}, {}):
        with pytest.raises(SchemaError):
            AvroWriter(schema).write(wrong)
    with pytest.raises(SchemaError):
        written.writer_of("protobuf", "Prediction").write({"step": "many"})
