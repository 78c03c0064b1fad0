"""Collect the non-zero weights, their norm, and the largest ones by name."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.features import Hashing, Names
from streamlearn.telemetry import Weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from streamlearn.core.arrays import Array
    from streamlearn.daemon.learners import Learners
    from streamlearn.features import Reader
    from streamlearn.telemetry import Board

    Marks = NDArray[np.bool_]

TOP = 1000
MAX_LENGTH = 200  # characters of a name
SECONDS = 1.0
# names are updated while someone looks at them, and otherwise now and then
VIEWED_SECONDS, UNVIEWED_SECONDS = 10.0, 30.0
MAX_SHARE = 0.003  # the most CPU time spent on this


class WeightsCollector:
    """Collect statistics of the weights when due; the cost is linear in their number."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self.board = board
        self.clock = clock
        self._next = 0.0

    def measure_if_due(self, learners: Learners) -> None:
        """Measure, unless the previous measurement was too recent."""
        now, start = time.monotonic(), time.thread_time()
        if now < self._next or not any(one.learned for one in learners):
            return
        reader = learners.reader
        used: Marks = np.zeros(0, bool)
        board, time_now = self.board, self.clock()
        viewed = abs(time_now - board.weights_wanted) < VIEWED_SECONDS
        old = abs(time_now - board.weights_time) > UNVIEWED_SECONDS
        names = viewed or old or not all(board.weights.get(one.name) for one in learners)
        if names:
            board.weights_time = time_now
        for learner in learners:
            weights = learner.model.coefficients()
            self._report(learner.name, weights)
            if names:
                board.weights[learner.name] = largest(weights, labels(learner.model), reader)
            if isinstance(reader, Hashing):
                used_here = np.any(weights, axis=0).reshape(-1)
                if len(used) < len(used_here):
                    used, used_here = used_here, used
                used[: len(used_here)] |= used_here
        board.set("slots", reader.size)
        if isinstance(reader, Names) and (reader.max_names or reader.max_bytes):
            board.set("rejected_features", reader.rejected_features)
        if isinstance(reader, Hashing):
            board.set("hash_load_ratio", np.count_nonzero(used) / reader.size)
        seconds = time.thread_time() - start
        self._next = now + max(0.95 * SECONDS, seconds / MAX_SHARE)  # about once a second

    def _report(self, name: str, weights: Array) -> None:
        board = self.board
        board.set("nonzero_weights", int(np.count_nonzero(weights)), name)
        board.set("weights_norm", math.sqrt(np.einsum("ij,ij->", weights, weights)), name)
        board.set("weights_timestamp_seconds", self.clock(), name)


def largest(weights: Array, outputs: list[Any], reader: Reader) -> list[Weight]:
    """Return the largest non-zero weights by name, with the label if there are several outputs."""
    flat, n = weights.reshape(-1), weights.shape[1]
    places = np.flatnonzero(flat)
    sizes = np.abs(flat[places])
    if len(places) > TOP:
        few = np.argpartition(sizes, len(sizes) - TOP)[-TOP:]
        places, sizes = places[few], sizes[few]
    found = []
    for place in places[np.argsort(-sizes, kind="stable")].tolist():
        output, slot = divmod(place, n)
        if slot >= reader.size:
            continue
        name = display_name(reader.name_of(slot))
        if len(weights) > 1:
            name = f"{name} → {outputs[output] if output < len(outputs) else output}"
        found.append(Weight(name, float(weights[output, slot])))
    return found


def display_name(name: Any) -> str:
    """Format a feature's name, or the parts of an interaction."""
    whole = " & ".join(map(display_name, name)) if isinstance(name, tuple) else str(name)
    return whole if len(whole) <= MAX_LENGTH else whole[:MAX_LENGTH] + "…"


def labels(model: Any) -> list[Any]:
    """Return the labels of a model's outputs."""
    return list(getattr(model, "_labels", ()))
