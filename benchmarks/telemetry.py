"""Measure the cost of telemetry: CPU time per event with and without it.

python -m benchmarks.telemetry [--pairs N] [--learners one|default|four]

Two daemons in one process learn records from memory, one with metrics, page and history, scraped as
by Prometheus, one without. They alternate in turns of about half a second; CPU time is that of the
process, all threads, during a turn. Each pair of turns gives a ratio; the result is its median with
a 95% confidence interval. Regret, whose solver has a budget of its own, is off in both.
"""

from __future__ import annotations

import argparse
import gc
import random
import threading
import time
import urllib.request
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.kafka import LEARNERS, event
from benchmarks.report import interval, table
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.log import Log
from streamlearn.stream import Partition, Records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.loop import Loop

REQUIRED = 1.02
BATCH = 2000
TURN = 150  # batches
SCRAPE_SECONDS = 5.0  # as in config/prometheus
PLACE = Partition("bench")
CONFIG = """\
source = {{ kind = "synthetic", events = 1 }} # replaced by MemorySource
format = {{ kind = "json", label = "clicked" }}
features = {{ kind = "hashing", bits = 20 }}
regret = {{ enabled = false }}
telemetry = {{ enabled = {enabled}, port = 0 }}
{learners}
"""


class Turns:
    """Whose turn it is, and the CPU time of each turn."""

    def __init__(self) -> None:
        self.taken: dict[bool, list[float]] = {False: [], True: []}
        self._watched = False  # whose turn it is
        self._begun: float | None = None
        self._changed = threading.Condition()

    def next(self, watched: bool, *, last: bool = False) -> None:  # noqa: FBT001 - one of two
        """End the current turn, if any, and wait for the next."""
        with self._changed:
            if self._begun is not None and self._watched == watched:
                self.taken[watched].append(time.process_time() - self._begun)
                self._watched = not watched
                self._begun = 0.0
                self._changed.notify_all()
            if not last:
                self._changed.wait_for(lambda: self._watched == watched)
                self._begun = time.process_time()


class MemorySource:
    """A source of records in memory, for a number of turns."""

    def __init__(
        self, batches: list[list[bytes]], turns: Turns, count: int, daemon: Loop | None = None
    ) -> None:
        self.batches = batches
        self.ranks = turns
        self.left = count * TURN
        self.at = 0
        self.daemon = daemon  # the one with telemetry
        self._scraped = 0.0

    def identity(self) -> dict[str, str]:
        """Return no identity."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """Start from the first record."""

    def poll(self, seconds: float) -> list[Records]:
        """Return the next batch, in its turn."""
        _ = seconds  # never waits
        if self.left % TURN == 0:
            self.ranks.next(self.daemon is not None)
            self.scrape()
        self.left -= 1
        start, values = self.at, self.batches[self.left % len(self.batches)]
        self.at += len(values)
        return [Records(PLACE, range(start, self.at), list(values), self.at)]

    def scrape(self) -> None:
        """Read the metrics as often as Prometheus does."""
        if self.daemon is None or time.monotonic() - self._scraped < SCRAPE_SECONDS:
            return
        self._scraped = time.monotonic()
        watching = [
            one for one in self.daemon.pipeline.observers if isinstance(one, TelemetryCollector)
        ]
        address = f"http://127.0.0.1:{watching[0].server.port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            answer.read()

    def lag(self) -> dict[Partition, int | None]:
        """Return the number of records left."""
        return {PLACE: self.left * BATCH}

    def lost(self) -> Mapping[Partition, int]:
        """Report no lost records."""
        return {}

    def ended(self) -> bool:
        """Return whether all records were polled."""
        if not self.left:
            self.ranks.next(self.daemon is not None, last=True)
        return not self.left

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Ignore the positions."""

    def close(self) -> None:
        """Release nothing."""


def measured(learners: str, pairs: int) -> dict[bool, list[float]]:
    """Return seconds of CPU without and with telemetry, one number per pair."""
    draw = random.Random(0)
    batches = [[event(draw) for _ in range(BATCH)] for _ in range(50)]
    turns, threads = Turns(), []
    for watched in (False, True):
        text = CONFIG.format(enabled=str(watched).lower(), learners=LEARNERS[learners])
        settings = config.parse(text, overrides={"run.until": "end"})
        loop = build.loop(settings, Log("json", "error"))
        source: Any = MemorySource(batches, turns, pairs + 1, loop if watched else None)
        loop.source = source
        threads.append(threading.Thread(target=loop.run))
    gc.collect()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        watched: taken[1:]  # the first pair warms up
        for watched, taken in turns.taken.items()
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--learners", choices=sorted(LEARNERS), default="one")
    options = parser.parse_args()
    seconds = measured(options.learners, options.pairs)
    ratios = [on / off for off, on in zip(seconds[False], seconds[True], strict=True)]
    low, high = interval(ratios)
    events = BATCH * TURN
    off, on = (f"{1e6 * median(seconds[watched]) / events:.3f}" for watched in (False, True))
    head = ("learners", "CPU us/event without", "with telemetry", "ratio", "95% interval", "limit")
    ratio, bounds = f"{median(ratios):.4f}", f"{low:.4f} to {high:.4f}"
    print(table(head, [(options.learners, off, on, ratio, bounds, str(REQUIRED))]))


if __name__ == "__main__":
    main()
