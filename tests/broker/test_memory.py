"""What is fetched ahead is bounded, over all partitions together, for both client libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.broker.conftest import MakeTopic, write

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from streamlearn.kafka import Connection

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 24
CLIENT = 24 << 20

# A slow reader, in a process of its own: what it holds more than after its first records, in bytes.
READER = """
import sys, time
from pathlib import Path
from streamlearn.kafka import Connection, KafkaSource
def resident():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(l for l in status.splitlines() if l.startswith("VmRSS")).split()[1])
bootstrap, client, topic, fetch = sys.argv[1:]
source = KafkaSource(Connection(bootstrap=bootstrap, client=client), topics=[topic],
                     fetch_bytes=int(fetch), batch=50)
before = resident()
source.open({}, None)
most = seen = 0
for _ in range(40):
    seen += sum(len(records.values) for records in source.poll(0.25))
    time.sleep(0.02)
    most = max(most, resident() - before)
source.close()
print(seen, most)
"""


@pytest.mark.parametrize(
    ("size", "records", "fetch"), [(16_000, 4000, 4 << 20), (60, 360_000, 16 << 20)]
)
def test_a_slow_reader_has_bounded_memory(
    connection: Connection,
    make_topic: MakeTopic,
    producer: Producer,
    size: int,
    records: int,
    fetch: int,
) -> None:
    topic = make_topic(PARTITIONS)
    blob = os.urandom(size)
    for partition in range(PARTITIONS):
        write(producer, topic, [blob] * (records // PARTITIONS), partition)
    read = [sys.executable, "-c", READER, connection.bootstrap, connection.client, topic]
    done = subprocess.run(
        [*read, str(fetch)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seen, most = map(int, done.stdout.split())
    assert seen >= 50
    # Buffers, their copies on the way, and a fixed share that the client itself takes.
    assert most < 2 * fetch + CLIENT, f"{most:,} bytes for {fetch:,}"
