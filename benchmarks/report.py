"""Markdown tables, and timings that alternate between sides so that noise affects all equally."""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[], object]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Timing:
    """The seconds of one side, one number per round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median round."""
        return statistics.median(self.seconds)

    def per_event(self, events: int) -> str:
        """Format microseconds per event: the median, and the fastest and slowest round."""
        low, middle, high = (
            1e6 * second / events for second in (min(self.seconds), self.median, max(self.seconds))
        )
        return f"{middle:.3f} ({low:.3f} to {high:.3f})"

    def ratio(self, other: "Timing") -> tuple[float, float, float]:
        """Return how much longer the other side took in the same round: median, least, most."""
        ratios = [b / a for a, b in zip(self.seconds, other.seconds, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)


def alternate(sides: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Timing]:
    """Time every side once per round; each run is prepared outside the clock."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, prepare in sides.items():
            run = prepare()
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
            gc.enable()
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def unprepared(run: Run) -> Run:
    """Prepare nothing outside the clock."""
    return run


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return a confidence interval of the median of at least 95%, by order statistics."""
    ordered, n = sorted(ratios), len(ratios)
    left, outside = 0, 0.0
    while (outside := outside + 2.0 * math.comb(n, left) / 2.0**n) <= 0.05:
        left += 1
    return ordered[max(left - 1, 0)], ordered[n - max(left, 1)]
