"""Compare the daemon with a bare consumer loop, on a real broker.

python -m benchmarks.kafka [--events N] [--rounds N] [--client NAME]

A bare loop polls with the same client library and decodes with msgspec into untyped objects. With
predictions, it also sends as many bytes as the daemon. `STREAMLEARN_BOOTSTRAP` names a broker;
otherwise one is started, which needs Java and Maven. The daemon runs `config/bench.toml`, and once
the same on the same events in Avro, with the schema of a registry.

The CPU time per event covers all threads of the process. On a busy machine it is more reliable
than the rate.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import confluent_kafka
import kafka
import msgspec

from benchmarks.report import table
from streamlearn.stream.formats.writers import AvroWriter
from tests.broker.apache_kafka import ApacheKafka
from tests.support.schema_registry import FakeRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = ("kafka-python", "confluent")
SPARSE = '[[learner]]\nname = "{name}"\nmodel = "DualAveragingClassifier(l1={l1}, gamma=100.0)"\n'
UNFENCED = "predictions, without transactions"
AVRO = "one, Avro"
LEARNERS = {
    "one": SPARSE.format(name="sparse", l1="1e-4"),
    "default": '[[learner]]\nname = "default"\n',
    "four": "".join(SPARSE.format(name=f"s{i}", l1=f"{i}e-5") for i in (1, 2, 5, 10)),
}
REQUIRED = {
    ("kafka-python", "one"): 0.8,
    ("kafka-python", "default"): 0.7,
    ("kafka-python", "four"): 0.6,
    ("kafka-python", "predictions"): 0.8,
    ("confluent", "one"): 0.5,
    ("confluent", "four"): 0.3,
    ("confluent", "predictions"): 0.8,
}


class Seconds(NamedTuple):
    """Wall time and CPU time of one run."""

    wall: float
    cpu: float


class Clock:
    """A clock that starts at the first record."""

    def __init__(self) -> None:
        self.begun: Seconds | None = None

    def begin(self) -> None:
        """Start, unless already started."""
        self.begun = self.begun or Seconds(time.perf_counter(), time.process_time())

    def elapsed(self) -> Seconds:
        """Return the time since the start."""
        wall, cpu = self.begun or Seconds(time.perf_counter(), time.process_time())
        return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def event(draw: random.Random) -> bytes:
    """Return a click of 12 features, 150 to 200 bytes."""
    names = {f"f{i}": f"v{draw.randrange(10**3)}" for i in range(8)}
    numbers = {f"n{i}": round(draw.random(), 3) for i in range(4)}
    return json.dumps(
        {**names, **numbers, "clicked": draw.random() < 0.3}, separators=(",", ":")
    ).encode()


def avro_writer(registry: FakeRegistry, topic: str) -> AvroWriter:
    """Return what writes the events in Avro, with a registered schema."""
    types = {str: "string", float: "double", bool: "boolean"}
    one = json.loads(event(random.Random(0)))
    fields = [{"name": name, "type": types[type(value)]} for name, value in one.items()]
    writer = AvroWriter({"type": "record", "name": "Click", "fields": fields})
    writer.use_id(registry.add(f"{topic}-value", writer.schema))
    return writer


def fill(bootstrap: str, topic: str, events: int, writer: AvroWriter | None = None) -> None:
    """Write the events to a topic of one partition, in JSON or by a writer."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    for name in (topic, f"{topic}-dead-letters", f"{topic}-predictions"):
        about = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({name: about}, wait_for_metadata=True)
    admin.close()
    draw = random.Random(0)
    some = [event(draw) for _ in range(min(events, 50_000))]
    if writer is not None:
        some = [writer.write(json.loads(one)) for one in some]
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for i in range(events):
        while True:
            try:
                producer.produce(topic, some[i % len(some)], partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def pure_loop(bootstrap: str, topic: str, events: int, output: str | None) -> Seconds:
    """Poll and decode (and send) with kafka-python; return the seconds from the first record."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_poll_records=5000,
        max_partition_fetch_bytes=4 << 20,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, batch_size=1 << 16)
    decode = msgspec.json.Decoder().decode
    seen, start = 0, Clock()
    while seen < events:
        for records in consumer.poll(250).values():
            start.begin()
            for number, record in enumerate(records, seen):
                decode(record.value)
                if output is not None:
                    value, headers = prediction(number)
                    producer.send(output, value, headers=headers)
            seen += len(records)
    producer.flush()
    seconds = start.elapsed()
    consumer.close()
    producer.close()
    return seconds


def fast_loop(bootstrap: str, topic: str, events: int, output: str | None) -> Seconds:
    """Poll and decode (and send) with confluent-kafka; return the seconds from the first record."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bare", "fetch.queue.backoff.ms": 5}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    decode = msgspec.json.Decoder().decode
    seen, start = 0, Clock()
    while seen < events:
        messages = consumer.consume(5000, 0.25)
        start.begin()
        for number, message in enumerate(messages, seen):
            decode(message.value() or b"null")
            if output is not None:
                value, headers = prediction(number)
                producer.produce(output, value, headers=headers)
        producer.poll(0)
        seen += len(messages)
    producer.flush()
    seconds = start.elapsed()
    consumer.close()
    return seconds


def prediction(number: int) -> tuple[bytes, list[tuple[str, str | bytes | None]]]:
    """Return as many bytes as the daemon sends for a prediction."""
    headers: list[tuple[str, str | bytes | None]] = [
        ("topic", b"bench"),
        ("partition", b"0"),
        ("offset", b"%d" % number),
        ("epoch", b"1"),
        ("schema", b"1"),
    ]
    return (
        b'{"id":null,"prediction":false,"probability":0.28314,"learner":"sparse","step":%d}'
        % number,
        headers,
    )


def daemon(
    bootstrap: str,
    topic: str,
    client: str,
    learners: str,
    *,
    output: str,
    work: Path,
    registry: str | None = None,
) -> Seconds:
    """Run the daemon over the topic; return the seconds from its first record to its last."""
    text = (ROOT / "config" / "bench.toml").read_text(encoding="utf-8")
    text = text.replace('"bench', f'"{topic}')
    head, _, rest = text.partition("[[learner]]")
    tail = rest[rest.index("[dead_letters]") :]
    tables = LEARNERS[learners]
    if output == UNFENCED:
        tail = tail.replace("[run]", "transactions = false\n\n[run]")
    if output:
        tables += f'[predictions]\ntopic = "{topic}-predictions"\nlearner = "sparse"\n'
    if registry is not None:
        head = head.replace('kind = "json"', 'kind = "avro"')
        tables += f'[registry]\nurl = "{registry}"\n'
    path = work / "bench.toml"
    path.write_text(f"{head}{tables}{tail}\n[telemetry]\nport = 0\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=work) as state:
        environment = {
            **os.environ,
            "KAFKA_BOOTSTRAP": bootstrap,
            "BENCH_CLIENT": client,
            "STREAMLEARN_STATE": state,
        }
        command = [sys.executable, "-m", "benchmarks.kafka", "--daemon", str(path)]
        done = subprocess.run(  # noqa: S603 -- ourselves
            command, env=environment, check=False, capture_output=True, text=True, cwd=ROOT
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    wall, cpu = done.stdout.split()[-2:]
    return Seconds(float(wall), float(cpu))


def timed_daemon(path: str) -> None:
    """Run the daemon in this process, and print the seconds that it polled and learned."""
    from streamlearn.cli.main import main  # noqa: PLC0415 -- only in the process that is the daemon
    from streamlearn.kafka import KafkaSource  # noqa: PLC0415

    clock, last = Clock(), [Seconds(0.0, 0.0)]
    poll = KafkaSource.poll

    def marking(self: KafkaSource, seconds: float) -> Any:
        came = poll(self, seconds)
        if any(records.values for records in came):
            clock.begin()
        if clock.begun:
            last[0] = clock.elapsed()
        return came

    KafkaSource.poll = marking  # type: ignore[method-assign]
    code = main(["run", path])
    print(*last[0])
    sys.exit(code)


def measure(bootstrap: str, events: int, rounds: int, clients: tuple[str, ...]) -> str:
    """Run every side in alternation, `rounds` times; return a table of medians."""
    rows = []
    with tempfile.TemporaryDirectory() as place, FakeRegistry() as registry:
        work = Path(place)
        topic = f"bench-{os.getpid()}"
        fill(bootstrap, topic, events)
        fill(bootstrap, f"{topic}-avro", events, avro_writer(registry, f"{topic}-avro"))
        for client in clients:
            loop = pure_loop if client == "kafka-python" else fast_loop
            sides: dict[str, Callable[[], Seconds]] = {
                "bare": lambda loop=loop: loop(bootstrap, topic, events, None),  # type: ignore[misc]
                "bare, sending": lambda loop=loop: loop(  # type: ignore[misc]
                    bootstrap, topic, events, f"{topic}-predictions"
                ),
            }
            for name in (*LEARNERS, "predictions", UNFENCED):
                sides[name] = lambda name=name, client=client: daemon(  # type: ignore[misc]
                    bootstrap,
                    topic,
                    client,
                    name if name in LEARNERS else "one",
                    output="" if name in LEARNERS else name,
                    work=work,
                )
            sides[AVRO] = lambda client=client: daemon(  # type: ignore[misc]
                bootstrap,
                f"{topic}-avro",
                client,
                "one",
                output="",
                work=work,
                registry=registry.url,
            )
            seconds: dict[str, list[Seconds]] = {name: [] for name in sides}
            for _ in range(rounds):
                for name, side in sides.items():
                    seconds[name].append(side())
                    print(
                        client, name, f"{events / seconds[name][-1].wall:,.0f}/s", file=sys.stderr
                    )
            for name, taken in seconds.items():
                base = seconds["bare, sending" if name.startswith("predictions") else "bare"]
                share = median(b.wall / a.wall for a, b in zip(taken, base, strict=True))
                required = REQUIRED.get((client, name))
                rows.append(
                    [
                        client,
                        name,
                        f"{events / median(one.wall for one in taken):,.0f}",
                        f"{1e6 * median(one.cpu for one in taken) / events:.2f}",
                        f"{share:.2f}",
                        "" if required is None else f"{required:.2f}",
                    ]
                )
    head = ["client", "run", "events/s", "CPU us/event", "rate, bare loop = 1", "required"]
    return table(head, rows)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", choices=CLIENTS, action="append")
    parser.add_argument("--daemon", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.daemon:
        timed_daemon(options.daemon)
    with ExitStack() as stack:
        bootstrap = os.environ.get("STREAMLEARN_BOOTSTRAP")
        if not bootstrap:
            place = stack.enter_context(tempfile.TemporaryDirectory())
            bootstrap = stack.enter_context(ApacheKafka(Path(place))).bootstrap
        clients = tuple(options.client or CLIENTS)
        print(measure(bootstrap, options.events, options.rounds, clients))


if __name__ == "__main__":
    main()
