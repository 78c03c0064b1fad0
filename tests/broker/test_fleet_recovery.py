"""How long workers, and an owner with a standby, take to recover; printed, because time varies.

pytest -n 0 -s -m nightly tests/broker/test_fleet_recovery.py
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.process.exits import Exit
from tests.broker.conftest import write
from tests.broker.test_workers import (
    SETTINGS,
    assert_learned_once,
    prepared,
    worker_processes,
)
from tests.support.streams import event

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from tests.broker.conftest import MakeDaemons, MakeTopic

PARTITIONS, BURST, TIMES = 3, 1000, 5
SIGNALS = {"killed worker": signal.SIGKILL, "frozen worker": signal.SIGSTOP}


def thaw(pids: list[int]) -> None:
    """Let processes continue that were stopped, and may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["none", "killed worker", "frozen worker", "killed owner"])
def test_records_are_learned_after_a_fault(
    make_any_daemons: MakeDaemons,
    make_topic: MakeTopic,
    producer: Producer,
    ray: Any,
    fault: str,
) -> None:
    draw = random.Random(1)
    options = [*SETTINGS, "--ray", ray.get_runtime_context().gcs_address]
    topic = make_topic(PARTITIONS)
    daemons = prepared(make_any_daemons, topic, client="confluent", every=500)
    processes = [daemons.start(*options)]
    written, took, frozen = 0, [], []

    def burst() -> None:
        nonlocal written
        for partition in range(PARTITIONS):
            values = [event(partition, i) for i in range(written, written + BURST)]
            write(producer, topic, values, partition)
        written += BURST

    def all_learned() -> bool:
        return daemons.records() == PARTITIONS * written

    def standby(number: int) -> bool:
        return daemons.log_text().count('"standby"') > number

    burst()
    daemons.wait_for(all_learned, 60.0)
    for number in range(TIMES):
        daemons.wait_for(lambda: daemons.log_text().count("workers learn") > 0, 60.0)
        if fault == "killed owner":
            processes.append(daemons.start(*options))  # the standby
            daemons.wait_for(partial(standby, number), 60.0)
        time.sleep(1.0)
        victims = [pid for pid in worker_processes() if pid not in frozen]
        burst()
        time.sleep(draw.random() * 0.3)
        began = time.monotonic()
        if fault == "killed owner":
            processes.pop(0).send_signal(signal.SIGKILL)
        elif fault in SIGNALS:
            victim = draw.choice(victims)
            frozen += [victim] if fault == "frozen worker" else []
            os.kill(victim, SIGNALS[fault])
        daemons.wait_for(all_learned, 60.0)
        took.append(time.monotonic() - began)
        thaw(frozen)
    print(  # noqa: T201 -- what the test is for
        f"\n{fault}: median {statistics.median(took):.1f} s, most {max(took):.1f} s"
    )
    processes[-1].terminate()
    assert processes[-1].wait(20) in {Exit.OK, -signal.SIGTERM}
    assert_learned_once(daemons, PARTITIONS, written)
