"""The Primal Gradient Solver compared with L-BFGS, three losses and norms ([Zhu09] Table II).

Both use the sigma whose optimum is the most accurate on the test set. The solver makes ten passes,
L-BFGS runs to convergence. k = 300 for p = 1.8, because the paper updates all weights per step.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.papers.descent import (
    KINDS,
    L2_LOGISTIC,
    L2_SQUARES,
    L18_LOGISTIC,
    Data,
    Kind,
    Text,
    Trace,
    ccat,
    lbfgs,
    quantile,
    stochastic,
    toy,
)
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PASSES = 10
TOLERANCE = 0.005
# sigma, the accuracies of the quasi-Newton method and of the solver, the solver's time
PAPER = {
    L2_LOGISTIC: ("1e-06", ".94799", ".94735 ± .00042", "55 s"),
    L18_LOGISTIC: ("4e-07", ".94808", ".94763 ± .00035", "576 s"),
    L2_SQUARES: ("2e-05", ".94687", ".94615 ± .00060", "22 s"),
}
SIGMAS = {
    L2_LOGISTIC: (1e-4, 3e-5, 1e-5, 3e-6),
    L18_LOGISTIC: (3e-5, 1e-5, 3e-6, 1e-6),
    L2_SQUARES: (1e-3, 3e-4, 1e-4, 3e-5),
}


@dataclass(frozen=True)
class Comparison:
    """The sigma of a kind, and the traces of the solver and of L-BFGS."""

    kind: Kind
    sigma: float
    solver: Sequence[Trace]
    lbfgs: Trace

    @property
    def accuracy(self) -> float:
        """The solver's median accuracy."""
        return quantile([trace.values[-1] for trace in self.solver])

    @property
    def seconds(self) -> float:
        """The solver's median CPU seconds."""
        return quantile([trace.seconds[-1] for trace in self.solver])

    @property
    def each(self) -> float:
        """The solver's microseconds per example."""
        return 1e6 * self.seconds / (self.solver[0].steps[-1] * self.kind.k)


def both(kind: Kind, data: Data, sigmas: Sequence[float], runs: int) -> Comparison:
    """Choose sigma, then run the solver."""
    m = len(data.signs)
    optima = {sigma: lbfgs(kind, sigma, data, m, 0)[0] for sigma in sigmas}
    best = max(sigmas, key=lambda sigma: optima[sigma].values[-1])
    steps = PASSES * m // kind.k
    solver = [stochastic(kind, best, data, m, steps, seed) for seed in range(runs)]
    return Comparison(kind, best, solver, optima[best])


def lines(found: Sequence[Comparison]) -> Iterator[list[str]]:
    """Generate the lines of the table, with the paper's numbers in brackets."""
    for one in found:
        sigma, optimum, reached, seconds = PAPER[one.kind]
        spread = float(np.std([trace.values[-1] for trace in one.solver]))
        yield [
            one.kind.name,
            f"{one.sigma:g} ({sigma})",
            f"{one.lbfgs.values[-1]:.4f} ({optimum})",
            f"{one.lbfgs.seconds[-1]:.2f}",
            f"{one.accuracy:.4f} ± {spread:.4f} ({reached})",
            f"{one.seconds:.2f} ({seconds})",
            f"{one.each:.2f}",
        ]


def claims(found: Sequence[Comparison]) -> dict[str, bool]:
    """Check that the solver is nearly as accurate as the optimum."""
    return {
        f"{one.kind.name}: within {TOLERANCE:.1%} of L-BFGS's accuracy": one.accuracy
        >= one.lbfgs.values[-1] - TOLERANCE
        for one in found
    }


def picture(found: Sequence[Comparison]) -> Callable[["Figure"], None]:
    """Draw test accuracy over CPU time."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
        for axis, one in zip(axes, found, strict=True):
            looks = range(len(one.solver[0].steps))
            each = np.array([trace.values for trace in one.solver])
            times = [quantile([trace.seconds[i] for trace in one.solver]) for i in looks]
            axis.plot(times, np.median(each, axis=0), label="solver, median", lw=1.2)
            axis.fill_between(times, each.min(axis=0), each.max(axis=0), alpha=0.2, lw=0)
            axis.plot(one.lbfgs.seconds, one.lbfgs.values, "C1x--", label="L-BFGS", ms=4, lw=1)
            axis.set(title=f"{one.kind.name}, sigma = {one.sigma:g}", xscale="log")
            axis.set(xlabel="CPU seconds", ylim=(0.7, None))
        axes[0].set_ylabel("test accuracy")
        axes[0].legend(loc="lower right", fontsize=8)

    return draw


def generated(m: int = 4_000) -> Text:
    """Generate two Gaussians, half of the examples for testing."""
    both = toy(2 * m, 10)
    return Text(both.rows[:m], both.signs[:m], both.rows[m:], both.signs[m:])


def run(data: Path, *, quick: bool = False, permutations: int = 20) -> Finding:
    """Run on rcv1v2_ccat, or on Gaussians."""
    text = generated() if quick else ccat(data)
    runs = 3 if quick else permutations
    found = [both(kind, text, (0.1, 0.03) if quick else SIGMAS[kind], runs) for kind in KINDS]
    return Finding(
        title="[Zhu09] Table II: the Primal Gradient Solver and L-BFGS",
        head=[
            "problem",
            "sigma",
            "L-BFGS: accuracy",
            "L-BFGS: CPU s",
            "solver: accuracy",
            "solver: CPU s",
            "solver: us/example",
        ],
        rows=list(lines(found)),
        claims=claims(found),
        draw=picture(found),
        size=(14.0, 4.0),
    )
