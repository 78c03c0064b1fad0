"""Outputs that will never take what they are sent: the daemon ends soon, and says which and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.admin import ConfigResource, ConfigResourceType

from streamlearn.daemon.process.exits import Exit
from tests.broker.conftest import write
from tests.broker.daemons import lines
from tests.support.streams import event

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.daemons import Daemons


PREDICTIONS = '\n[predictions]\ntopic = "{}"\nlearner = "sparse"\n'
LIMIT = {"max.message.bytes": "120"}


def reason(daemons: Daemons) -> str:
    """Why it has stopped."""
    return str(lines(daemons.log_text())[-1]["reason"])


def test_an_output_that_is_deleted_or_shrinks_its_limit(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer, admin: Any
) -> None:
    topic, gone, less = make_topic(), make_topic(), make_topic()
    write(producer, topic, [event(0, i) for i in range(500)])
    both = {
        name: make_daemons(topic, name, outputs=PREDICTIONS.format(name)) for name in (gone, less)
    }
    processes = {name: daemons.start() for name, daemons in both.items()}
    for daemons in both.values():
        daemons.wait_for(lambda: daemons.records() == 500)  # noqa: B023
    admin.delete_topics([gone])
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, less, LIMIT)])
    write(producer, topic, [event(0, i) for i in range(500, 5000)])
    for name, code in ((less, Exit.SOURCE), (gone, Exit.NOT_FOUND)):
        # of the 300 s for which no checkpoint might be written
        assert processes[name].wait(60) == code, both[name].log_text()[-3000:]
        assert name in reason(both[name])


def test_an_output_with_a_limit_below_the_first_record(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    topic, tiny = make_topic(), make_topic(max_message_bytes="120")
    write(producer, topic, [b'{"click":true,"x":1.0}'])
    daemons = make_daemons(topic, outputs=PREDICTIONS.format(tiny))
    assert daemons.run() == Exit.SOURCE, daemons.log_text()[-3000:]
    assert tiny in reason(daemons)
    assert "120" in reason(daemons)
    assert f"{topic}:0:0" in reason(daemons)
