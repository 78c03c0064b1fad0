"""Measure the cost of a regret tracker, and the accuracy of its estimates.

cost: learning with and without a tracker. The stream is a data set repeated several times. One
learner learns it alone and one with a tracker, piece by piece in alternation. For each piece the
fastest round counts, in CPU time of the learning thread. The cost falls with the length of the
stream: at first every event is copied into the sample, later few are. No comparator is solved.

accuracy: estimates from a memory of a tenth of the set, compared with a solve over all events, for
several seeds, in percent of the progressive loss. The bracket should be at most 3% wide, the
estimate within 1%, and the truth inside for 19 of 20 seeds. Where the sample cannot say so much,
the regret is unknown. "by chance" is how wide the bracket would be if the best fixed model were
known and only its loss had to be estimated from a tenth of the events: four standard errors. With
uniform samples no method can do better but by luck.

A tracker must at least sum the loss of every event. A logistic loss, an exp and a log1p (column
"bare loss": a loop over its values), would be 15% of a row of 14 features of Pegasos or dual
averaging. The tracker instead records the slopes that were used for learning, and sums 64 losses at
a time with one logarithm.

python -m benchmarks.regret [--data DIR] [--rounds N] [--only cost|accuracy] [--sets NAME ..]
    [--seeds N]
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
from streamlearn.regret.comparator import costs, sample_from_snapshot
from streamlearn.regret.findings import STDERRS, regression

L, P, R = sl.losses, sl.penalties, sl.rules
LEARNERS: dict[str, Callable[[], Any]] = {
    "Pegasos": lambda: sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(1e-4)),
    "dual averaging, l1": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(1e-3)),
    "default": sl.LinearClassifier,
}
MEMORY = 500_000  # bytes; about 10,000 events
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
        with sl.regret.Tracker(make(), memory_bytes=MEMORY, seed=0) as tracker:
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


SETS = (
    data.Source("rcv1v2_ccat", "rcv1v2_ccat.svm.gz"),
    data.Source("covtype", "covtype.binary.scale01.svm.gz", shuffled=True),
    data.Source("mnist", "mnist.svm.gz"),
)
MEASURED: dict[str, Callable[[], Any]] = {
    "default": sl.LinearClassifier,
    "dual averaging, l1": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(1e-3)),
    "Pegasos": lambda: sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(1e-3)),
}
DIGIT = 8  # of mnist, against the rest; its pixels are scaled to 0 .. 1
SOLVE_SECONDS = 120.0


def read(source: data.Source, directory: Path) -> tuple[Any, Any]:
    """Return all rows and labels of a set."""
    examples = data.load(source, directory, 10**9)
    X, y = examples.rows, examples.labels
    if source.name == "mnist":
        X.data /= 255.0
        return X, np.where(y == DIGIT, 1.0, -1.0)
    return X, np.where(y > 0, 1.0, -1.0)


def tracked(make: Callable[[], Any], X: Any, y: Any, memory: int | None, seed: int) -> Any:
    """Return the report after one pass."""
    with sl.regret.Tracker(make(), memory, seed) as tracker:
        tracker.learn_rows(X, y)
        return tracker.report(SOLVE_SECONDS)


def by_chance(ledger: Any) -> float:
    """Return the width of a bracket of the known best model's objective on a tenth of the events.

    The learner's losses, whose sum is known, explain a part, as in the estimates.
    """
    best, sums = ledger.findings.minimum.solution, ledger.sums
    snapshot = ledger.shared.reservoir.snapshot()
    sample = sample_from_snapshot(snapshot, sums.events, ledger.task, best.w.shape[-1])
    paid = costs(sample, ledger.task, best)
    losses = sums.samples()[1].astype(float)
    error = regression(paid, losses, sums.progressive_loss, sums.events)[1]
    return float(2.0 * STDERRS * sums.events * error * np.sqrt(10.0 * (1.0 - 0.1)))


def accuracy(directory: Path, sets: Sequence[str], seeds: int) -> None:
    """Print the table of accuracy, line by line."""
    head = ["data", "learner", "memory", "known", "inside", "largest error, %", "widest, %"]
    print(f"| {' | '.join([*head, 'by chance, %', 'unknown'])} |\n|{' --- |' * 9}")
    for source in (one for one in SETS if one.name in sets):
        X, y = read(source, directory)
        memory = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) // 10
        for name, make in MEASURED.items():
            with sl.regret.Tracker(make(), None, 0) as tracker:
                tracker.learn_rows(X, y)
                full: Any = tracker.report(SOLVE_SECONDS)
                chance = np.nan if full.regret is None else by_chance(tracker.ledger)
            truth = 0.5 * (full.regret + full.regret_high) if full.regret is not None else np.nan
            reports = [tracked(make, X, y, memory, seed) for seed in range(seeds)]
            known = [one for one in reports if one.regret is not None]
            percent = 100.0 / full.progressive_loss
            errors = [percent * abs(one.regret - truth) for one in known]
            widths = [percent * (one.regret_high - one.regret_low) for one in known]
            line = [
                source.name,
                name,
                f"{memory:,}",
                f"{len(known)} of {seeds}",
                str(sum(one.regret_low <= truth <= one.regret_high for one in known)),
                f"{max(errors, default=np.nan):.2f}",
                f"{max(widths, default=np.nan):.2f}",
                f"{percent * chance:.2f}",
                next((one.why_unknown for one in reports if one.regret is None), ""),
            ]
            print(f"| {' | '.join(line)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("cost", "accuracy"))
    names = [source.name for source in SETS]
    parser.add_argument("--sets", choices=names, nargs="+", default=names)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    if args.only != "cost":
        accuracy(args.data, args.sets, args.seeds)
    if args.only != "accuracy":
        cost(args.data, args.rounds)


def cost(directory: Path, rounds: int) -> None:
    """Print the table of costs."""
    examples = data.load(data.CLASSIFICATION[0], directory)
    X, y = examples.rows, np.where(examples.labels > 0, 1.0, -1.0)
    ways = {"rows": (learn_rows, rows_of(X, y)), "events": (learn_events, events_of(X, y))}
    loss = f"{loss_alone(y, 50):.0f}"
    lines = []
    for name, make in LEARNERS.items():
        for way, (learn, pieces) in ways.items():
            cost, report = measured(make, learn, pieces * TIMES, rounds)
            lines.append([name, way, *cost.cells(), loss])
        print(f"{name}: {report}\n", flush=True)
    print(f"a9a repeated {TIMES} times, memory of {MEMORY:,} bytes: nanoseconds per event\n")
    slower = [f"slowdown, first {EARLY:,}", "slowdown, rest"]
    head = ["learner", "input", "alone", "tracked", *slower, "solver, share of a core", "bare loss"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
