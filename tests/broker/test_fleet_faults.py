"""Faults at random, one after the other: each record is learned once, whatever happens to anybody.

Workers die, freeze past their deadline and answer late, from a base that is gone; owners die
and are restarted, with other numbers of workers. At night, heads of Ray die, the broker is
away, and partitions are added, too.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from streamlearn.daemon.process.exits import Exit
from tests.broker.conftest import grow, write
from tests.broker.daemons import KILLED
from tests.broker.ray_cluster import ray_processes
from tests.broker.test_workers import SETTINGS, assert_learned_once, prepared
from tests.support.streams import event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.daemons import Daemons
    from tests.broker.ray_cluster import RayCluster

PARTITIONS = 3
BURST = 1000  # records of a partition between two faults
OFTEN = ("kill", "freeze", "owner", "resize")
RARE = ("head", "outage", "partition")  # one of each for ten others


class Run:
    """A daemon with workers, what it reads, and what happens to it."""

    def __init__(self, daemons: Daemons, bootstrap: str, topic: str, address: str) -> None:
        seed = random.SystemRandom().randrange(1 << 30)
        print("seed", seed)  # noqa: T201 -- shown if it fails
        self.draw = random.Random(seed)
        self.daemons, self.bootstrap, self.topic = daemons, bootstrap, topic
        self.address = address
        self.partitions, self.written = PARTITIONS, 0
        self.started = 0
        self.frozen: list[int] = []
        self.renew_producer()
        self.start()

    def renew_producer(self) -> None:
        """Use a producer that knows the topic, and has seen no outage."""
        self.producer = Producer(
            {"bootstrap.servers": self.bootstrap, "linger.ms": 5, "enable.idempotence": True}
        )

    def start(self) -> None:
        """Start an owner, with some workers."""
        count = self.draw.randint(2, 4)
        sizes = [
            f"--set=fleet.workers={count}",
            f"--set=fleet.min_workers={self.draw.choice([0, 1])}",
        ]
        self.process = self.daemons.start(*SETTINGS, "--ray", self.address, *sizes)
        self.started += 1

    def suffer(self, kinds: Sequence[str], **others: Any) -> None:
        """Let these faults happen, each while records are learned."""
        for kind in kinds:
            self.burst()
            self.daemons.wait_for(
                lambda: self.daemons.log_text().count("workers learn") == self.started
            )
            time.sleep(self.draw.random() * 0.5)
            getattr(self, kind)(**others)
            learned = self.written * self.partitions
            self.daemons.wait_for(lambda: self.daemons.records() == learned)  # noqa: B023
            for pid in self.frozen:  # it answers late
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def burst(self) -> None:
        """Write some records to each partition."""
        for partition in range(self.partitions):
            self.write(partition, self.written)
        self.written += BURST

    def write(self, partition: int, first: int, count: int = BURST) -> None:
        values = [event(partition, i) for i in range(first, first + count)]
        write(self.producer, self.topic, values, partition)

    def end(self) -> None:
        """End the daemon, and look at what it has learned."""
        self.process.terminate()
        assert self.process.wait(20) in {Exit.OK, -signal.SIGTERM}, self.daemons.log_text()[-2000:]
        assert_learned_once(self.daemons, self.partitions, self.written)

    # -- faults -----------------------------------------------------------------------------------

    def kill(self, **_: Any) -> None:
        """A worker dies."""
        self.signal_worker(signal.SIGKILL)

    def freeze(self, **_: Any) -> None:
        """A worker stops, and goes on when others have learned its records."""
        self.frozen += self.signal_worker(signal.SIGSTOP)

    def signal_worker(self, number: int) -> list[int]:
        token = self.daemons.environ["RAY_AUTH_TOKEN"]
        found = [
            pid for pid in ray_processes(b"ray::RemoteWorker", token) if pid not in self.frozen
        ]
        victims = self.draw.sample(found, min(1, len(found)))
        for pid in victims:
            os.kill(pid, number)
        return victims

    def owner(self, **_: Any) -> None:
        """The daemon dies, and is started again."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(20) in KILLED, self.daemons.log_text()
        self.start()

    def resize(self, **_: Any) -> None:
        """The daemon is ended, and started with other numbers of workers."""
        self.process.terminate()
        assert self.process.wait(30) == Exit.OK, self.daemons.log_text()[-2000:]
        self.start()

    def head(self, cluster: RayCluster, **_: Any) -> None:
        """Ray's head dies: the daemon ends with its code, and is started on a new cluster."""
        cluster.kill_head()
        assert self.process.wait(60) == Exit.SOURCE, self.daemons.log_text()[-2000:]
        cluster.stop()
        cluster.start()
        self.address = cluster.address
        self.start()

    def outage(self, broker: ApacheKafka, **_: Any) -> None:
        """The broker is away for a while."""
        broker.stop()
        time.sleep(1.0 + 4.0 * self.draw.random())
        broker.start()
        self.renew_producer()

    def partition(self, admin: Any, **_: Any) -> None:
        """The topic gets a partition, with as many records as the others."""
        self.partitions += 1
        grow(admin, self.topic, self.partitions)
        self.renew_producer()
        self.write(self.partitions - 1, 0, self.written)


def test_ten_faults(
    make_any_daemons: MakeDaemons, make_topic: MakeTopic, bootstrap: str, ray: Any
) -> None:
    topic = make_topic(PARTITIONS)
    daemons = prepared(make_any_daemons, topic, client="confluent", every=1000)
    run = Run(daemons, bootstrap, topic, ray.get_runtime_context().gcs_address)
    kinds = [*OFTEN, *OFTEN, "kill", "freeze"]
    run.draw.shuffle(kinds)
    run.suffer(kinds)
    run.end()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_hundred_faults_of_all_kinds(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    own_broker: ApacheKafka,
    admin: Any,
    ray_cluster: RayCluster,
) -> None:
    topic = make_topic(PARTITIONS)
    daemons = make_any_daemons(topic, client="confluent", every=1000)
    daemons.environ = ray_cluster.environ
    run = Run(daemons, own_broker.bootstrap, topic, ray_cluster.address)
    kinds = [*(20 * OFTEN), *(7 * RARE)][:100]
    run.draw.shuffle(kinds)
    run.suffer(kinds, cluster=ray_cluster, broker=own_broker, admin=admin)
    run.end()
