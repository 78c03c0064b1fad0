"""What learning on several workers costs in loss.

python -m benchmarks.fleet_quality [--sets NAME ...] [--rules NAME ...] [--workers K ...]

K copies of a model each learn events of a set, drawn at random, and are merged whenever they have
learned a number of events together, after a warm start of one copy on the first fifth. The excess
is over one learner's progressive loss on the rest. With `--delay`, each round begins at the state
of that learner instead of a merged one: what it costs alone that workers see each other's events
only after the round. With `--growing`, rounds are as short as those of a daemon at first: none is
longer than a twentieth of what was learned before. Rules are used with the parameter that is best
for one learner on the same events. Rows are shuffled, so that nothing changes within a round that a
worker could follow alone; with `--ordered`, they are as recorded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

import streamlearn as sl
from benchmarks import data
from benchmarks.report import table
from streamlearn.estimators.merging import ModelSnapshot, merge
from streamlearn.fleet.round_length import SHARE
from streamlearn.stream import Clicks, Events, Fields, decoder_of
from streamlearn.stream.packed_rows import SLOTS, STARTS, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WARM = 0.2
CLICKS = 600_000
SETS = {  # how many events are learned between merges
    "a9a": (1000, 10_000),
    "ijcnn1": (1000, 10_000),
    "rcv1v2_ccat": (1000, 10_000),
    "covtype.scale01": (100_000,),
    "clicks": (100_000,),
}
STEPS = (0.03, 0.1, 0.3, 1.0, 3.0)
L1, HINGE = sl.penalties.L1(1e-4), sl.losses.Hinge()
# how each rule is made of its parameter, and the values that are tried
RULES: dict[str, tuple[Callable[[float], Any], Sequence[float]]] = {
    "DualAveraging": (
        lambda gamma: sl.LinearClassifier(sl.rules.DualAveraging(gamma)),
        (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    ),
    "DualAveraging, l1": (
        lambda gamma: sl.LinearClassifier(sl.rules.DualAveraging(gamma), penalty=L1),
        (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    ),
    "PNormDualAveraging, l1": (
        lambda gamma: sl.LinearClassifier(sl.rules.PNormDualAveraging(gamma), penalty=L1),
        (0.1, 0.3, 1.0, 3.0, 10.0),
    ),
    "AdaGradDualAveraging": (
        lambda step: sl.LinearClassifier(sl.rules.AdaGradDualAveraging(step)),
        STEPS,
    ),
    "AdaGradDualAveraging, l1": (
        lambda step: sl.LinearClassifier(sl.rules.AdaGradDualAveraging(step), penalty=L1),
        STEPS,
    ),
    "AdaGrad": (lambda step: sl.LinearClassifier(sl.rules.AdaGrad(step)), STEPS),
    "AdaGrad, l1": (lambda step: sl.LinearClassifier(sl.rules.AdaGrad(step), penalty=L1), STEPS),
    "FTRLProximal": (lambda alpha: sl.LinearClassifier(sl.rules.FTRLProximal(alpha)), STEPS),
    "FTRLProximal, l1": (
        lambda alpha: sl.LinearClassifier(
            sl.rules.FTRLProximal(alpha), penalty=sl.penalties.L1(1.0)
        ),
        STEPS,
    ),
    "GradientDescent": (
        lambda step: sl.LinearClassifier(
            sl.rules.GradientDescent(sl.rules.schedules.InverseSqrt(step))
        ),
        (0.3, 1.0, 3.0, 10.0, 30.0),
    ),
    "ForwardBackward, l1": (
        lambda step: sl.LinearClassifier(
            sl.rules.ForwardBackward(sl.rules.schedules.InverseSqrt(step)), penalty=L1
        ),
        (0.3, 1.0, 3.0, 10.0, 30.0),
    ),
    "TruncatedGradient, l1": (
        lambda step: sl.LinearClassifier(
            sl.rules.TruncatedGradient(sl.rules.schedules.InverseSqrt(step)), penalty=L1
        ),
        (0.3, 1.0, 3.0, 10.0, 30.0),
    ),
    "Pegasos": (
        lambda l2: sl.LinearClassifier(
            sl.rules.Pegasos(), loss=sl.losses.Logistic(), penalty=sl.penalties.L2(l2)
        ),
        (1e-5, 1e-4, 1e-3, 1e-2),
    ),
    "Adaptive": (
        lambda l2: sl.LinearClassifier(
            sl.rules.Adaptive(), loss=sl.losses.Logistic(), penalty=sl.penalties.L2(l2)
        ),
        (1e-4, 1e-3, 1e-2),
    ),
    "PassiveAggressive": (
        lambda C: sl.LinearClassifier(sl.rules.PassiveAggressive("I", C), loss=HINGE),
        (0.001, 0.01, 0.1, 1.0),
    ),
    "AROW": (lambda r: sl.LinearClassifier(sl.rules.AROW(r), loss=HINGE), (0.1, 1.0, 10.0, 100.0)),
    "NormalizedAdaptive": (
        lambda rate: sl.LinearClassifier(sl.rules.NormalizedAdaptive(rate)),
        (0.3, 1.0, 3.0),
    ),
    "DiagonalNewton": (
        lambda prior: sl.LinearClassifier(sl.rules.DiagonalNewton(prior)),
        (1.0, 3.0, 10.0),
    ),
    "MirrorDescent": (
        lambda rate: sl.LinearClassifier(sl.rules.MirrorDescent(rate)),
        (1.0, 4.0, 16.0),
    ),
    "CoinBetting": (lambda _: sl.LinearClassifier(sl.rules.CoinBetting()), (1.0,)),
    "default": (lambda _: sl.LinearClassifier(), (1.0,)),
}


@dataclass(frozen=True)
class Run:
    """The mean loss after the warm start, and the non-zero weights in the end."""

    loss: float
    nonzero: int


def load(name: str, *, ordered: bool) -> data.Examples:
    """Return a set, shuffled unless it is `ordered`."""
    if name == "clicks":
        return clicks(CLICKS)
    [source] = [one for one in data.CLASSIFICATION if one.name == name]
    found = data.load(source, data.HOME, 1 << 30)
    if ordered:
        return found
    order = np.random.default_rng(1).permutation(len(found.labels))
    return data.Examples(name, found.rows[order], found.labels[order])


def clicks(count: int) -> data.Examples:
    """Return synthetic clicks, hashed to 2^16 slots."""
    stream, events = Clicks(seed=0), Events()
    decoder = decoder_of("json", sl.Hashing(16), Fields(label=stream.label))
    decoder.decode(stream.values(0, count), events)
    arrays = events.packed()
    rows = csr_array((arrays[VALUES], arrays[SLOTS], arrays[STARTS]), shape=(count, 1 << 16))
    clicked = np.array([stream.clicked(k) for k in range(count)])
    return data.Examples("clicks", rows, np.where(clicked, 1.0, -1.0))


def run(
    make: Callable[[], Any],
    examples: data.Examples,
    count: int = 1,
    between: int | None = None,
    *,
    delayed: bool = False,
    growing: bool = False,
) -> Run:
    """Let workers learn a set; `between` is None if they are never merged.

    With `delayed`, they are not merged, but begin each round at the state of one learner of all.
    """
    model = make()
    X, y = examples.rows, examples.labels
    start = int(len(y) * WARM)
    model.learn_rows(X[:start], y[:start])
    workers = [model.clone() for _ in range(count)]
    for worker in workers:
        worker.restore(model.state())
    bases = [ModelSnapshot(worker) for worker in workers]
    loss_of = model.loss or sl.losses.Logistic()
    total, step, first = 0.0, between or len(y), start
    shares = np.random.default_rng(0).integers(0, count, len(y))
    while first < len(y):
        size = min(step, int(SHARE * first)) if growing and between is not None else step
        for k, worker in enumerate(workers):
            mine = first + np.flatnonzero(shares[first : first + size] == k)
            if len(mine):
                scores = worker.progressive_rows(X[mine], y[mine])
                total += float(np.sum(loss_of.value(scores, y[mine])))
        if delayed:
            model.learn_rows(X[first : first + size], y[first : first + size])
            for worker in workers:
                worker.restore(model.state())
        elif between is not None:
            learned = [base.moved() for base in bases]
            for base, own in zip(bases, learned, strict=True):
                base.restore(own)
            moved = merge(model, learned)
            for base in bases:
                base.advance(moved)
        first += size
    shown = workers[0] if between is None else model
    return Run(total / (len(y) - start), int(np.count_nonzero(shown.engine.learner.coefficients())))


def quality(
    name: str, rules: Sequence[str], counts: Sequence[int], *, ordered: bool, **how: bool
) -> None:
    """Print the excess loss on a set."""
    examples, lines, delayed = load(name, ordered=ordered), [], how["delayed"]
    for rule in rules:
        make, parameters = RULES[rule]
        tuned = {p: run(partial(make, p), examples) for p in parameters}
        best = min(tuned, key=lambda p: tuned[p].loss)
        single = tuned[best]
        for count in counts:
            sizes = SETS[name] if delayed else (*SETS[name], None)
            runs = [run(partial(make, best), examples, count, size, **how) for size in sizes]
            excess = [f"{one.loss - single.loss:+.4f}" for one in runs]
            if not delayed:
                ratios = [one.nonzero / max(single.nonzero, 1) for one in runs[:-1]]
                excess.append(" ".join(f"{ratio:.2f}" for ratio in ratios))
            lines.append([rule, f"{best:g}", f"{single.loss:.4f}", str(count), *excess])
    between = [f"{size:,} between merges" for size in SETS[name]]
    print(f"{name}: {len(examples.labels):,} events\n")
    head = ["rule", "parameter", "one learner", "workers", *between]
    print(table(head if delayed else [*head, "never merged", "non-zeros"], lines), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_quality", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=[*SETS])
    parser.add_argument("--rules", nargs="+", default=[*RULES], choices=[*RULES])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--ordered", action="store_true")
    parser.add_argument("--delay", action="store_true")
    parser.add_argument("--growing", action="store_true")
    args = parser.parse_args()
    how = {"ordered": args.ordered, "delayed": args.delay, "growing": args.growing}
    for name in args.sets:
        quality(name, args.rules, args.workers, **how)


if __name__ == "__main__":
    main()
