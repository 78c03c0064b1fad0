"""A tenth of the examples of digits 3 and 8: which methods overfit ([Xiao10] Figure 8).

Ten disjoint parts of the training set, each learned in random orders and tested on all; l1-logistic
regression over lambda.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.papers import digits
from benchmarks.papers.digits import ALL, BASIC, ENHANCED, RDA_0, RDA_25
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.papers.digits import Pair, Spread, Weights

AVERAGES = ("last", "uniform")
BATCH = "batch"

Key: TypeAlias = tuple[str, float, str]  # method, lambda, average; the batch solution is "last"
Found: TypeAlias = Mapping[Key, tuple["Spread", "Spread"]]


def learned(
    pair: "Pair", strengths: Sequence[float], parts: int, permutations: int, seed: int = 0
) -> Found:
    """Measure error (%) and non-zeros: means over the orders, and their spread over the parts."""
    rng = np.random.default_rng(seed)
    whole = np.array_split(rng.permutation(len(pair.labels)), parts)
    each: dict[Key, list[tuple[float, float]]] = {}
    for chosen in whole:
        few = pair.part(chosen)
        for s, solution in digits.batch(few, strengths).items():
            each.setdefault((BATCH, s, "last"), []).append(mean_error_and_size([solution]))
        orders = list(digits.shuffled(few, permutations))
        for method, s, average in product(ALL, strengths, AVERAGES):
            tried = [digits.learned(ordered, method, s, average) for ordered in orders]
            each.setdefault((method.name, s, average), []).append(mean_error_and_size(tried))
    return {
        key: (digits.spread([v[0] for v in values]), digits.spread([v[1] for v in values]))
        for key, values in each.items()
    }


def mean_error_and_size(tried: Sequence["Weights"]) -> tuple[float, float]:
    """Return mean error (%) and mean number of non-zeros."""
    errors = [100.0 * one.error for one in tried]
    return float(np.mean(errors)), float(np.mean([one.nonzero for one in tried]))


def excess(found: Found, name: str, average: str = "last") -> float:
    """Return how much higher the error of the smallest lambda is than that of the best."""
    errors = {s: found[name, s, average][0][0] for n, s, a in found if (n, a) == (name, average)}
    return errors[min(errors)] - min(errors.values())


def claims(found: Found, least: float) -> dict[str, bool]:
    """Check that batch optimization overfits and that online methods mostly do not."""
    batch = found[BATCH, least, "last"][0][0]
    averages = [method.name for method in (RDA_0, RDA_25)]
    return {
        "the batch solution overfits: its error is 10% higher with the smallest lambda": excess(
            found, BATCH
        )
        >= 0.1 * (batch - excess(found, BATCH)),
        "RDA's averages overfit at most a quarter as much": all(
            excess(found, name, "uniform") <= 0.25 * excess(found, BATCH) for name in averages
        ),
        "with the smallest lambda their error is below the batch solution's": all(
            found[name, least, "uniform"][0][0] < batch for name in averages
        ),
    }


def picture(found: Found, strengths: Sequence[float]) -> Callable[["Figure"], None]:
    """Draw errors and non-zeros of last and averaged weights; basic and enhanced methods."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(2, 4, squeeze=False)
        for row, methods in zip(axes, (BASIC, ENHANCED), strict=True):
            names = [*(method.name for method in methods), BATCH]
            for k, axis in enumerate(row):
                average, what = AVERAGES[k // 2], k % 2
                for name in names:
                    which = "last" if name == BATCH else average
                    values = [found[name, s, which][what] for s in strengths]
                    mean, deviation = zip(*values, strict=True)
                    style = "k--" if name == BATCH else "-"
                    axis.errorbar(
                        strengths, mean, deviation, fmt=style, label=name, lw=1.2, capsize=2
                    )
                shown = "last" if average == "last" else "averaged"
                title = (f"test error of the {shown} w, %", f"non-zeros of the {shown} w")[what]
                axis.set(title=title, xscale="log", xlabel="lambda")
            row[0].legend(fontsize=8, loc="upper left")

    return draw


def run(data: Path, *, quick: bool = False, permutations: int = 2) -> Finding:
    """Run on digits 3 and 8, or on synthetic images."""
    pair = digits.generated(600, flipped=0.1) if quick else digits.Digits(data).pair(3, 8)
    strengths = (0.01, 1.0, 10.0) if quick else digits.LAMBDAS
    found = learned(pair, strengths, 5 if quick else 10, 1 if quick else permutations)
    rows = []
    for name in (*(method.name for method in ALL), BATCH):
        for s in strengths:
            if s in (0.01, 0.1, 1.0, 10.0):
                cells = [digits.shown(*found[name, s, "last"][k], 2 - 2 * k) for k in (0, 1)]
                if name == BATCH:
                    cells += ["", ""]
                else:
                    both = found[name, s, "uniform"]
                    cells += [digits.shown(*both[k], 2 - 2 * k) for k in (0, 1)]
                rows.append([name, f"{s:g}", *cells])
    return Finding(
        title=f"[Xiao10] Figure 8: a tenth of the examples, digits {pair.name}",
        head=[
            "method",
            "lambda",
            "last: error, %",
            "last: non-zeros",
            "average: error, %",
            "average: non-zeros",
        ],
        rows=rows,
        claims=claims(found, min(strengths)),
        draw=picture(found, strengths),
        size=(15.0, 6.0),
    )
