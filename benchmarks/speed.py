"""Compare speed and memory with river, scikit-learn and Vowpal Wabbit.

python -m benchmarks.speed [--events N] [--rounds N] [--peers]
"""

import argparse
import multiprocessing
import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy import sparse

from benchmarks import peers, single_events
from benchmarks.report import Run, Timing, alternate, resident_bytes, table
from benchmarks.workload import (
    BITS,
    FEATURES,
    NAMES,
    WIDE,
    Comparison,
    Prepare,
    Workload,
    default,
    dual_averaging,
    hashed,
    make_rows,
    make_workload,
    pegasos,
    penalized,
)

if TYPE_CHECKING:
    from river.base import Classifier
    from sklearn.linear_model import SGDClassifier

    import streamlearn as sl
    from benchmarks.data import Labels, Rows
    from benchmarks.peers import Event

Learner = TypeVar("Learner", bound="Classifier")

DIMENSIONS = (10_000, 100_000, 1_000_000, 10_000_000)
PASSES = 30  # of two threads, so that the kernel has time to move each to its own core
OURS = "streamlearn"


def iterate(events: "Sequence[Event]") -> None:
    """Visit every value: the minimum for any reader of dicts."""
    for event in events:
        deque(event.values(), maxlen=0)


def look_up(events: "Sequence[Event]", slots: Mapping[Hashable, int]) -> None:
    """Visit every name and find its slot in a dict."""
    find = slots.__getitem__
    for event in events:
        deque(map(find, event), maxlen=0)


def read_arrays(rows: "Rows") -> None:
    """Visit every index and value: the minimum for any reader of rows."""
    rows.indices.sum()
    rows.data.sum()


class Paths:
    """The code paths from the workload to a learner, which is created outside the clock."""

    def __init__(self, work: Workload) -> None:
        self.work = work

    def events(self, make: "Callable[[], Classifier]") -> Prepare:
        """Time `learn_one` on dicts of numbers."""
        return lambda: partial(peers.learn_events, make(), self.work.events, self.work.labels)

    def strings(self, make: "Callable[[], Classifier]") -> Prepare:
        """Time `learn_one` on dicts of strings."""
        return lambda: partial(peers.learn_events, make(), self.work.strings, self.work.labels)

    def rows(self, make: "Callable[[], sl.LinearClassifier]") -> Prepare:
        """Time `learn_rows`."""
        return lambda: partial(make().learn_rows, self.work.rows, self.work.signs)

    def wide(self, make: "Callable[[], sl.LinearClassifier]") -> Prepare:
        """Time `learn_rows` of long rows."""
        work = self.work
        return lambda: partial(make().learn_rows, work.wide, work.signs[: work.wide.shape[0]])

    def sklearn(self, make: "Callable[[], SGDClassifier]") -> Prepare:
        """Time `partial_fit` of all rows."""
        return lambda: partial(peers.partial_fit, make(), self.work.rows, self.work.signs)

    def text(self) -> Run:
        """Time Vowpal Wabbit from start to end."""
        return partial(peers.vowpal_wabbit, self.work.text, bits=18)


def comparisons(work: Workload) -> Iterator[Comparison]:
    """Generate the comparisons of the speed table."""
    by = Paths(work)
    slots: dict[Hashable, int] = {f"name{column}": column for column in range(NAMES)}
    yield Comparison(
        "`learn_one`, dicts, l1 dual averaging",
        by.events(dual_averaging),
        {
            "river LogisticRegression SGD": (by.events(peers.river_sgd), 4),
            "river LogisticRegression l1": (by.events(peers.river_l1), 10),
            "river LogisticRegression FTRLProximal": (by.events(peers.river_ftrl), 18),
        },
        {
            "iterate the dicts": lambda: partial(iterate, work.events),
            "iterate and find the slots": lambda: partial(look_up, work.events, slots),
        },
    )
    yield Comparison(
        "`learn_rows`, CSR, l1 dual averaging",
        by.rows(dual_averaging),
        {"sklearn SGDClassifier l1, partial_fit": (by.sklearn(peers.sklearn_l1), 6)},
        {
            "sum the arrays": lambda: partial(read_arrays, work.rows),
            "scipy's `X @ w`": lambda: partial(work.rows.dot, np.ones(NAMES)),
        },
    )
    yield Comparison(
        "`learn_rows`, CSR, Pegasos",
        by.rows(pegasos),
        {"sklearn SGDClassifier hinge l2, partial_fit": (by.sklearn(peers.sklearn_pegasos), 2)},
        {},
    )
    yield Comparison(
        "`learn_one`, dicts, default model",
        by.events(default),
        {"river LogisticRegression SGD": (by.events(peers.river_sgd), 2.5)},
        {},
    )
    yield Comparison(
        "`learn_rows`, CSR, default model",
        by.rows(default),
        {"Vowpal Wabbit, its own text file": (by.text, 2)},
        {},
    )
    paths = {
        "`learn_one`, dicts": by.events,
        "`learn_rows`, CSR": by.rows,
        f"`learn_rows`, CSR, {WIDE} features": by.wide,
    }
    for path, prepare in paths.items():
        name = f"{path}, the default under l1"
        yield Comparison(name, prepare(penalized), {"the default": (prepare(default), 1 / 1.6)}, {})
    yield Comparison(
        f"`learn_one`, hashed strings, 2^{BITS} slots",
        by.strings(hashed),
        {
            "river FeatureHasher, LogisticRegression": (
                by.strings(lambda: peers.river_hashed(BITS)),
                10,
            )
        },
        {},
    )


def speeds(
    compared: Iterable[Comparison], events: int, *, rounds: int, ours: bool
) -> Iterator[list[str]]:
    """Time each comparison; generate a line for each peer and each limit."""
    for comparison in compared:
        sides = {name: prepare for name, (prepare, _) in comparison.peers.items()}
        mine = {OURS: comparison.ours} if ours else {}
        timings = alternate({**mine, **sides, **comparison.limits}, rounds)
        for name in [*sides, *comparison.limits]:
            least = comparison.peers[name][1] if name in sides else None
            label = name if name in sides else f"limit: {name}"
            yield _line(comparison.path, label, timings.get(OURS), timings[name], events, least)


def _line(
    path: str, name: str, mine: Timing | None, other: Timing, events: int, least: float | None
) -> list[str]:
    """Format one line of the table; a side that did not run is left blank."""
    required = "" if least is None else f"{least:g}x"
    if mine is None:
        return [path, "", name, other.per_event(events), "", required]
    middle, low, high = mine.ratio(other)
    ratio = f"{middle:.2f}x ({low:.2f} to {high:.2f})"
    return [path, mine.per_event(events), name, other.per_event(events), ratio, required]


def dimensions(events: int, rounds: int) -> Iterator[list[str]]:
    """Time a second pass over events with more and more names, all of them used or only few.

    The work is the same; names spread over a table larger than the caches cost cache misses.
    """
    few, signs = make_rows(events, DIMENSIONS[0])
    for columns in DIMENSIONS:
        spread, labels = make_rows(events, columns)
        parts = (few.data, few.indices, few.indptr)
        sides = {
            "few": partial(_second_pass, sparse.csr_array(parts, shape=(events, columns)), signs),
            "spread": partial(_second_pass, spread, labels),
        }
        timings = alternate(sides, rounds)
        yield [f"{columns:,}", *(timings[side].per_event(events) for side in sides)]


def _second_pass(rows: "Rows", labels: "Labels") -> Run:
    learner = dual_averaging()
    learner.learn_rows(rows, labels)
    return partial(learner.learn_rows, rows, labels)


def _learn_often(learner: "sl.LinearClassifier", work: Workload) -> None:
    for _ in range(PASSES):
        learner.learn_rows(work.rows, work.signs)


def _each_learns(learners: "Sequence[sl.LinearClassifier]", work: Workload) -> None:
    for learner in learners:
        _learn_often(learner, work)


def threads(work: Workload, rounds: int) -> str:
    """Compare two learners on two threads with the same learners one after the other."""

    def in_turn() -> Run:
        pair = [dual_averaging(), dual_averaging()]
        return partial(_each_learns, pair, work)

    def together() -> Run:
        pair = [dual_averaging(), dual_averaging()]
        workers = [threading.Thread(target=_learn_often, args=(learner, work)) for learner in pair]
        return partial(_join, workers)

    timings = alternate({"together": together, "in turn": in_turn}, rounds)
    middle, low, high = timings["together"].ratio(timings["in turn"])
    return f"{middle:.2f}x ({low:.2f} to {high:.2f}), required 1.7x"


def _join(workers: Sequence[threading.Thread]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def grown(side: str) -> tuple[int, int]:
    """Fill a new learner with as many names as slots; return process growth and saved bytes."""
    return _grown(hashed(), _saved) if side == OURS else _grown(peers.river_hashed(BITS), _pickled)


def _grown(learner: "Learner", size: Callable[[Learner], int]) -> tuple[int, int]:
    before = resident_bytes()
    for first in range(0, 2**BITS, FEATURES):
        event: Event = {f"field{k}": f"name{first + k}" for k in range(FEATURES)}
        learner.learn_one(event, first % 3 == 0)
    return resident_bytes() - before, size(learner)


def _saved(learner: "sl.LinearClassifier") -> int:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model"
        learner.save(path)
        return path.stat().st_size


def _pickled(learner: "Classifier") -> int:
    return len(pickle.dumps(learner))


def memory(sides: Sequence[str]) -> Iterator[list[str]]:
    """Measure each side in its own process, so that memory is not shared or reused."""
    spawn = multiprocessing.get_context("spawn")
    for side in sides:
        with spawn.Pool(1) as pool:
            process, saved = pool.apply(grown, (side,))
        yield [side, f"{process / 1e6:.1f} MB", f"{saved / 1e6:.1f} MB"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="run only the peers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = make_workload(args.events, Path(directory))
        head = ["code path", f"{OURS}, us/event", "peer", "peer, us/event", "ratio", "required"]
        print(f"{args.events:,} events, median of {args.rounds} rounds (fastest to slowest)\n")
        for compared in (comparisons(work), single_events.comparisons(work)):
            lines = speeds(compared, args.events, rounds=args.rounds, ours=not args.peers)
            print(table(head, lines), "\n")
        if not args.peers:
            head = ["names", "us/event, few names used", "us/event, all names used"]
            print(table(head, dimensions(args.events, args.rounds)), "\n")
            print("Speedup of two learners on two threads over one after the other:")
            print(threads(work, args.rounds), "\n")
    sides = ["river"] if args.peers else [OURS, "river"]
    print(f"Memory of 2^{BITS} hashed names: l1 dual averaging, river SGD; required: under 40 MB\n")
    print(table(["library", "process growth", "saved model"], memory(sides)))


if __name__ == "__main__":
    main()
