"""Measure the cost of a regret tracker, and the accuracy of its estimates.

cost: learning with and without a tracker, for every rule. The stream is a data set repeated several
times. One learner learns it alone and one with a tracker, piece by piece in alternation. For each
piece the fastest round counts, in CPU time of the learning thread. No comparator is solved. The
cost falls with the length of the stream: at first every event is copied into the sample, later few
are. "kept" is a stream that the memory of the tracker holds, so that all are copied. "large" is the
last tenth of a long stream, of which the memory holds a large sample: no slopes are summed.

accuracy: estimates from a memory of a tenth of the set, compared with a solve over all events, for
several seeds, in percent of the progressive loss. The bracket should be at most 3% wide, the
estimate within 1%, and the truth inside for 19 of 20 seeds. Where the sample cannot say so much,
the regret is unknown. "by chance" is how wide the bracket would be if the best fixed model were
known and only its loss had to be estimated from a tenth of the events: four standard errors with
the cells of the learner's scores and its tangents.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks import data
from streamlearn.regret.comparator import costs, sample_from_snapshot
from streamlearn.regret.findings import STDERRS
from streamlearn.regret.strata import Strata
from streamlearn.regret.tangents import Tangents

L, P, R = sl.losses, sl.penalties, sl.rules
MEMORY = 500_000  # bytes; about 10,000 events
PIECE = 1_000
TIMES = 32
TIMES_KEPT = 8
MEMORY_LARGE, TIMES_LARGE = 13_000_000, 200  # more than 200,000 events, 3% of all
STEP = R.schedules.InverseSqrt(0.3)
ARGUMENTS: dict[str, tuple[Any, ...]] = {  # of the rules that need some
    "AdaGrad": (0.1,),
    "AdaGradDualAveraging": (0.3,),
    "ForwardBackward": (STEP,),
    "GradientDescent": (STEP,),
    "PolynomialAverage": (R.MirrorDescent(),),
    "TruncatedGradient": (STEP,),
}
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


def learners() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every rule, with each penalty that it takes, and the default."""
    yield "the default", sl.LinearClassifier
    for name in (name for name in R.__all__ if name != "Rule"):
        rule = getattr(R, name)(*ARGUMENTS.get(name, ()))
        for penalty in (P.Zero(), P.L1(1e-3), P.L2(1e-3)):
            for loss in (L.Logistic(), L.Hinge()):
                make = partial(sl.LinearClassifier, rule, loss, penalty)
                try:
                    make().learn_one({"x": 1.0}, True)
                except sl.IncompatibleError:
                    continue
                yield f"{name}, {type(penalty).__name__}", make
                break


@dataclass(frozen=True)
class Cost:
    """Nanoseconds per event of each piece, alone and tracked."""

    alone: Any
    tracked: Any

    def slower(self, pieces: slice = slice(None)) -> str:
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
        ]


def measured(
    make: Callable[[], Any],
    learn: Callable[[Any, Any, Any], None],
    pieces: Sequence[Piece],
    memory: int | None,
    rounds: int,
) -> Cost:
    """Measure the cost of learning the pieces."""
    took = np.full((rounds, len(pieces), 2), np.inf)
    ways = (copied(learn), copied(learn))
    for turn in range(rounds):
        with sl.regret.Tracker(make(), memory_bytes=memory, seed=0) as tracker:
            sides = (make(), tracker)
            gc.collect()
            gc.disable()
            for i, piece in enumerate(pieces):
                for side in (0, 1) if (i + turn) % 2 else (1, 0):
                    start = time.thread_time()
                    ways[side](sides[side], *piece)
                    took[turn, i, side] = time.thread_time() - start
            gc.enable()
    sizes = np.array([len(piece[1]) for piece in pieces])
    alone, tracked = 1e9 * took.min(axis=0).T / sizes
    return Cost(alone, tracked)


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

    The cells of the learner's scores and its tangents explain a part, as in the estimates.
    """
    best, sums = ledger.findings.minimum.solution, ledger.sums
    snapshot = ledger.shared.reservoir.snapshot()
    sample = sample_from_snapshot(snapshot, sums.events, ledger.task, best.w.shape[-1])
    _, cells, slopes = sums.cells.samples()
    strata = Strata(cells, sample.weights, sums.cell_weights())
    summed = sample.X.T @ (sample.weights * slopes)
    if ledger.intercept != "inside":
        summed = np.append(sample.weights @ slopes, summed)
    tangents = Tangents.of(slopes, summed, sample.X.shape[1], ledger.intercept)
    sample = replace(sample, tangents=tangents)
    error = strata.error(costs(sample, ledger.task, best).losses)
    return float(2.0 * STDERRS * error * np.sqrt(10.0 * (1.0 - 0.1)))


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
    rows, events = rows_of(X, y), events_of(X, y)
    slower = [f"slower, first {EARLY:,}", "slower, rest", "slower, kept", "events, rest"]
    head = ["learner", "alone", "tracked", *slower, "large"]
    print(f"a9a repeated {TIMES} times, memory of {MEMORY:,} bytes: nanoseconds per row;")
    print(f"the loss in a bare loop: {loss_alone(y, 50):.0f}\n")
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for name, make in learners():
        cost = measured(make, learn_rows, rows * TIMES, MEMORY, rounds)
        kept = measured(make, learn_rows, rows * TIMES_KEPT, None, rounds)
        large = measured(make, learn_rows, rows * TIMES_LARGE, MEMORY_LARGE, min(rounds, 2))
        last = slice(len(large.alone) * 9 // 10, None)
        one_by_one = measured(make, learn_events, events * TIMES_KEPT, MEMORY, 1)
        late = slice(len(one_by_one.alone) // 2, None)
        line = [name, *cost.cells(), kept.slower(), one_by_one.slower(late), large.slower(last)]
        print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
