"""A Ray cluster whose head dies: the daemon ends with its own code, and resumes on a new one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from streamlearn.daemon.process.exits import Exit
from tests.broker.daemons import fill
from tests.broker.test_workers import SETTINGS

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.ray_cluster import RayCluster


@pytest.mark.nightly
def test_the_daemon_ends_with_its_code_when_the_head_dies(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    ray_cluster: RayCluster,
) -> None:
    topic = make_topic(2)
    fill(producer, topic, 2, 1000)
    daemons = make_any_daemons(topic, client="confluent")
    daemons.environ = ray_cluster.environ
    process = daemons.start(*SETTINGS, "--ray", ray_cluster.address)
    daemons.wait_for(lambda: "workers learn" in daemons.log_text())
    daemons.wait_for(lambda: daemons.records() == 2000)
    ray_cluster.kill_head()
    died = time.monotonic()
    assert process.wait(50) == Exit.SOURCE, daemons.log_text()[-2000:]
    assert time.monotonic() - died < 30.0  # before Ray would end it
    assert daemons.records() == 2000
