"""All 45 pairs of digits, RDA compared with the batch solution ([Xiao10] Figure 7).

l1-logistic regression, one pass in random orders, gamma = 5000 and gamma rho = 25: below the
diagonal the last weights at lambda = 1, above it errors and non-zeros over lambda.
"""

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.papers import digits
from benchmarks.papers.digits import RDA_25
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.papers.digits import Pair, Weights

STRENGTHS = (0.1, 1.0, 10.0)
PICTURED = 1.0

Found: TypeAlias = dict[float, list["Weights"]]  # by lambda; the batch solution comes first


def compared(pair: "Pair", permutations: int) -> Found:
    """Return the batch solution and those of RDA for each order, by lambda."""
    best = digits.batch(pair, STRENGTHS, max_iter=200)
    found = {s: [best[s]] for s in STRENGTHS}
    for ordered in digits.shuffled(pair, permutations):
        for s in STRENGTHS:
            found[s].append(digits.learned(ordered, RDA_25, s))
    return found


def means(found: Found, strength: float) -> tuple[float, float, float, float]:
    """Return error (%) and non-zeros of RDA on average, and of the batch solution."""
    batch, *online = found[strength]
    error = float(np.mean([100.0 * one.error for one in online]))
    size = float(np.mean([one.nonzero for one in online]))
    return error, size, 100.0 * batch.error, float(batch.nonzero)


def line(strength: float, everything: Mapping[str, Found]) -> list[str]:
    """Format the means over all pairs."""
    table = np.array([means(found, strength) for found in everything.values()])
    near = np.mean((table[:, 1] <= 2.0 * table[:, 3]) & (table[:, 1] >= 0.5 * table[:, 3]))
    error, size, batch_error, batch_size = table.mean(axis=0)
    cells = [f"{error:.2f}", f"{batch_error:.2f}", f"{size:.0f}", f"{batch_size:.0f}"]
    return [
        f"{strength:g}",
        *cells,
        f"{np.abs(table[:, 0] - table[:, 2]).max():.2f}",
        f"{near:.0%}",
    ]


def claims(everything: Mapping[str, Found]) -> dict[str, bool]:
    """Check that both have similar trade-offs between sparsity and error."""
    rows = {s: np.array([means(f, s) for f in everything.values()]) for s in STRENGTHS}
    middle = [rows[s] for s in STRENGTHS[:2]]
    return {
        "with a larger lambda both keep fewer weights": all(
            np.all(rows[a][:, k] >= rows[b][:, k]) for a, b in pairwise(STRENGTHS) for k in (1, 3)
        ),
        "RDA's non-zeros are within a factor of 2 of the batch solution's for 9 pairs of 10": bool(
            all(np.mean(np.abs(np.log2(r[:, 1] / r[:, 3])) <= 1.0) >= 0.9 for r in middle)
        ),
        "on average RDA errs at most 1% more, up to lambda = 1": all(
            r[:, 0].mean() <= r[:, 2].mean() + 1.0 for r in middle
        ),
    }


def picture(everything: Mapping[tuple[int, int], Found], side: int) -> Callable[["Figure"], None]:
    """Draw Figure 7."""
    known = sorted({digit for both in everything for digit in both})

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(len(known), len(known), squeeze=False)
        for i, a in enumerate(known):
            for j, b in enumerate(known):
                axis = axes[i][j]
                if a >= b:
                    axis.set_xticks([])
                    axis.set_yticks([])
                if a == b:
                    axis.text(0.5, 0.5, str(a), ha="center", va="center", fontsize=18)
                    axis.axis("off")
                elif a > b:
                    w = everything[b, a][PICTURED][1].w.reshape(side, side)
                    most = max(float(np.abs(w).max()), 1e-300)
                    axis.imshow(w, cmap="gray", vmin=-most, vmax=most)
                else:
                    curves(axis, everything[a, b])
        figure.supxlabel(
            "above: test error, % (blue, left scale) and non-zeros (red, right scale) over lambda "
            f"= {', '.join(f'{s:g}' for s in STRENGTHS)}; lines: batch, circles: RDA\n"
            f"below: one order's last weights of RDA, lambda = {PICTURED:g}",
            fontsize=9,
        )

    return draw


def curves(axis: "Axes", found: Found) -> None:
    """Draw errors and non-zeros of one pair."""
    errors = {s: [100.0 * one.error for one in found[s]] for s in STRENGTHS}
    sizes = {s: [float(one.nonzero) for one in found[s]] for s in STRENGTHS}
    for one, color, values in ((axis, "C0", errors), (axis.twinx(), "C3", sizes)):
        one.semilogx(STRENGTHS, [values[s][0] for s in STRENGTHS], color=color, lw=0.8)
        mean, deviation = zip(*(digits.spread(values[s][1:]) for s in STRENGTHS), strict=True)
        one.errorbar(STRENGTHS, mean, deviation, fmt="o", c=color, ms=3, mfc="none", capsize=2)
        one.set_ylim(bottom=0.0)
        one.tick_params(labelsize=6, length=1, pad=1, colors=color, labelbottom=False)
        one.tick_params(axis="x", bottom=False)
        one.locator_params(axis="y", nbins=3)
        one.minorticks_off()


def run(data: Path, *, quick: bool = False, permutations: int = 2) -> Finding:
    """Run all pairs, or one pair of synthetic images."""
    everything: dict[tuple[int, int], Found] = {}
    if quick:
        everything[0, 1] = compared(digits.generated(), 2)
        side = 14
    else:
        images, side = digits.Digits(data), 28
        for a, b in combinations(range(10), 2):
            everything[a, b] = compared(images.pair(a, b), permutations)
    named = {f"{a} and {b}": found for (a, b), found in everything.items()}
    return Finding(
        title="[Xiao10] Figure 7: all pairs of digits, RDA and the batch solution",
        head=[
            "lambda",
            "RDA: error, %",
            "batch: error, %",
            "RDA: non-zeros",
            "batch: non-zeros",
            "largest difference of errors, %",
            "pairs with non-zeros within a factor of 2",
        ],
        rows=[line(s, named) for s in STRENGTHS],
        claims=claims(named),
        draw=picture(everything, side),
        size=(13.0, 11.0) if not quick else (4.0, 4.0),
    )
