"""What a tracker costs: learning with and without it, and the regrets that it finds.

The stream is a data set several times over, for the comparator is solved at growing intervals:
what it costs an event falls with the length of the stream.

python -m benchmarks.regret [--data DIR] [--rounds N]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import streamlearn as sl
from benchmarks import data
from benchmarks.report import alternate, table

L, P, R = sl.losses, sl.penalties, sl.rules
LEARNERS: dict[str, Callable[[], Any]] = {
    "Pegasos": lambda: sl.LinearClassifier(R.Pegasos(), L.Logistic(), P.L2(1e-4)),
    "dual averaging, l1": lambda: sl.LinearClassifier(R.DualAveraging(), L.Logistic(), P.L1(1e-3)),
    "default": sl.LinearClassifier,
}
MEMORY = 10_000
TIMES = {"rows": 16, "events": 4}


def rows_of(model: Any, X: Any, y: Any) -> Callable[[], object]:
    """Learn the rows of a matrix."""
    return lambda: model.learn_rows(X, y)


def events_of(model: Any, events: list[dict[str, float]], y: list[float]) -> Callable[[], object]:
    """Learn events one at a time."""

    def run() -> None:
        for event, label in zip(events, y, strict=True):
            model.learn_one(event, label)

    return run


def given_times(times: int, X: Any, y: Any) -> tuple[Any, Any]:
    """A stream so many times over."""
    if isinstance(X, list):
        return X * times, y * times
    return scipy.sparse.vstack([X] * times, format="csr"), np.tile(y, times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME, help="where the data sets are")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    examples = data.load(data.CLASSIFICATION[0], args.data)
    X, y = examples.rows, examples.labels
    events = [
        {str(j): x for j, x in zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)}
        for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    ]
    labels = y.tolist()
    lines = []
    for name, make in LEARNERS.items():
        trackers: list[Any] = []

        def tracked(make: Callable[[], Any] = make, trackers: list[Any] = trackers) -> Any:
            if trackers:
                trackers.pop().close()
            trackers.append(sl.regret.Tracker(make(), memory=MEMORY, seed=0))
            return trackers[-1]

        for way, run, given in (("rows", rows_of, (X, y)), ("events", events_of, (events, labels))):
            long = given_times(TIMES[way], *given)
            sides = {
                "alone": lambda run=run, long=long, make=make: run(make(), *long),
                "tracked": lambda run=run, long=long, tracked=tracked: run(tracked(), *long),
            }
            took = alternate(sides, args.rounds)
            slower = min(took["tracked"].seconds) / min(took["alone"].seconds) - 1.0
            lines.append(
                [
                    name,
                    way,
                    took["alone"].per_event(TIMES[way] * len(y)),
                    took["tracked"].per_event(TIMES[way] * len(y)),
                    f"{100 * slower:+.1f}%",
                ]
            )
        report = trackers[-1].report()
        print(f"{name}: {report}\n")
    print(f"a9a {TIMES} times over, memory {MEMORY}: microseconds an event\n")
    print(table(["learner", "learns", "alone", "tracked", "slower (least to least)"], lines))


if __name__ == "__main__":
    main()
