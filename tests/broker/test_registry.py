"""The daemon on a real broker, with records of Confluent's own serializers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streamlearn.daemon.process.exits import Exit
from tests.broker.conftest import write
from tests.support.schema_registry import FakeRegistry
from tests.support.serialized import serializer
from tests.support.streams import event

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic


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
        registry.fault = (503, b"")
        assert daemons.run(*options) == Exit.REGISTRY, daemons.log_text()
        registry.fault = None
        assert daemons.run(*options) == Exit.OK, daemons.log_text()
        daemons.assert_learned_once(2, 2000)
