"""The board: current values, written by the loop once per batch, read by the HTTP thread."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.core.invalid_record import CODES
from streamlearn.telemetry.catalog import BUCKETS, METRICS, STAGES

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

Labels = tuple[str, ...]
SHOWN_INVALID = 50


class ShownInvalidRecord(NamedTuple):
    """An invalid record, as far as it may be shown."""

    time: float
    topic: str
    partition: int
    offset: int
    code: str
    field: str | None
    reason: str | None  # in full, with the invalid value, if the configuration allows it
    payload: str | None  # likewise


class Weight(NamedTuple):
    """A weight with its name."""

    name: str
    value: float


@dataclass
class About:
    """The state of the daemon, apart from metrics."""

    state: str = "starting"
    reason: str = ""
    config: str = ""
    source: str = ""
    started: float = 0.0
    window: int = 0
    keeps: bool = False  # whether checkpoints are configured
    rate: float | None = None  # recent events per second
    ended: bool = False  # whether the source is exhausted
    exit: int | None = None  # the exit code, once known
    regret: bool = False  # whether regret is enabled
    regret_unknown: dict[str, str | None] = field(default_factory=dict)  # why, by learner
    learners: list[str] = field(default_factory=list)
    served: list[dict[str, Any]] = field(default_factory=list)  # by learner and arm
    note: str = ""  # about the stream


class Board:
    """Metric values by label values.

    >>> board = Board()
    >>> board.add("events_learned_total", 3, "sparse")
    >>> board.set("recent_loss", 0.25, "sparse")
    >>> board.set("recent_loss", float("nan"), "sparse")  # removes it
    >>> board.values("events_learned_total"), board.values("recent_loss")
    ({('sparse',): 3}, {})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in METRICS}
        self._stages = {(stage,): [0.0] * (len(BUCKETS) + 2) for stage in STAGES}
        self.delays: tuple[list[float], float] | None = (
            None  # delays of labels: bucket counts, and their sum
        )
        self.about = About()
        self.invalid_records: deque[ShownInvalidRecord] = deque(maxlen=SHOWN_INVALID)
        self.end_shown = threading.Event()  # whether a client has received the final state
        self.looked_at = 0.0  # last request for the status, on the monotonic clock
        self.weights_wanted = 0.0  # last request for the weights
        self.weights_time = 0.0  # when the weights were read
        self.weights: dict[str, list[Weight]] = {}  # the largest of each learner; replaced whole
        self.unknown = 0  # partitions without position and end so far
        for name, metric in METRICS.items():
            if metric.kind == "counter" and not metric.labels:
                self._values[name][()] = 0
        for reason in CODES:
            self._values["invalid_records_total"][reason,] = 0

    def add(self, name: str, amount: float, *labels: str) -> None:
        """Add to a counter."""
        values = self._values[name]
        with self._lock:
            values[labels] = values.get(labels, 0) + amount

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Set a value; None or a value that is not finite removes it."""
        with self._lock:
            if value is None or not math.isfinite(value):
                self._values[name].pop(labels, None)
            else:
                self._values[name][labels] = value

    def replace(self, name: str, values: dict[Labels, float]) -> None:
        """Replace all values of a metric."""
        with self._lock:
            self._values[name] = values

    def keep(self, name: str, living: AbstractSet[Labels]) -> None:
        """Remove the values of all other labels."""
        with self._lock:
            values = self._values[name]
            for labels in values.keys() - living:
                del values[labels]

    def inform(self, learner: str, **changes: str) -> None:
        """Change the labels of a learner's info metric, which has one series."""
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
        """Record durations of batches in this stage."""
        counts = self._stages[stage,]
        with self._lock:
            for seconds in batches:
                counts[bisect_left(BUCKETS, seconds)] += 1
                counts[-1] += seconds

    def values(self, name: str) -> dict[Labels, float]:
        """Return a copy of the values of a metric, by label values."""
        with self._lock:
            return dict(self._values[name])

    def value(self, name: str, *labels: str) -> float | None:
        """Return one value, or None."""
        with self._lock:
            return self._values[name].get(labels)

    def stages(self) -> dict[Labels, tuple[list[float], float]]:
        """Return for each stage the counts of batches by bucket, and the sum of durations."""
        with self._lock:
            return {stage: (counts[:-1], counts[-1]) for stage, counts in self._stages.items()}

    def of_learner(self, learner: str) -> dict[str, Any]:
        """Return all values of one learner, by metric name."""
        with self._lock:
            return {
                name: values[learner,]
                for name, values in self._values.items()
                if METRICS[name].labels == ("learner",) and (learner,) in values
            }
