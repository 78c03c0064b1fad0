"""Sparsity and error of SGD, TG, RDA and the batch solution ([Xiao10] Figures 3 and 4).

Two digits of MNIST, l1-logistic regression, one pass: non-zeros while learning; errors and
non-zeros over lambda, of the last and of the averaged weights, over random orders.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.papers import digits
from benchmarks.papers.digits import ALL, BASIC, ENHANCED, RDA_25, SGD, TG_10
from benchmarks.papers.finding import Finding, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.data import Labels
    from benchmarks.papers.digits import Method, Pair, Spread, Weights

SHOWN = (0.1, 10.0)  # lambdas of Figure 3
TABLED = (0.1, 1.0, 10.0)
AVERAGES = ("last", "uniform")


@dataclass(frozen=True)
class Trial:
    """A method at one lambda over all orders: error (%) and non-zeros."""

    error: "Spread"
    nonzero: "Spread"


Key: TypeAlias = tuple[str, float, str]  # method, lambda, average
Trials: TypeAlias = Mapping[Key, Trial]
Paths: TypeAlias = Mapping[tuple[str, float], "Labels"]


def path(pair: "Pair", method: "Method", strength: float) -> "Labels":
    """Return the number of non-zeros after each example."""
    m = len(pair.labels)
    model = digits.learner(method.make(m), strength)
    counts = np.empty(m)
    for t in range(m):
        model.learn_rows(pair.rows[t : t + 1], pair.labels[t : t + 1])
        w = model.coef(pair.rows.shape[1])
        counts[t] = np.count_nonzero(w) if method.exact else np.sum(np.abs(w) > digits.ROUNDED)
    return counts


def roughness(counts: "Labels") -> float:
    """Return the mean change of the count per example, in the second half."""
    return float(np.abs(np.diff(counts[len(counts) // 2 :])).mean())


def trials(
    pair: "Pair", methods: Sequence["Method"], strengths: Sequence[float], permutations: int
) -> Trials:
    """Run every method at every lambda."""
    each: dict[Key, list[Weights]] = {}
    for ordered in digits.shuffled(pair, permutations):
        for method, strength, average in product(methods, strengths, AVERAGES):
            one = digits.learned(ordered, method, strength, average)
            each.setdefault((method.name, strength, average), []).append(one)
    return {key: summary(some) for key, some in each.items()}


def summary(each: Sequence["Weights"]) -> Trial:
    """Return mean and standard deviation over the orders."""
    return Trial(
        digits.spread([100.0 * one.error for one in each]),
        digits.spread([one.nonzero for one in each]),
    )


def lines(found: Trials, best: Mapping[float, "Weights"]) -> Iterator[list[str]]:
    """Generate a line of the table for each method and some lambdas."""
    for strength in TABLED:
        for method in ALL:
            both = [found[method.name, strength, average] for average in AVERAGES]
            cells = [(digits.shown(*t.error, 2), digits.shown(*t.nonzero, 0)) for t in both]
            yield [f"{strength:g}", method.name, *cells[0], *cells[1]]
        alone = [f"{100 * best[strength].error:.2f}", f"{best[strength].nonzero}"]
        yield [f"{strength:g}", "batch", *alone, "", ""]


def claims(found: Trials, best: Mapping[float, "Weights"], paths: Paths) -> dict[str, bool]:
    """Check what the paper says about its figures."""
    rough = {key: roughness(counts) for key, counts in paths.items()}
    rda = {s: found[RDA_25.name, s, "last"].nonzero[0] for s in TABLED}
    high = TABLED[-1]
    averaged = {m.name: found[m.name, high, "uniform"] for m in ENHANCED}
    steady = [found[m.name, high, "last"].error[1] for m in (RDA_25, TG_10, SGD)]
    return {
        "RDA's non-zeros are smooth, TG's oscillate": all(
            rough[TG_10.name, s] > 5.0 * rough[RDA_25.name, s] for s in SHOWN
        ),
        "RDA's non-zeros are within a factor of 1.5 of the batch solution's": all(
            best[s].nonzero / 1.5 <= rda[s] <= 1.5 * best[s].nonzero for s in TABLED
        ),
        "SGD's weights are dense: twice RDA's or more": all(
            found[SGD.name, s, "last"].nonzero[0] >= 2.0 * rda[s] for s in TABLED
        ),
        "of the last weights, RDA's errors vary least": steady[0] == min(steady),
        "with a large lambda SGD's and TG's averages err less than RDA's, with more weights": all(
            averaged[m.name].error[0] < averaged[RDA_25.name].error[0]
            and averaged[m.name].nonzero[0] > averaged[RDA_25.name].nonzero[0]
            for m in (SGD, TG_10)
        ),
    }


def picture(
    found: Trials, best: Mapping[float, "Weights"], paths: Paths
) -> Callable[["Figure"], None]:
    """Draw basic and enhanced methods (rows): non-zeros over time, errors and non-zeros."""
    strengths = sorted(best)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(2, len(SHOWN) + 4, squeeze=False)
        for row, methods in zip(axes, (BASIC, ENHANCED), strict=True):
            for axis, strength in zip(row, SHOWN, strict=False):
                for method in methods:
                    axis.plot(paths[method.name, strength], label=method.name, linewidth=0.5)
                axis.set(title=f"non-zeros of w_t, lambda = {strength:g}", xlabel="t")
            for k, average in enumerate(AVERAGES):
                curves(row[2 + 2 * k], row[3 + 2 * k], methods, average)
            row[2].legend(fontsize=8, loc="upper left")

    def curves(errors: "Axes", counts: "Axes", methods: Sequence["Method"], average: str) -> None:
        for method in methods:
            each = [found[method.name, s, average] for s in strengths]
            for axis, values in (
                (errors, [trial.error for trial in each]),
                (counts, [trial.nonzero for trial in each]),
            ):
                mean, deviation = zip(*values, strict=True)
                axis.errorbar(strengths, mean, deviation, label=method.name, capsize=2, lw=1.2)
        errors.plot(strengths, [100 * best[s].error for s in strengths], "k--", label="batch")
        counts.plot(strengths, [best[s].nonzero for s in strengths], "k--")
        which = "last" if average == "last" else "averaged"
        errors.set(title=f"test error of the {which} w, %", xscale="log", yscale="log")
        counts.set(title=f"non-zeros of the {which} w", xscale="log")
        plain(errors.yaxis)
        for axis in (errors, counts):
            axis.set_xlabel("lambda")

    return draw


def run(data: Path, *, quick: bool = False, permutations: int = 5) -> Finding:
    """Run on digits 6 and 7, or on synthetic images."""
    pair = digits.generated() if quick else digits.Digits(data).pair(6, 7)
    strengths = TABLED if quick else digits.LAMBDAS
    best = digits.batch(pair, strengths)
    (ordered,) = digits.shuffled(pair, 1)
    paths = {(m.name, s): path(ordered, m, s) for m in ALL for s in SHOWN}
    found = trials(pair, ALL, strengths, 3 if quick else permutations)
    return Finding(
        title=f"[Xiao10] Figures 3 and 4: digits {pair.name}, test error and non-zeros",
        head=[
            "lambda",
            "method",
            "last: error, %",
            "last: non-zeros",
            "average: error, %",
            "average: non-zeros",
        ],
        rows=list(lines(found, best)),
        claims=claims(found, best, paths),
        draw=picture(found, best, paths),
        size=(19.0, 6.0),
    )
