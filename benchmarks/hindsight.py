"""Compare the hindsight solvers with those of scikit-learn, celer and skglm, to the same gap.

python -m benchmarks.hindsight [--data DIR] [--only NAME] [--rounds N]

Our solvers stop at a certified gap. Each peer gets the loosest tolerance at which its objective is
within that gap of the optimum. A peer cannot know this tolerance; the search for it is not timed.
"""

import argparse
import importlib
import importlib.util
import math
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import streamlearn as sl
from benchmarks import shards as on_ray
from benchmarks.data import HOME, Source, load
from benchmarks.report import Run, alternate
from benchmarks.sparse_solvers import GAP_SHARE, in_child, peers_of, sparse_tasks
from streamlearn.hindsight import METHODS, Problem, solve

if TYPE_CHECKING:
    from benchmarks.data import Labels, Rows
    from streamlearn.losses import Loss
    from streamlearn.penalties import Penalty

Fit: TypeAlias = Callable[[float], Any]  # fits a model to a tolerance

GAP = 1e-3
COVTYPE = Source("covtype", "covtype.binary.scale01.svm.gz", shuffled=True)
SPAMBASE = Source("spambase", "spambase.svm.gz")  # features of very different size
RCV1 = Source("rcv1v2_ccat", "rcv1v2_ccat.svm.gz")
TOLERANCES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)
SHARDS = 2
ALL_ROWS = 10**9
PATIENCE = 5  # seconds for a peer's fit
TRIAL = 2.0  # seconds for each of our methods in the comparison of all
EPOCHS = 200  # of a peer

Lines: TypeAlias = Iterator[list[str]]  # a table, beginning with its header


@dataclass(frozen=True)
class Task:
    """One problem on one data set."""

    name: str
    rows: "Rows"
    signs: "Labels"
    loss: "Loss"
    penalty: "Penalty"

    def solve(self, method: str, gap: float = GAP, seconds: float = math.inf) -> Any:
        """Solve the task by one of our methods, with a time limit."""
        began = time.perf_counter()
        return solve(
            self.rows,
            self.signs,
            self.loss,
            self.penalty,
            method=method,
            gap=gap,
            callback=lambda _: time.perf_counter() - began > seconds,
        )

    def objective(self, w: Any) -> float:
        """Return J(w)."""
        losses = self.loss.value(self.rows @ w, self.signs)
        return float(losses.mean() + self.penalty.value(w))

    def inverse(self, strength: float) -> float:
        """Return scikit-learn's C."""
        return 1.0 / (strength * len(self.signs))


def tasks(
    data: Path, source: Source, loss: "Loss", penalties: Sequence["Penalty"]
) -> Iterator[Task]:
    """Generate the tasks of one data set with several penalties."""
    examples = load(source, data, ALL_ROWS)
    signs = np.where(examples.labels > 0, 1.0, -1.0)
    rows = examples.rows  # liblinear supports only 32-bit indices
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    for penalty in penalties:
        yield Task(source.name, rows, signs, loss, penalty)


def linear_svc(task: Task, tolerance: float) -> Any:
    """Fit liblinear's dual coordinate descent."""
    C = task.inverse(task.penalty.l2)
    model = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=tolerance, max_iter=EPOCHS)
    return model.fit(task.rows, task.signs)


def lightning(task: Task, tolerance: float) -> Any:
    """Fit lightning's LinearSVC, if it is installed."""
    module = importlib.import_module("lightning.classification")
    C = task.inverse(task.penalty.l2)
    return module.LinearSVC(C=C, loss="hinge", tol=tolerance).fit(task.rows, task.signs)


def loosest(task: Task, fit: Fit, optimum: float) -> float | None:
    """Return the loosest tolerance at which a peer reaches the gap in time, or None."""
    for tolerance in TOLERANCES:
        began = time.perf_counter()
        model = fit(tolerance)
        if time.perf_counter() - began > PATIENCE:
            return None
        if task.objective(np.ravel(model.coef_)) - optimum <= GAP:
            return tolerance
    return None


def compare(task: Task, method: str, peers: Mapping[str, Fit], rounds: int) -> Lines:
    """Generate a line for each peer: how many times longer it takes."""
    optimum = task.solve(method, GAP / 100, seconds=4 * PATIENCE).lower_bound
    found = {name: loosest(task, fit, optimum) for name, fit in peers.items()}
    reached = {name: tolerance for name, tolerance in found.items() if tolerance is not None}
    sides: dict[str, Callable[[], Run]] = {method: partial(partial, task.solve, method)}
    sides |= {name: partial(partial, peers[name], tol) for name, tol in reached.items()}
    timings = alternate(sides, rounds)
    for name in peers:
        line = [task.name, repr(task.penalty), f"{timings[method].median:.3f}", name]
        if name in reached:
            middle, low, high = timings[method].ratio(timings[name])
            ratio = f"{middle:.2f}x ({low:.2f} to {high:.2f})"
            yield [*line, f"{reached[name]:g}", f"{timings[name].median:.3f}", ratio]
        else:
            yield [*line, "none", "", ""]


HEAD = ["data", "penalty", "streamlearn, s", "peer", "peer's tolerance", "peer, s", "ratio"]


def hinge(data: Path, rounds: int) -> Lines:
    """Hinge and l2: SDCA compared with liblinear; required ratio 1x."""
    yield HEAD
    l2 = sl.penalties.L2
    sets = ((RCV1, [l2(1e-4), l2(1e-5), l2(1e-6)]), (COVTYPE, [l2(1e-4), l2(1e-5)]))
    for source, penalties in sets:
        for task in tasks(data, source, sl.losses.Hinge(), penalties):
            peers: dict[str, Fit] = {"LinearSVC": partial(linear_svc, task)}
            if importlib.util.find_spec("lightning") is not None:
                peers["lightning"] = partial(lightning, task)
            yield from compare(task, "sdca", peers, rounds)


def l1(data: Path, rounds: int) -> Lines:
    """l1 with an intercept to a gap of 1e-4 of the optimum: Newton's method beside its peers.

    A peer is timed at the loosest tolerance at which its solution is certified by the slopes of its
    losses, scaled into the feasible set. "objective" is the ratio at the loosest tolerance at which
    its objective is as close to the optimum, which nobody knows without a certificate. Seconds of
    CPU; a ratio below 1 means that we are faster. "never": at no tolerance down to 1e-7, or not in
    5 seconds; liblinear's intercept is penalized, so that its limit is another one.
    """
    yield ["problem", "non-zeros", "peer", "certified", "objective"]
    ratios: dict[str, list[float]] = {"certified": [], "objective": []}
    for task in sparse_tasks(data):
        optimum = task.solve(1e-7)
        fastest: dict[str, list[float]] = {name: [] for name in ratios}
        nonzero, ours = str(np.count_nonzero(optimum.w)), partial(task.solve, GAP_SHARE)
        yield [task.name, nonzero, f"(streamlearn: {seconds_in_child(ours):.3f} s)", "", ""]
        for peer, fit in peers_of(task).items():
            tolerances = task.loosest(peer, optimum, PATIENCE)
            cells = []
            for name, tolerance in zip(ratios, tolerances, strict=True):
                if tolerance is None:
                    cells.append("never")
                    continue
                sides = (ours, partial(fit, tolerance))
                took = [[seconds_in_child(side) for side in sides] for _ in range(rounds)]
                fastest[name].append(median(mine / theirs for mine, theirs in took))
                cells.append(f"{fastest[name][-1]:.2f}x")
            yield [task.name, nonzero, peer, *cells]
        for name, found in fastest.items():
            ratios[name] += [max(found)] if found else []
    for name, each in ratios.items():
        title = f"{name}, beside the fastest peer"
        mean = f"{geometric_mean(each):.2f}x"
        yield [title, "", "", f"geometric mean {mean}, worst {max(each):.2f}x", ""]


def seconds_in_child(run: Run) -> float:
    """Return the seconds of CPU of a run."""
    took = in_child(run)
    if took is None:
        raise RuntimeError("a solver failed")
    return took[1]


def in_threads(n: int) -> None:
    """Compute checksums of a cached text in n threads: work without shared data."""
    text = bytes(1 << 16)

    def work() -> None:
        for _ in range(800 // n):
            zlib.crc32(text)

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def shards(data: Path, rounds: int) -> Lines:
    """A pass over the data (value and gradient) in two threads and in one; required ratio 1.6x.

    Best of many rounds, because the second core must be free. The last column is the ratio of a
    loop without shared data: what the machine allows.
    """
    yield ["data", "1 shard, ms", f"{SHARDS} shards, ms", "ratio", "ratio without data"]
    for source in (RCV1, COVTYPE):
        for task in tasks(data, source, sl.losses.Logistic(), [sl.penalties.L2(1e-4)]):
            parts = (task.rows, task.signs, task.loss, task.penalty)
            w = np.full(task.rows.shape[1], 1e-3)
            sides: dict[str, Callable[[], Run]] = {}
            for n in (1, SHARDS):
                risk = Problem(*parts, threads=n).risk
                sides[f"{n} shards"] = partial(partial, risk.value_and_gradient, w)
                sides[f"{n} threads"] = partial(partial, in_threads, n)
            best = {name: min(t.seconds) for name, t in alternate(sides, 16 * rounds).items()}
            one, two = best["1 shards"], best[f"{SHARDS} shards"]
            cores = best["1 threads"] / best[f"{SHARDS} threads"]
            millis = [f"{1e3 * one:.1f}", f"{1e3 * two:.1f}"]
            yield [task.name, *millis, f"{one / two:.2f}x", f"{cores:.2f}x"]


def bundle(data: Path, rounds: int) -> Lines:  # noqa: ARG001 - one of a family
    """The bundle method, hinge and l2 on covtype, one round: linear in m ([Teo07] section 5)."""
    yield ["rows m", "s", "iterations", "ns per row and iteration"]
    (whole,) = tasks(data, COVTYPE, sl.losses.Hinge(), [sl.penalties.L2(1e-4)])
    for m in (len(whole.signs) // 2**k for k in range(5, -1, -1)):
        part = (whole.rows[:m], whole.signs[:m], whole.loss, whole.penalty)
        task = Task(whole.name, *part)
        began = time.perf_counter()
        steps = task.solve("bundle").iterations
        took = time.perf_counter() - began
        yield [f"{m:,}", f"{took:.3f}", str(steps), f"{1e9 * took / steps / m:.1f}"]


def seconds(task: Task, method: str) -> str:
    """Return the seconds of a method to the gap, or "-" if it takes too long."""
    began = time.perf_counter()
    found = task.solve(method, seconds=TRIAL)
    return f"{time.perf_counter() - began:.2f}" if found.gap <= GAP else "-"


def methods(data: Path, rounds: int) -> Lines:  # noqa: ARG001 - one of a family
    """Seconds of each method that supports a problem, one round: the basis of `auto`."""
    l1, l2, both = sl.penalties.L1(1e-4), sl.penalties.L2, sl.penalties.ElasticNet(1e-4, 1e-4)
    names = ("auto", "sdca", "lbfgs", "newton", "owlqn")
    yield ["data", "loss", "penalty", *(f"{name}, s" for name in names)]
    for source in (RCV1, COVTYPE, SPAMBASE):
        for loss in (sl.losses.Logistic(), sl.losses.SquaredHinge()):
            for task in tasks(data, source, loss, [l2(1e-3), l2(1e-5), both, l1]):
                line = [task.name, repr(loss), repr(task.penalty)]
                for name in names:
                    takes = (
                        name == "auto"
                        or METHODS[name].why_unsupported(loss, task.penalty, fit_intercept=False)
                        is None
                    )
                    line.append(seconds(task, name) if takes else "")
                yield line


SECTIONS = {
    "shards": shards,
    "bundle": bundle,
    "hinge": hinge,
    "l1": l1,
    "methods": methods,
}


def main() -> None:
    """Print the tables, line by line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hindsight", description=__doc__)
    parser.add_argument("--data", type=Path, default=HOME)
    parser.add_argument("--only", choices=sorted(SECTIONS), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", action="store_true", help="shards on Ray: benchmarks.shards")
    args = parser.parse_args()
    if args.shards:
        on_ray.main(args.rounds)
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"Time to a gap of {GAP:g}. Tolerance none: not reached in {PATIENCE:g} s;", end=" ")
    print(f"-: not reached in {TRIAL:g} s\n")
    for name in args.only or SECTIONS:
        section = SECTIONS[name]
        print(f"{section.__doc__}\n")
        for k, line in enumerate(section(args.data, args.rounds)):
            print(f"| {' | '.join(line)} |", flush=True)
            if k == 0:
                print(f"|{' --- |' * len(line)}")
        print()


if __name__ == "__main__":
    main()
