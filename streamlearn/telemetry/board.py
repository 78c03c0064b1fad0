"""The board: the numbers of now, written by the loop once a batch, read by whoever asks."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.telemetry.catalog import BUCKETS, METRICS, REASONS, STAGES

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

Labels = tuple[str, ...]
SHOWN_BAD = 50


class Bad(NamedTuple):
    """A record that could not be read, as far as it may be shown."""

    time: float
    topic: str
    partition: int
    offset: int
    kind: str  # of catalog.REASONS
    field: str | None
    reason: str | None  # in full, with the value at fault, if the configuration shows events
    payload: str | None  # the same


class Weight(NamedTuple):
    """A weight by name."""

    name: str
    value: float


@dataclass
class About:
    """What the daemon is and how it is, in words."""

    state: str = "starting"
    reason: str = ""
    config: str = ""
    source: str = ""
    started: float = 0.0
    window: int = 0
    keeps: bool = False  # whether checkpoints are written
    rate: float | None = None  # events a second, of late
    ended: bool = False  # whether the source has given all there was
    exit: int | None = None  # the exit code, once it is known
    regret: bool = False  # whether it is followed at all
    regret_unknown: dict[str, str | None] = field(default_factory=dict)  # why, by learner
    learners: list[str] = field(default_factory=list)


class Board:
    """Values of metrics by their labels.

    >>> board = Board()
    >>> board.add("events_learned_total", 3, "sparse")
    >>> board.set("window_loss", 0.25, "sparse")
    >>> board.set("window_loss", float("nan"), "sparse")  # no such number any more
    >>> board.values("events_learned_total"), board.values("window_loss")
    ({('sparse',): 3}, {})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in METRICS}
        self._stages = {(stage,): [0.0] * (len(BUCKETS) + 2) for stage in STAGES}
        self.delays: tuple[list[float], float] | None = None  # of labels: counts, and their sum
        self.about = About()
        self.bad: deque[Bad] = deque(maxlen=SHOWN_BAD)
        self.end_shown = threading.Event()  # whether somebody was given how it ended
        self.looked_at = 0.0  # when somebody asked for the status last, on the monotonic clock
        self.weights_wanted = 0.0  # when somebody asked for them last
        self.weights_time = 0.0  # when they were looked at
        self.weights: dict[str, list[Weight]] = {}  # the largest of each learner; replaced whole
        self.unknown = 0  # partitions with neither position nor end yet
        for name, metric in METRICS.items():
            if metric.kind == "counter" and not metric.labels:
                self._values[name][()] = 0
        for reason in REASONS:
            self._values["events_bad_total"][reason,] = 0

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Count on."""
        values = self._values[name]
        with self._lock:
            values[labels] = values.get(labels, 0) + amount

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Replace a number; None, or what is not finite: there is no such number."""
        with self._lock:
            if value is None or not math.isfinite(value):
                self._values[name].pop(labels, None)
            else:
                self._values[name][labels] = value

    def replace(self, name: str, values: dict[Labels, float]) -> None:
        """Replace all numbers of a metric: those of labels that are gone are dropped."""
        with self._lock:
            self._values[name] = values

    def keep(self, name: str, living: AbstractSet[Labels]) -> None:
        """Drop the numbers of all other labels."""
        with self._lock:
            values = self._values[name]
            for labels in values.keys() - living:
                del values[labels]

    def inform(self, learner: str, **changes: str) -> None:
        """Say something else of a learner in its info, which has one series."""
        names = METRICS["learner_info"].labels
        with self._lock:
            values = self._values["learner_info"]
            before = next((labels for labels in values if labels[0] == learner), None)
            known = dict(zip(names, before, strict=True)) if before else {"learner": learner}
            if before:
                del values[before]
            known |= changes
            values[tuple(known.get(name, "") for name in names)] = 1

    def observe(self, stage: str, *batches: float) -> None:
        """Batches took so long in this stage."""
        counts = self._stages[stage,]
        with self._lock:
            for seconds in batches:
                counts[bisect_left(BUCKETS, seconds)] += 1
                counts[-1] += seconds

    def values(self, name: str) -> dict[Labels, float]:
        """The numbers of a metric by its labels: a copy."""
        with self._lock:
            return dict(self._values[name])

    def value(self, name: str, *labels: str) -> float | None:
        """One number, if there is one."""
        with self._lock:
            return self._values[name].get(labels)

    def stages(self) -> dict[Labels, tuple[list[float], float]]:
        """For each stage how many batches were in each bucket, the open one last; and the sum."""
        with self._lock:
            return {stage: (counts[:-1], counts[-1]) for stage, counts in self._stages.items()}

    def of_learner(self, learner: str) -> dict[str, Any]:
        """All numbers of one learner, by name."""
        with self._lock:
            return {
                name: values[learner,]
                for name, values in self._values.items()
                if METRICS[name].labels == ("learner",) and (learner,) in values
            }
