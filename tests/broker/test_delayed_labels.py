"""Late labels over two topics of a real broker: killed often, each pair is learned once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.daemon.process.exits import Exit
from tests.broker.conftest import write
from tests.broker.daemons import KILLED
from tests.daemon.test_delayed_labels import LENGTH, assert_learned_once
from tests.support.delayed_streams import CLICKS, HOLD, SHOWN, topics

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic


LABELS = f"""
[labels]
topic = "{{topic}}"
hold_events = {HOLD["hold_events"]}
hold_for = {HOLD["hold_for"]}
on_timeout = false
"""


def test_two_topics_and_delays_with_a_long_tail(
    make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer
) -> None:
    names = {make_topic(name=name): name for name in (SHOWN, CLICKS)}
    for topic, name in names.items():
        log = topics(LENGTH)[name]
        times = [1_000_000 + round(1000.0 * time) for time, _ in log]
        write(producer, topic, [value for _, value in log], times=times)
    shown, clicks = names
    daemons = make_daemons(shown, batch=50, every=100, outputs=LABELS.format(topic=clicks))
    options = ["--set", "source.order=time", "--set", "format.time=time"]
    for step in ("commit:1", "write:2", "flush:2", "rename:2"):
        assert daemons.run(*options, "--until", "end", fault=step) in KILLED, daemons.log_text()
    assert daemons.run(*options, "--until", "end") == Exit.OK, daemons.log_text()
    steps = assert_learned_once(daemons.models, names)
    assert steps["learn"] > 400
    assert steps["time out"] > 400
