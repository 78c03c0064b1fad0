"""Late labels: how many joined events a second, in how much memory, and how long a pause.

The daemon as it comes, without outputs, over made-up impressions from memory: once each brings its
label, once every label comes on another topic after a delay with a long tail, the two topics
taking turns by time. Both in turn, in one process; what counts is the median of the ratios of
neighbors. Before, a million events of twelve numbers are held, and a checkpoint of them is taken.

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

from benchmarks.report import interval, table
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
BATCH = 5000  # as a source of Kafka has it


class Given:
    """Records that lie ready."""

    def __init__(self, polls: list[list[Records]]) -> None:
        self.polls = polls
        self.at = 0

    def identity(self) -> dict[str, str]:
        """Nothing to tell it from."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """From the first."""

    def poll(self, seconds: float) -> list[Records]:  # noqa: ARG002
        """The next."""
        self.at += 1
        return self.polls[self.at - 1]

    def lag(self) -> dict[Partition, int | None]:
        """Nothing waits."""
        return {}

    def lost(self) -> Mapping[Partition, int]:
        """None."""
        return {}

    def ended(self) -> bool:
        """Whether all were given."""
        return self.at >= len(self.polls)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nobody watches."""

    def close(self) -> None:
        """Nothing to give back."""


def polls(log: list[tuple[float, str, bytes]]) -> list[list[Records]]:
    """A log as it is polled: so many records at a time, of topics that take turns."""
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
                # made anew, as a client makes them: those of a poll lie one after the other
                values = [bytes(bytearray(chunk[turn][2])) for turn in turns]
                offsets = range(first, at[topic])
                taken.append(
                    Records(
                        Partition(topic),
                        offsets,
                        values,
                        at[topic],
                        times=times,
                        turns=np.array(turns),
                    )
                )
        found.append(taken)
    return found


def logs(events: int) -> tuple[list[list[Records]], list[list[Records]]]:
    """The same impressions with their labels, and with labels that come later."""
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
    """Events learned a second."""
    with tempfile.TemporaryDirectory() as directory:
        text = CONFIG.format(directory=directory) + (LABELS if late else "")
        loop = build.loop(config.parse(text), Log(stream=io.StringIO()))
        loop.source = Given(given)
        begun = time.perf_counter()
        loop.run()
        taken = time.perf_counter() - begun
    if loop.pipeline.counts.learned != events:
        raise SystemExit("not all was learned: what was measured means nothing")
    return events / taken


def resident() -> float:
    """Megabytes of this process."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000.0


def held(n: int) -> dict[str, Any]:
    """So many events of twelve numbers: memory, a checkpoint's pause and its writing."""
    draw = random.Random(0)
    rows = [json.dumps({f"f{k}": draw.random() for k in range(12)})[1:] for _ in range(100)]
    decoder = JSONDecoder(Names(), Fields(label=None, id="id", time="time"), (), True)
    join, events = Join(n), Events()
    before = resident()
    for start in range(0, n, 10_000):
        numbers = range(start, start + 10_000)
        texts = [f'{{"id":"e{i}","time":{i},{rows[i % 100]}'.encode() for i in numbers]
        events.clear()
        decoder.decode(texts, events)
        join.clear()
        join.features(events)
    after = resident()
    begun = time.perf_counter()
    state = join.state()
    pause = time.perf_counter() - begun
    begun = time.perf_counter()
    size = sum(len(piece) for piece in model_file.pieces(state))
    return {
        "MB": after - before,
        "pause ms": 1000.0 * pause,
        "pack s": time.perf_counter() - begun,
        "file MB": size / 1e6,
    }


def main() -> None:
    """Print both tables."""
    given = argparse.ArgumentParser()
    given.add_argument("--events", type=int, default=600_000)
    given.add_argument("--held", type=int, default=1_000_000)
    given.add_argument("--rounds", type=int, default=11)
    options = given.parse_args()
    found = held(options.held)
    print(f"{options.held:,} events of twelve numbers are held\n")
    print(table(list(found), [[f"{value:.3g}" for value in found.values()]]))
    whole, apart = logs(options.events)
    gc.freeze()  # what lies ready here would not be there in a daemon, and is not to be searched
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(options.rounds + 1):
        for late, log in ((False, whole), (True, apart)):
            rates[late].append(rate(log, options.events, late=late))
    # the first round warms up
    shares = [
        joined / plain for plain, joined in zip(rates[False][1:], rates[True][1:], strict=True)
    ]
    low, high = interval(shares)
    rows = [["with its label", f"{median(rates[False]):,.0f}", ""]]
    share = f"{median(shares):.0%} ({low:.0%} to {high:.0%})"
    rows += [["joined", f"{median(rates[True]):,.0f}", share]]
    print("\n" + table(["an event comes", "events learned a second", "share (95% interval)"], rows))


if __name__ == "__main__":
    main()
