"""The loop of a service, on a real broker: `python -m benchmarks.serve_loop`, with wrk on the path.

What logging costs: the same server with an empty handler, without a log, and with one whose answers
wait for the brokers or do not, in alternating windows of one run. All else (the load, the broker's
Java) runs on other cores: it would cost a server its caches. And how long it takes from a label in
Kafka until an answer changes, with the default settings. The broker is started here, which needs
Java and Maven.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import numpy as np

from benchmarks.serve import SLOTS, WINDOWS, ask, cpu, event, load, process, publish, serve_empty
from streamlearn import config
from streamlearn.kafka import Connection
from streamlearn.serving.http import server
from streamlearn.serving.http.options import LogOptions, Options
from tests.broker.apache_kafka import ApacheKafka, free_port

LABELS = 12
CONNECTIONS = 64
CONFIG = """
[source]
kind = "kafka"
bootstrap = "{bootstrap}"
topics = ["impressions"]
client = "confluent"
[format]
label = "clicked"
id = "id"
[labels]
topic = "clicks"
[checkpoint]
path = "{path}/models"
[telemetry]
enabled = false
[serve]
port = {port}
[serve.log]
topic = "impressions"
"""


def serving(options: Options) -> Callable[[Any], int]:
    """Return what runs a server with these options."""
    return lambda listening: server.serve_process(options, listening)


def on_first_core(serve: Callable[[Any], int]) -> Callable[[Any], int]:
    """Return a server that has the first core, where nothing else runs."""

    def pinned(listening: Any) -> int:
        os.sched_setaffinity(0, {0})
        return serve(listening)

    return pinned


def cost(bootstrap: str, directory: Path) -> None:
    """Print the CPU time of a request above an empty handler's, with and without a log."""
    path = directory / "snapshots"
    path.mkdir()
    publish(path, SLOTS, 1)
    connect = partial(
        Connection(bootstrap=bootstrap, client="confluent").sink, "cost", buffer_bytes=1 << 26
    )
    kinds: dict[str, LogOptions | None] = {
        "no log": None,
        "after": LogOptions(
            settings=config.ServeLogConfig(topic="cost", ack="after"), connect=connect
        ),
        "before": LogOptions(settings=config.ServeLogConfig(topic="cost"), connect=connect),
    }
    body = json.dumps(event(np.random.default_rng(0))).encode()
    script = directory / "script.lua"
    names = ["empty", *kinds]
    costs: dict[str, list[float]] = {name: [] for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    latencies: dict[str, list[float]] = {name: [] for name in names}
    with ExitStack() as stack:
        running = {}
        size = 0
        for name, log in kinds.items():
            (counts := directory / name).mkdir()
            options = Options(path=path, counts=counts, log=log)
            running[name] = stack.enter_context(process(on_first_core(serving(options))))
            size = len(ask(running[name][1], body))
        running["empty"] = stack.enter_context(process(on_first_core(serve_empty(size))))
        ask(running["empty"][1], body)
        for _ in range(WINDOWS):
            for name, (child, port) in running.items():
                before, start = cpu(child), time.perf_counter()
                requests, p99 = load(port, body, CONNECTIONS, script)
                costs[name].append(1e6 * (cpu(child) - before) / requests)
                rates[name].append(requests / (time.perf_counter() - start))
                latencies[name].append(p99)
    empty = statistics.median(costs.pop("empty"))
    print(f"   empty: {empty:.1f} us of CPU a request")
    for name, values in costs.items():
        print(
            f"{name:>8}: {statistics.median(values) - empty:.1f} us above it (mark: 30), "
            f"{statistics.median(rates[name]):,.0f} requests a second on {CONNECTIONS} "
            f"connections, p99 {1e3 * statistics.median(latencies[name]):.1f} ms"
        )


def label_to_answer(bootstrap: str, directory: Path) -> None:
    """Print how long it takes from a label in Kafka until an answer changes."""
    port = free_port()
    file = directory / "loop.toml"
    file.write_text(CONFIG.format(bootstrap=bootstrap, path=directory, port=port))
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    commands = [["run"], ["serve"]]
    processes = [
        subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-m", "streamlearn", *words, str(file)], stderr=subprocess.DEVNULL
        )
        for words in commands
    ]

    def score(query: str = "") -> dict[str, Any]:
        address = f"http://127.0.0.1:{port}/v1/predict{query}"
        with urllib.request.urlopen(address, b'{"ad": "a1"}') as found:
            return dict(json.loads(found.read()))

    try:
        ask(port, b"{}")
        times = []
        for number in range(LABELS):
            found = score()
            label = {"id": found["id"], "clicked": bool(number % 2)}
            producer.produce("clicks", json.dumps(label).encode())
            producer.flush(10)
            start = time.perf_counter()
            while score("?log=false")["score"] == found["score"]:
                time.sleep(0.01)
            times.append(time.perf_counter() - start)
            time.sleep(0.3)  # at any moment between two snapshots
        times = times[1:]  # the first one declares a label
        print(
            f"label in Kafka to a changed answer: median {statistics.median(times):.2f} s, "
            f"maximum {max(times):.2f} s of {len(times)} (mark: 2.5)"
        )
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait(30)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        os.sched_setaffinity(0, range(1, os.cpu_count() or 1))  # inherited by all but the servers
        (directory / "kafka").mkdir()
        with ApacheKafka(directory / "kafka") as broker:
            admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            about = {"num_partitions": 1, "replication_factor": 1}
            admin.create_topics(dict.fromkeys(("impressions", "clicks", "cost"), about))
            admin.close()
            label_to_answer(broker.bootstrap, directory)
            cost(broker.bootstrap, directory)


if __name__ == "__main__":
    main()
