"""Delayed labels: joined events per second, memory, and the pause for a checkpoint.

The daemon runs with its defaults, without outputs, over synthetic impressions from memory. In one
run each impression contains its label; in the other every label comes on a second topic after a
delay with a long tail, and the two topics are merged by time. The runs alternate in one process;
the result is the median of the ratios of neighbors. First, a million events of twelve numbers are
held, and a checkpoint of them is taken.

python -m benchmarks.late [--events N] [--held N] [--rounds N]
"""

import argparse
import gc
import io
import json
import random
import tempfile
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.report import interval, resident_bytes, table
from streamlearn import Names, config
from streamlearn.daemon import build
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import model_file
from streamlearn.late.join import Join
from streamlearn.stream import Clicks, Events, Fields, JSONDecoder, Partition, Records

CONFIG = """
[source]
kind = "kafka"
bootstrap = "none:1"
topics = ["impressions"]
order = "time"
[format]
label = "clicked"
id = "id"
time = "time"
[checkpoint]
path = "{directory}"
[telemetry]
port = 0
[run]
until = "end"
"""
LABELS = """
[labels]
topic = "clicks"
hold_for = 1e6
"""
BATCH = 5000  # as for a Kafka source


class Prepared:
    """A source of records that are already in memory."""

    def __init__(self, polls: list[list[Records]]) -> None:
        self.polls = polls
        self.at = 0

    def identity(self) -> dict[str, str]:
        """Return no identity."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Start from the first record."""

    def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002
        """Return the next records."""
        self.at += 1
        return self.polls[self.at - 1]

    def lag(self) -> dict[Partition, int | None]:
        """Report no lag."""
        return {}

    def lost(self) -> Mapping[Partition, int]:
        """Report no lost records."""
        return {}

    def ended(self) -> bool:
        """Return whether all records were polled."""
        return self.at >= len(self.polls)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Ignore the positions."""

    def close(self) -> None:
        """Release nothing."""


def polls(log: list[tuple[float, str, bytes]]) -> list[list[Records]]:
    """Split a log into polls, with the records of the two topics interleaved by time."""
    at = {"impressions": 0, "clicks": 0}
    found = []
    for start in range(0, len(log), BATCH):
        chunk = log[start : start + BATCH]
        taken = []
        for topic, first in at.items():
            turns = [turn for turn, one in enumerate(chunk) if one[1] == topic]
            if turns:
                at[topic] = first + len(turns)
                times = [round(1000.0 * chunk[turn][0]) for turn in turns]
                # copied, as a client does: the values of a poll are adjacent in memory
                values = [bytes(bytearray(chunk[turn][2])) for turn in turns]
                offsets = range(first, at[topic])
                taken.append(
                    Records(
                        Partition(topic),
                        offsets,
                        values,
                        at[topic],
                        times=times,
                        ranks=np.array(turns),
                    )
                )
        found.append(taken)
    return found


def logs(events: int) -> tuple[list[list[Records]], list[list[Records]]]:
    """Return the same impressions with their labels, and with delayed labels."""
    stream, draw = Clicks("impressions", 3), random.Random(3)
    whole, apart = [], []
    for i, value in enumerate(stream.values(0, events)):
        moment, label = i / 1000.0, b"true" if stream.clicked(i) else b"false"
        whole.append((moment, "impressions", value[:-1] + b',"clicked":' + label + b"}"))
        apart.append((moment, "impressions", value))
        later = moment + 10.0 * (draw.random() ** (-1 / 1.2) - 1.0)
        text = b'{"id":"e%d","clicked":%s,"time":%.3f}' % (i, label, 1_790_000_000 + later)
        apart.append((later, "clicks", text))
    apart.sort()
    return polls(whole), polls(apart)


def rate(given: list[list[Records]], events: int, *, late: bool) -> float:
    """Return the events learned per second."""
    with tempfile.TemporaryDirectory() as directory:
        text = CONFIG.format(directory=directory) + (LABELS if late else "")
        loop = build.loop(config.parse(text), Log(stream=io.StringIO()))
        loop.source = Prepared(given)
        begun = time.perf_counter()
        loop.run()
        taken = time.perf_counter() - begun
    if loop.pipeline.counts.learned != events:
        raise SystemExit("not all events were learned; the measurement is invalid")
    return events / taken


def held(n: int) -> dict[str, Any]:
    """Hold n events of twelve numbers; return memory, a checkpoint's pause and its writing time."""
    draw = random.Random(0)
    rows = [json.dumps({f"f{k}": draw.random() for k in range(12)})[1:] for _ in range(100)]
    decoder = JSONDecoder(Names(), Fields(label=None, id="id", time="time"), (), True)
    join, events = Join(n), Events()
    before = resident_bytes()
    for start in range(0, n, 10_000):
        numbers = range(start, start + 10_000)
        texts = [f'{{"id":"e{i}","time":{i},{rows[i % 100]}'.encode() for i in numbers]
        events.clear()
        decoder.decode(texts, events)
        join.clear()
        join.add_events(events)
    after = resident_bytes()
    begun = time.perf_counter()
    state = join.state()
    pause = time.perf_counter() - begun
    begun = time.perf_counter()
    size = sum(len(piece) for piece in model_file.pieces(state))
    return {
        "memory, MB": (after - before) / 1e6,
        "checkpoint pause, ms": 1000.0 * pause,
        "packing, s": time.perf_counter() - begun,
        "file, MB": size / 1e6,
    }


def main() -> None:
    """Print both tables."""
    given = argparse.ArgumentParser()
    given.add_argument("--events", type=int, default=600_000)
    given.add_argument("--held", type=int, default=1_000_000)
    given.add_argument("--rounds", type=int, default=11)
    options = given.parse_args()
    found = held(options.held)
    print(f"{options.held:,} held events of twelve numbers\n")
    print(table(list(found), [[f"{value:.3g}" for value in found.values()]]))
    whole, apart = logs(options.events)
    gc.freeze()  # a daemon has no prepared records; exclude them from garbage collection
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(options.rounds + 1):
        for late, log in ((False, whole), (True, apart)):
            rates[late].append(rate(log, options.events, late=late))
    # the first round warms up
    shares = [
        joined / plain for plain, joined in zip(rates[False][1:], rates[True][1:], strict=True)
    ]
    low, high = interval(shares)
    rows = [["in the event", f"{median(rates[False]):,.0f}", ""]]
    share = f"{median(shares):.0%} ({low:.0%} to {high:.0%})"
    rows += [["delayed, joined", f"{median(rates[True]):,.0f}", share]]
    print("\n" + table(["labels", "events/s", "relative rate (95% interval)"], rows))


if __name__ == "__main__":
    main()
