"""Measure the cost of a regret tracker: learning with and without it.

The stream is a data set repeated several times. One learner learns it alone and one with a tracker,
piece by piece in alternation. For each piece the fastest round counts, in CPU time of the learning
thread. The cost falls with the length of the stream: at first every event is copied into the
sample, later few are. The solver runs in a background thread; its share of a core is reported. The
learning thread waits for it only while it holds the GIL.

A tracker must at least sum the loss of every event. A logistic loss, an exp and a log1p (column
"bare loss": a loop over its values), would be 15% of a row of 14 features of Pegasos or dual
averaging. The tracker instead records the slopes that were used for learning, and sums 64 losses at
a time with one logarithm, so that everything but the sample costs 3 to 4 ns per row. An event that
enters the sample costs 50 to 80 ns. Late in the stream that is 1% of the rows, which makes rows 4
to 5% slower in total. New memory, which the system clears page by page, doubles that cost for twice
as many events as the sample holds: the first half of the stream is 7 to 11% slower. Dict events are
3 to 4% slower late in the stream and 6 to 7% in its first half; the default model 2 to 3% and 4 to
5%, rows and dicts. With the default sample of 100,000, ten times as many events enter the sample,
so the same numbers need a stream ten times as long.

python -m benchmarks.regret [--data DIR] [--rounds N]
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks import data
from benchmarks.report import table

L, P, R = sl.losses, sl.penalties, sl.rules
LEARNERS: dict[str, Callable[[], Any]] = {
    "Pegasos": lambda: sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(1e-4)),
    "dual averaging, l1": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(1e-3)),
    "default": sl.LinearClassifier,
}
SAMPLE_SIZE = 10_000
PIECE = 1_000
TIMES = 32
EARLY = 500_000  # events

Piece: TypeAlias = tuple[Any, Any]


def rows_of(X: Any, y: Any) -> list[Piece]:
    """Split a matrix into pieces."""
    return [(X[i : i + PIECE], y[i : i + PIECE]) for i in range(0, len(y), PIECE)]


def events_of(X: Any, y: Any) -> list[Piece]:
    """Split a matrix into pieces of dict events."""
    return [
        (
            [
                {str(j): x for j, x in zip(row.indices.tolist(), row.data.tolist(), strict=True)}
                for row in (X[[i]] for i in range(X.shape[0]))
            ],
            y.tolist(),
        )
        for X, y in rows_of(X, y)
    ]


def learn_rows(model: Any, X: Any, y: Any) -> None:
    """Learn the rows of a matrix."""
    model.learn_rows(X, y)


def learn_events(model: Any, events: list[dict[str, float]], y: list[float]) -> None:
    """Learn events one at a time."""
    for event, label in zip(events, y, strict=True):
        model.learn_one(event, label)


def copied(learn: Any) -> FunctionType:
    """Copy the function for each side, because Python specializes a loop for the class it sees."""
    return FunctionType(learn.__code__.replace(), learn.__globals__)


@dataclass(frozen=True)
class Cost:
    """Nanoseconds per event of each piece, alone and tracked; the solver's share of a core."""

    alone: Any
    tracked: Any
    solver: float

    def slower(self, pieces: slice) -> str:
        """Return how much longer the tracked side takes."""
        return f"{100.0 * (self.tracked[pieces].sum() / self.alone[pieces].sum() - 1.0):+.1f}%"

    def cells(self) -> list[str]:
        """Return the cells of a line."""
        early = EARLY // PIECE
        return [
            f"{self.alone.mean():.0f}",
            f"{self.tracked.mean():.0f}",
            self.slower(slice(early)),
            self.slower(slice(early, None)),
            f"{100.0 * self.solver:.1f}%",
        ]


def measured(
    make: Callable[[], Any],
    learn: Callable[[Any, Any, Any], None],
    pieces: Sequence[Piece],
    rounds: int,
) -> tuple[Cost, Any]:
    """Measure the cost of learning the pieces; return it and the report of the last tracker."""
    took = np.full((rounds, len(pieces), 2), np.inf)
    solving, report = [], None
    ways = (copied(learn), copied(learn))
    for turn in range(rounds):
        with sl.regret.Tracker(make(), sample_size=SAMPLE_SIZE, seed=0) as tracker:
            sides = (make(), tracker)
            gc.collect()
            gc.disable()
            before, began = time.process_time() - time.thread_time(), time.perf_counter()
            for i, piece in enumerate(pieces):
                for side in (0, 1) if (i + turn) % 2 else (1, 0):
                    start = time.thread_time()
                    ways[side](sides[side], *piece)
                    took[turn, i, side] = time.thread_time() - start
            behind = time.process_time() - time.thread_time() - before
            solving.append(behind / (time.perf_counter() - began))
            gc.enable()
            if turn == rounds - 1:
                report = tracker.report()
    sizes = np.array([len(piece[1]) for piece in pieces])
    alone, tracked = 1e9 * took.min(axis=0).T / sizes
    return Cost(alone, tracked, float(np.median(solving))), report


def loss_alone(y: Any, rounds: int) -> float:
    """Return the nanoseconds per value of the logistic loss in a bare loop."""
    scores, loss = np.random.default_rng(0).normal(size=len(y)), L.Logistic()
    took = []
    for _ in range(rounds):
        start = time.thread_time()
        loss.value(scores, y)
        took.append(time.thread_time() - start)
    return 1e9 * min(took) / len(y)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    examples = data.load(data.CLASSIFICATION[0], args.data)
    X, y = examples.rows, np.where(examples.labels > 0, 1.0, -1.0)
    ways = {"rows": (learn_rows, rows_of(X, y)), "events": (learn_events, events_of(X, y))}
    loss = f"{loss_alone(y, 50):.0f}"
    lines = []
    for name, make in LEARNERS.items():
        for way, (learn, pieces) in ways.items():
            cost, report = measured(make, learn, pieces * TIMES, args.rounds)
            lines.append([name, way, *cost.cells(), loss])
        print(f"{name}: {report}\n", flush=True)
    print(f"a9a repeated {TIMES} times, sample of {SAMPLE_SIZE}: nanoseconds per event\n")
    slower = [f"slowdown, first {EARLY:,}", "slowdown, rest"]
    head = ["learner", "input", "alone", "tracked", *slower, "solver, share of a core", "bare loss"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
