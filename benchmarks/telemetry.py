"""What the telemetry costs: CPU time of an event with it over that without, in one process.

python -m benchmarks.telemetry [--pairs N] [--learners one|default|four]

Two daemons learn records that lie in memory, one with metrics, page and history, scraped as
Prometheus would, one without. They take turns of about half a second, and CPU is that of the
process, all threads, in a turn. Each pair of turns gives a ratio; the median's interval holds it in
19 of 20 such benchmarks, whatever the noise. The comparator of the regret has a budget of its own,
and is left out of both.
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

MARK = 1.02
BATCH = 2000
TURN = 150  # batches
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


class Turns:
    """Who runs, and what CPU each turn of each took."""

    def __init__(self) -> None:
        self.taken: dict[bool, list[float]] = {False: [], True: []}
        self._watched = False  # whose turn it is
        self._begun: float | None = None
        self._changed = threading.Condition()

    def next(self, watched: bool, *, last: bool = False) -> None:  # noqa: FBT001 - one of two
        """End the turn, if it was one, and wait for the next."""
        with self._changed:
            if self._begun is not None and self._watched == watched:
                self.taken[watched].append(time.process_time() - self._begun)
                self._watched = not watched
                self._begun = 0.0
                self._changed.notify_all()
            if not last:
                self._changed.wait_for(lambda: self._watched == watched)
                self._begun = time.process_time()


class Memory:
    """A source of so many turns, of records which are there already."""

    def __init__(
        self, batches: list[list[bytes]], turns: Turns, count: int, daemon: Loop | None = None
    ) -> None:
        self.batches = batches
        self.turns = turns
        self.left = count * TURN
        self.at = 0
        self.daemon = daemon  # that is watched
        self._scraped = 0.0

    def identity(self) -> dict[str, str]:
        """Nothing that is kept speaks of it."""
        return {}

    def open(self, positions: Mapping[Partition, int], identity: Mapping[str, str] | None) -> None:
        """It begins at its beginning."""

    def poll(self, seconds: float) -> list[Records]:
        """The next batch, in its turn."""
        _ = seconds  # there is no need to wait
        if self.left % TURN == 0:
            self.turns.next(self.daemon is not None)
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
        """How many are left."""
        return {PLACE: self.left * BATCH}

    def lost(self) -> Mapping[Partition, int]:
        """None."""
        return {}

    def ended(self) -> bool:
        """Whether all were given."""
        if not self.left:
            self.turns.next(self.daemon is not None, last=True)
        return not self.left

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Nobody looks."""

    def close(self) -> None:
        """Nothing to give back."""


def measured(learners: str, pairs: int) -> dict[bool, list[float]]:
    """Seconds of CPU without and with telemetry, a number a pair."""
    draw = random.Random(0)
    batches = [[event(draw) for _ in range(BATCH)] for _ in range(50)]
    turns, threads = Turns(), []
    for watched in (False, True):
        text = CONFIG.format(enabled=str(watched).lower(), learners=LEARNERS[learners])
        settings = config.parse(text, overrides={"run.until": "end"})
        loop = build.loop(settings, Log("json", "error"))
        source: Any = Memory(batches, turns, pairs + 1, loop if watched else None)
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
    head = ("learners", "us of CPU without", "with", "ratio", "95% interval", "mark")
    interval_said = f"{low:.4f} to {high:.4f}"
    print(
        table(
            head, [(options.learners, off, on, f"{median(ratios):.4f}", interval_said, str(MARK))]
        )
    )


if __name__ == "__main__":
    main()
