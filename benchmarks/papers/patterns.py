"""Weights as pictures over lambda, and the effect of gamma on RDA ([Xiao10] Figures 2, 5, 6).

Two digits of MNIST, l1-logistic regression, one pass. Each picture is scaled by its largest weight:
gray is 0, bright is positive, dark is negative.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks.papers import digits
from benchmarks.papers.digits import ENHANCED, Method
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.data import Labels
    from benchmarks.papers.digits import Pair, Spread, Weights

GAMMAS = tuple(float(g) for g in range(1_000, 11_000, 1_000))
FEW = (0.1, 1.0, 10.0)  # lambdas of Figures 5 and 6
AVERAGES = ("last", "uniform")

Effect: TypeAlias = dict[tuple[float, float, str], tuple["Spread", "Spread"]]
Rows: TypeAlias = Mapping[str, Sequence["Labels"]]


def rda(gamma: float) -> Method:
    """Return RDA with this gamma, and gamma rho = 25."""
    return Method(f"{gamma:g}", lambda _: sl.rules.DualAveraging(gamma, 25.0 / gamma), exact=True)


def effect(pair: "Pair", gammas: Sequence[float], permutations: int) -> Effect:
    """Measure error (%) and non-zeros of RDA, by gamma, lambda and average."""
    each: dict[tuple[float, float, str], list[tuple[float, int]]] = {}
    for ordered in digits.shuffled(pair, permutations):
        for gamma, strength, average in product(gammas, FEW, AVERAGES):
            one = digits.learned(ordered, rda(gamma), strength, average)
            each.setdefault((gamma, strength, average), []).append((100.0 * one.error, one.nonzero))
    return {
        key: (digits.spread([v[0] for v in values]), digits.spread([v[1] for v in values]))
        for key, values in each.items()
    }


def pictured(pair: "Pair", best: Mapping[float, "Weights"]) -> Rows:
    """Return the weights of Figure 2: one row per method, one column per lambda."""
    (ordered,) = digits.shuffled(pair, 1)
    strengths = sorted(best)
    rows: dict[str, list[Labels]] = {}
    for average in AVERAGES:
        for method in ENHANCED:
            name = f"{method.name.split(',')[0]} {'w' if average == 'last' else 'mean w'}"
            rows[name] = [digits.learned(ordered, method, s, average).w for s in strengths]
        if average == "last":
            rows["batch"] = [best[s].w for s in strengths]
    return rows


def over_gamma(pair: "Pair", gammas: Sequence[float], best: Mapping[float, "Weights"]) -> Rows:
    """Return the weights of Figure 6: batch, then RDA by gamma; one row per lambda."""
    (ordered,) = digits.shuffled(pair, 1)
    return {
        f"lambda={s:g}": [
            best[s].w,
            *(digits.learned(ordered, rda(g), s).w for g in gammas),
        ]
        for s in FEW
    }


def mosaic(axis: "Axes", rows: Rows, side: int, columns: Sequence[str], title: str) -> None:
    """Draw pictures of weights side by side, in one image."""
    gap = 2
    cell = side + gap
    canvas = np.full((len(rows) * cell + gap, len(columns) * cell + gap), np.nan)
    for i, images in enumerate(rows.values()):
        for j, w in enumerate(images):
            top, left = gap + i * cell, gap + j * cell
            scaled = (w / max(np.abs(w).max(), 1e-300)).reshape(side, side)
            canvas[top : top + side, left : left + side] = scaled
    axis.imshow(canvas, cmap="gray", vmin=-1.0, vmax=1.0, interpolation="nearest")
    middle = gap + side / 2.0
    axis.set_xticks(middle + cell * np.arange(len(columns)), columns, fontsize=8)
    axis.set_yticks(middle + cell * np.arange(len(rows)), list(rows), fontsize=8)
    axis.tick_params(length=0, labeltop=True, labelbottom=False)
    axis.set_title(title, fontsize=10)
    for spine in axis.spines.values():
        spine.set_visible(False)


def claims(
    found: Effect, gammas: Sequence[float], best: Mapping[float, "Weights"], *, generated: bool
) -> dict[str, bool]:
    """Check what the paper says about Figure 5."""
    low, high = gammas[0], gammas[-1]

    def pair(k: int, strength: float, average: str) -> tuple[float, float]:
        return found[low, strength, average][k][0], found[high, strength, average][k][0]

    fewer = [pair(1, s, "last") for s in FEW]
    worse = [pair(0, s, "last") for s in FEW]
    more = [pair(1, s, "uniform") for s in FEW]
    strongest = best[FEW[-1]].nonzero, best[FEW[0]].nonzero
    low_error, high_error = pair(0, FEW[-1], "uniform")
    small = (
        {}
        if generated
        else {"and with a large lambda a lower test error of averages": low_error <= high_error}
    )
    return {
        "a smaller gamma gives sparser last weights": all(a <= b for a, b in fewer),
        "and a higher test error of them": all(a >= b for a, b in worse),
        "a smaller gamma gives averages that are less sparse": all(a >= b for a, b in more),
        **small,
        "the batch solution is sparser with a larger lambda": strongest[0] < strongest[1],
    }


def picture(
    pair: "Pair", drawn: Rows, by_gamma: Rows, found: Effect, best: Mapping[float, "Weights"]
) -> Callable[["Figure"], None]:
    """Draw Figure 2 on the left, Figures 6 and 5 on the right."""
    strengths = sorted(best)
    gammas = sorted({gamma for gamma, _, _ in found})

    def draw(figure: "Figure") -> None:
        whole = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.5))
        left, right = (figure.add_subfigure(whole[0, k]) for k in (0, 1))
        named = [f"{s:g}" for s in strengths]
        mosaic(left.subplots(), drawn, pair.side, named, "weights over lambda")
        halves = right.add_gridspec(2, 1, height_ratios=(1.0, 1.1))
        top, bottom = (right.add_subfigure(halves[k, 0]) for k in (0, 1))
        columns = ["batch", *(f"{g:g}" for g in gammas)]
        mosaic(top.subplots(), by_gamma, pair.side, columns, "RDA's last weights over gamma")
        axes = bottom.subplots(1, 4)
        for k, axis in enumerate(axes):
            average, what = AVERAGES[k // 2], k % 2
            for c, s in enumerate(FEW):
                values = [found[g, s, average][what] for g in gammas]
                mean, deviation = zip(*values, strict=True)
                axis.errorbar(
                    gammas, mean, deviation, color=f"C{c}", label=f"lambda={s:g}", lw=1, capsize=2
                )
                line = (100.0 * best[s].error, best[s].nonzero)[what]
                axis.axhline(line, color=f"C{c}", ls="--", lw=0.8)
            which = "last w" if average == "last" else "mean w"
            axis.set_title((f"test error, %, {which}", f"non-zeros, {which}")[what], fontsize=9)
            axis.set_xlabel("gamma (dashed: batch)", fontsize=8)
            axis.tick_params(labelsize=7)
        axes[1].legend(fontsize=7)

    return draw


def run(data: Path, *, quick: bool = False, permutations: int = 5) -> Finding:
    """Run on digits 6 and 7, or on synthetic images."""
    pair = digits.generated() if quick else digits.Digits(data).pair(6, 7)
    strengths = FEW if quick else digits.LAMBDAS
    gammas = (1_000.0, 10_000.0) if quick else GAMMAS
    best = digits.batch(pair, strengths)
    found = effect(pair, gammas, 2 if quick else permutations)
    rows = [
        [
            f"{s:g}",
            f"{g:g}",
            *(digits.shown(*found[g, s, a][k], 2 - 2 * k) for a in AVERAGES for k in (0, 1)),
        ]
        for s in FEW
        for g in gammas
        if quick or g in {1_000.0, 2_000.0, 5_000.0, 10_000.0}
    ]
    drawn = pictured(pair, best)
    return Finding(
        title=f"[Xiao10] Figures 2, 5 and 6: digits {pair.name}, RDA over gamma",
        head=[
            "lambda",
            "gamma",
            "last: error, %",
            "last: non-zeros",
            "average: error, %",
            "average: non-zeros",
        ],
        rows=rows,
        claims=claims(found, gammas, best, generated=quick),
        draw=picture(pair, drawn, over_gamma(pair, gammas, best), found, best),
        size=(17.0, 7.0),
    )
