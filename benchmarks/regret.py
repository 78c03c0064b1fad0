"""What a tracker costs: learning with and without it, and the regrets that it finds.

The stream is a data set several times over, learned in pieces by one learner alone and by one with
a tracker, in turn; of each piece the fastest round counts, in processor time of the thread that
learns. What the tracker costs falls with the length of the stream: at first every event is copied
into its sample, later few are. The solver works in a thread behind, of which the share of a core
is told; the thread that learns waits for it, if at all, while it has the interpreter's lock.

The least a tracker can do is to add up the loss of every event. A logistic loss, an exp and a log1p
(`loss` in the table: its values in a bare loop), would be 15% of a row of 14 features of Pegasos or
dual averaging; the tracker notes events with the slopes that were learned with, and adds up 64 at a
time with one logarithm, so that all of it but the sample costs 3 to 4 ns a row. An event that comes
into the sample costs 50 to 80 ns: of rows late in the stream 1%, which are 4 to 5% slower in all.
Its memory, which the system clears page by page, costs as much again as long as it is new, for
twice as many events as the sample holds: the first half of the stream is 7 to 11% slower. Events
that come as dicts are 3 to 4% slower late in the stream and 6 to 7% in its first half; the default
2 to 3% and 4 to 5%, rows and dicts. With a memory of 100,000 as by default ten times as many events
come in, so that a stream must be ten times as long for the same.

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
MEMORY = 10_000
PIECE = 1_000
TIMES = 32
EARLY = 500_000  # events

Piece: TypeAlias = tuple[Any, Any]


def rows_of(X: Any, y: Any) -> list[Piece]:
    """Pieces of a matrix."""
    return [(X[i : i + PIECE], y[i : i + PIECE]) for i in range(0, len(y), PIECE)]


def events_of(X: Any, y: Any) -> list[Piece]:
    """Pieces of events."""
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
    """A copy of its own for each side, as Python adapts a loop to the class that it meets there."""
    return FunctionType(learn.__code__.replace(), learn.__globals__)


@dataclass(frozen=True)
class Cost:
    """Nanoseconds an event, alone and tracked, of each piece; the solver's share of a core."""

    alone: Any
    tracked: Any
    solver: float

    def slower(self, pieces: slice) -> str:
        """How much longer the tracked side takes."""
        return f"{100.0 * (self.tracked[pieces].sum() / self.alone[pieces].sum() - 1.0):+.1f}%"

    def cells(self) -> list[str]:
        """The cells of a line."""
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
    """What learning the pieces costs, and the report of the last tracker."""
    took = np.full((rounds, len(pieces), 2), np.inf)
    solving, report = [], None
    ways = (copied(learn), copied(learn))
    for turn in range(rounds):
        with sl.regret.Tracker(make(), memory=MEMORY, seed=0) as tracker:
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
    """Nanoseconds a value of the logistic loss in a bare loop."""
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
    print(f"a9a {TIMES} times over, memory {MEMORY}: nanoseconds an event\n")
    late = f"after {EARLY:,}"
    head = ["learner", "learns", "alone", "tracked", f"slower to {EARLY:,}", late, "solver", "loss"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
