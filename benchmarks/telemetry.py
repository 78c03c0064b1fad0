"""What the telemetry costs: CPU time of an event with it over that without, in one process.

python -m benchmarks.telemetry [--events N] [--pairs N] [--learners one|default|four]

A daemon learns records that lie in memory, once with metrics, page and history, scraped as
Prometheus would, once without; the two take turns, and each pair gives a ratio. CPU is that of the
process, all threads. The median's interval holds it in 19 of 20 such benchmarks, whatever the
noise. The comparator of the regret has a budget of its own, and is left out of both.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import threading
import time
import urllib.request
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.kafka import LEARNERS, event
from benchmarks.report import table
from streamlearn.daemon import config, parts
from streamlearn.daemon.log import Log
from streamlearn.daemon.watching import Watching
from streamlearn.stream import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = 1.02
BATCH = 2000
SCRAPE_SECONDS = 5.0  # as in config/prometheus
PLACE = Partition("bench")
CONFIG = """\
source = {{ kind = "synthetic", events = 1 }} # in its place: Memory
format = {{ kind = "json", label = "clicked" }}
features = {{ kind = "hashing", bits = 20 }}
regret = {{ enabled = false }}
telemetry = {{ enabled = {enabled}, port = 0 }}
{learners}
"""


class Memory:
    """A source of so many records, which are there already."""

    def __init__(self, batches: list[list[bytes]], events: int) -> None:
        self.batches = batches
        self.events = events
        self.at = 0

    def identity(self) -> dict[str, str]:
        """Nothing that is kept speaks of it."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """It begins at its beginning."""

    def poll(self, seconds: float) -> list[Records]:
        """The next batch."""
        _ = seconds  # there is no need to wait
        start, values = self.at, self.batches[self.at // BATCH % len(self.batches)]
        self.at += len(values)
        return [Records(PLACE, range(start, self.at), list(values), self.at)]

    def lag(self) -> dict[Partition, int | None]:
        """How many are left."""
        return {PLACE: self.events - self.at}

    def ended(self) -> bool:
        """Whether all were given."""
        return self.at >= self.events

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nobody looks."""

    def close(self) -> None:
        """Nothing to give back."""


def cpu(batches: list[list[bytes]], events: int, learners: str, *, watched: bool) -> float:
    """Seconds of CPU that a daemon takes to learn them."""
    enabled = str(watched).lower()
    text = CONFIG.format(enabled=enabled, learners=LEARNERS[learners])
    settings = config.parse(text, overrides={"run.until": "end"})
    loop = parts.loop(settings, Log("json", "error"))
    source: Any = Memory(batches, events)
    loop.source = source
    ended = threading.Event()
    watching = [one for one in loop.pipeline.observers if isinstance(one, Watching)]
    scraper = threading.Thread(target=scrape, args=(watching, ended))
    gc.collect()
    begun = time.process_time()
    scraper.start()
    loop.run()
    taken = time.process_time() - begun
    ended.set()
    scraper.join()
    return taken


def scrape(watching: list[Watching], ended: threading.Event) -> None:
    """Read the metrics once early on, and then as often as Prometheus does."""
    seconds = SCRAPE_SECONDS / 10.0
    while watching and not ended.wait(seconds):
        address = f"http://127.0.0.1:{watching[0].server.port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            answer.read()
        seconds = SCRAPE_SECONDS


def interval(ratios: list[float]) -> tuple[float, float]:
    """An interval of the median from the order of the ratios alone: at least 95%."""
    ordered, n = sorted(ratios), len(ratios)
    left, outside = 0, 0.0
    while (outside := outside + 2.0 * math.comb(n, left) / 2.0**n) <= 0.05:
        left += 1
    return ordered[max(left - 1, 0)], ordered[n - max(left, 1)]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--learners", choices=sorted(LEARNERS), default="one")
    options = parser.parse_args()
    draw = random.Random(0)
    batches = [[event(draw) for _ in range(BATCH)] for _ in range(50)]
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(-1, options.pairs):
        for watched in (False, True) if pair % 2 else (True, False):
            taken = cpu(batches, options.events, options.learners, watched=watched)
            if pair >= 0:  # the first pair warms up
                seconds[watched].append(taken)
    ratios = [on / off for on, off in zip(seconds[True], seconds[False], strict=True)]
    low, high = interval(ratios)
    micro = {watched: f"{1e6 * median(taken) / options.events:.3f}"
             for watched, taken in seconds.items()}  # fmt: skip
    head = ("learners", "us of CPU without", "with", "ratio", "95% interval", "mark")
    row = (options.learners, micro[False], micro[True], f"{median(ratios):.4f}",
           f"{low:.4f} to {high:.4f}", f"{MARK}")  # fmt: skip
    print(table(head, [row]))


if __name__ == "__main__":
    main()
