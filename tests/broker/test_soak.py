"""A soak: a daemon at half its speed, with a random fault at regular intervals.

`STREAMLEARN_SOAK_SECONDS` sets how long it takes for each client library, 3 minutes by default. An
hour:

    STREAMLEARN_SOAK_SECONDS=3600 pytest -m nightly -s tests/broker/test_soak.py

That is up to 180 million records, some 15 GB of disk and an hour more to compare the models with
the library's. The seed and each fault are printed; `STREAMLEARN_SOAK_SEED` repeats a sequence of
faults.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streamlearn.daemon.process.exits import Exit
from streamlearn.kafka import KafkaSource
from tests.broker.daemons import Daemons, lines
from tests.support.streams import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlearn.kafka import Connection
    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.processes import Process


DURATION = float(os.environ.get("STREAMLEARN_SOAK_SECONDS", "180"))
INTERVAL = min(60.0, DURATION / 10.0)  # seconds between faults
SEED = int(os.environ.get("STREAMLEARN_SOAK_SEED", str(random.SystemRandom().randrange(1 << 30))))
PERIOD = 10_000  # records, after which they repeat: making them up would take longer than learning
GARBAGE = 0.005
STUCK_SECONDS = 60.0  # that the producer's buffer stays full
BACKLOG = 200_000  # records that a daemon is timed with
FASTEST = 50_000  # records a second that one process writes, and the library learns afterwards
OUTPUTS = """
[predictions]
topic = "{}"
learner = "sparse"

[dead_letters]
topic = "{}"
"""


class Feeder:
    """Writes the stream from a thread, at a rate, whether the broker is there or not."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.producer = self.connected()
        self.topic = topic
        self.records = [event(0, offset, garbage=GARBAGE) for offset in range(PERIOD)]
        self.written = 0
        self.ended = threading.Event()

    def connected(self) -> Producer:
        """Return a producer."""
        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": 20, "compression.type": "lz4"}
        return Producer({**settings, "enable.idempotence": True})

    def write(self, until: int) -> None:
        """Hand over the records before this offset."""
        full_since = None
        while self.written < until:
            try:
                self.producer.produce(self.topic, self.records[self.written % PERIOD], partition=0)
                self.written += 1
                full_since = None
            except BufferError:
                full_since = full_since or time.monotonic()
                if time.monotonic() - full_since > STUCK_SECONDS:
                    self.resume()
                self.producer.poll(0.05)
        self.producer.poll(0)

    def resume(self) -> None:
        """Replace a producer of librdkafka that a broker's restart has stopped for good."""
        self.producer.purge()
        self.producer = self.connected()
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "soak"})
        end = consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=30)
        consumer.close()
        assert end is not None
        self.written = end[1]
        report(f"the producer of the events was replaced at {self.written:,}")

    def start(self, rate: float) -> None:
        """Write so many records a second from now on."""
        self.thread = threading.Thread(target=self.run, args=(rate,), daemon=True)
        self.thread.start()

    def run(self, rate: float) -> None:
        """Write until the end."""
        before, begun = self.written, time.monotonic()
        while not self.ended.wait(0.02):
            self.write(before + int(rate * (time.monotonic() - begun)))

    def end(self) -> int:
        """End; how many records there are."""
        self.ended.set()
        self.thread.join()
        assert self.producer.flush(60) == 0
        return self.written


class Soak:
    """Daemons of which one learns, the faults that they meet, and the memory that they take."""

    def __init__(self, daemons: Daemons, broker: ApacheKafka) -> None:
        self.daemons = daemons
        self.broker = broker
        self.owner = daemons.start()
        self.resident: list[int] = []  # kB, twice a second

    def watch(self, seconds: float) -> None:
        """Let it learn for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.owner.poll() is None, self.daemons.log_text()[-3000:]
            self.resident.append(resident(self.owner))
            time.sleep(0.5)

    def kill(self) -> None:
        """Kill the owner, and start another."""
        self.owner.kill()
        assert self.owner.wait(20) == -signal.SIGKILL
        self.owner = self.daemons.start()

    def freeze(self) -> None:
        """Freeze the owner until a standby has taken over."""
        standby = self.daemons.start()
        epoch = self.epoch()
        self.owner.send_signal(signal.SIGSTOP)
        self.daemons.wait_for(lambda: self.epoch() > epoch)
        time.sleep(1.0)
        self.owner.send_signal(signal.SIGCONT)
        assert self.owner.wait(20) == Exit.FENCED, self.daemons.log_text()[-3000:]
        self.owner = standby

    def restart_broker(self) -> None:
        """Restart the broker."""
        self.broker.stop()
        self.broker.start()

    def catch_up(self, total: int) -> None:
        """Let it learn all records, as long as it makes progress."""
        while (learned := self.daemons.records()) < total:
            self.daemons.wait_for(lambda: self.daemons.records() > learned)

    def epoch(self) -> int:
        """The newest epoch in which there is learning."""
        return max(
            (
                line["epoch"]
                for line in lines(self.daemons.log_text())
                if line["event"] == "learning"
            ),
            default=0,
        )


def resident(process: Process) -> int:
    """How much memory a process has, in kB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def speed(daemons: Daemons) -> float:
    """How many records a second a daemon learns from a backlog."""
    assert daemons.run("--until", "end") == Exit.OK, daemons.log_text()[-3000:]
    marks = {line["event"]: line["time"] for line in lines(daemons.log_text())}
    began, ended = (
        time.mktime(time.strptime(marks[name][:19], "%Y-%m-%dT%H:%M:%S"))
        + float(marks[name][19:23])
        for name in ("learning", "stopped")
    )
    return daemons.records() / (ended - began)


def places(connection: Connection, topic: str, name: str) -> Iterator[int]:
    """The offsets that the records of an output are about."""
    source = KafkaSource(connection, topics=[topic])
    source.open({}, None)
    while not source.ended():
        for records in source.poll(0.25):
            for headers in records.headers or ():
                yield int(dict(headers)[name] or b"")
    source.close()


@pytest.mark.nightly
@pytest.mark.timeout(3.0 * DURATION + 1200.0)
def test_faults_at_half_speed_leave_no_trace(
    make_daemons: MakeDaemons,
    own_broker: ApacheKafka,
    make_topic: MakeTopic,
    connection: Connection,
) -> None:
    topic, output, dead = (make_topic(compression_type="lz4") for _ in range(3))
    outputs = OUTPUTS.format(output, dead)
    feeder = Feeder(own_broker.bootstrap, topic)
    feeder.write(BACKLOG)
    assert feeder.producer.flush(60) == 0
    alone = make_daemons(
        topic, "alone", outputs=OUTPUTS.format(make_topic(), make_topic()), batch=5000
    )
    rate = min(speed(alone) / 2.0, FASTEST)
    soak = Soak(make_daemons(topic, outputs=outputs, batch=5000, every=100_000), own_broker)
    feeder.start(rate)
    draw, began = random.Random(SEED), time.monotonic()
    faults: list[Callable[[], None]] = []
    report(f"{connection.client}: {rate:,.0f} events/s, seed {SEED}")
    while (passed := time.monotonic() - began) < DURATION - INTERVAL / 2.0:
        soak.watch(INTERVAL * draw.uniform(0.5, 1.0))
        if not faults:  # each kind as often as the others, so that both halves have all
            faults = draw.sample([soak.kill, soak.freeze, soak.restart_broker], 3)
        fault = faults.pop()
        state = f"{soak.daemons.records():,} learned, {soak.resident[-1] >> 10} MB"
        report(f"{passed:6.0f} s, {state}: {fault.__name__}")
        fault()
    soak.watch(INTERVAL / 2.0)
    total = feeder.end()
    soak.catch_up(total)
    soak.owner.terminate()
    assert soak.owner.wait(20) == Exit.OK, soak.daemons.log_text()[-3000:]
    counts = soak.daemons.assert_learned_once(1, total, GARBAGE, PERIOD)["counts"]

    predicted, refused = bytearray(total), bytearray(total)
    for offset in places(connection, output, "offset"):
        predicted[offset] = 1
    for offset in places(connection, dead, "streamlearn.offset"):
        refused[offset] = 1
    assert sum(predicted) == counts["events"]
    assert sum(refused) == counts["invalid"]
    assert not any(map(int.__and__, predicted, refused))

    # A new process takes little, and one that catches up after a fault takes what it may fetch
    # ahead: what must not grow is the most that any takes.
    half = len(soak.resident) // 2
    early, late = max(soak.resident[:half]), max(soak.resident[half:])
    report(f"{total:,} learned; at most {early >> 10} MB in one half, {late >> 10} in the other")
    assert late <= 1.1 * early


def report(line: str) -> None:
    """Tell how it goes, with -s or if it fails."""
    print(line, flush=True)  # noqa: T201
