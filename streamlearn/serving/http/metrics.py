"""Counts of all processes of a server, in files that they map into memory.

Each process counts in a file of its own; whichever is scraped adds them up. The file of a process
that died stays, so that no counter goes back.
"""

from __future__ import annotations

import mmap
import os
import time
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from streamlearn.telemetry.catalog import BUCKETS, PREFIX, SERVER_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streamlearn.serving.http.follower import Follower

ROUTES = ("predict", "infer", "health", "metadata", "metrics", "page", "other")
STATUSES = ("2xx", "4xx", "5xx")
EDGES = BUCKETS
WIDTH = len(EDGES) + 2  # the buckets, one for what is slower, and the sum
PER_ROUTE = WIDTH + len(STATUSES)
COUNTS = (
    "events", "invalid_events", "refused_requests", "log_stored", "log_refused_requests",
    "unlogged_events", "log_accepted", "in_flight",
)  # fmt: skip
COUNTERS = COUNTS[:-2]  # as they are
OTHERS = len(ROUTES) * PER_ROUTE  # where the counts begin, and after them those of the arms

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def described(name: str) -> tuple[str, str]:
    """Return the full name of a metric, and its help."""
    metric = SERVER_METRICS.get(f"serve_{name}") or SERVER_METRICS[f"serve_{name}_total"]
    return f"{PREFIX}serve_{name}", metric.help


class RequestCounts:
    """The counts of this process."""

    def __init__(self, path: Path, arms: Sequence[str] = ()) -> None:
        self.directory = path
        self.arms = {arm: OTHERS + len(COUNTS) + i for i, arm in enumerate(arms)}
        size = OTHERS + len(COUNTS) + len(arms)
        self.path = path / f"{os.getpid()}-{time.time_ns()}"
        self.path.write_bytes(bytes(8 * size))
        with self.path.open("rb+") as file:
            self.item = memoryview(mmap.mmap(file.fileno(), 8 * size)).cast("d")

    def answered(self, route: int, status: int, seconds: float) -> None:
        """Count an answer."""
        item, at = self.item, route * PER_ROUTE
        bucket = 0
        for edge in EDGES:
            if seconds <= edge:
                break
            bucket += 1
        item[at + bucket] += 1.0
        item[at + WIDTH - 1] += seconds
        item[at + WIDTH + (0 if status < 400 else 1 if status < 500 else 2)] += 1.0

    def add(self, name: int, amount: float) -> None:
        """Add to a count of `COUNTS`."""
        self.item[OTHERS + name] += amount

    def add_arm(self, arm: str, events: float) -> None:
        """Count events of an arm."""
        self.item[self.arms[arm]] += events

    def totals(self) -> tuple[Numbers, Numbers]:
        """Return the sum of the processes that run, and of those that died."""
        running, dead = np.zeros(len(self.item)), np.zeros(len(self.item))
        for path in self.directory.iterdir():
            one = np.fromfile(path, dtype=np.float64)
            if len(one) == len(running):
                to = running if alive(path.name) else dead
                to += one
        return running, dead


def alive(name: str) -> bool:
    """Return whether the process that wrote a file still runs."""
    try:
        os.kill(int(name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class ServeCollector(Collector):
    """The metrics of a server."""

    def __init__(self, counts: RequestCounts, follower: Follower) -> None:
        self.counts = counts
        self.follower = follower

    def collect(self) -> Iterator[Metric]:
        """Generate all metrics."""
        running, dead = self.counts.totals()
        total = running + dead
        table = total[:OTHERS].reshape(len(ROUTES), -1)
        seconds = HistogramMetricFamily(*described("request_seconds"), labels=["route"])
        answers = CounterMetricFamily(*described("requests"), labels=["route", "status"])
        names = [*map(str, EDGES), "+Inf"]
        for route, row in zip(ROUTES, table, strict=True):
            sums = np.cumsum(row[: WIDTH - 1]).tolist()
            seconds.add_metric([route], list(zip(names, sums, strict=True)), row[WIDTH - 1])
            for status, count in zip(STATUSES, row[WIDTH:], strict=True):
                answers.add_metric([route, status], count)
        yield seconds
        yield answers
        for name, value in zip(COUNTERS, total[OTHERS:].tolist(), strict=False):
            yield CounterMetricFamily(*described(name), value=value)
        yield GaugeMetricFamily(*described("in_flight"), value=count_of("in_flight", running))
        waiting, lost = (
            count_of("log_accepted", one) - count_of("log_stored", one) for one in (running, dead)
        )
        yield GaugeMetricFamily(*described("log_waiting"), value=waiting)
        yield CounterMetricFamily(*described("log_lost"), value=lost)
        arms = CounterMetricFamily(*described("arm_events"), labels=["arm"])
        for arm, place in self.counts.arms.items():
            arms.add_metric([arm], total[place])
        yield arms
        yield from self.snapshots()

    def snapshots(self) -> Iterator[Metric]:
        """Generate what is known of the snapshots in use."""
        names = ("age_seconds", "epoch", "events", "bytes")
        families = [
            GaugeMetricFamily(*described(f"snapshot_{name}"), labels=["learner"]) for name in names
        ]
        now = time.time()
        for name, one in self.follower.snapshots.items():
            values = (max(now - one.written, 0.0), *one.version, one.bytes)
            for family, value in zip(families, values, strict=True):
                family.add_metric([name], value)
        yield from families
        promoted = GaugeMetricFamily(*described("promoted"), labels=["learner"])
        if self.follower.promoted is not None:
            promoted.add_metric([self.follower.promoted], 1.0)
        yield promoted


def count_of(name: str, numbers: Numbers) -> float:
    """Return a count of `COUNTS`."""
    return float(numbers[OTHERS + COUNTS.index(name)])
