"""P-norm against 2-norm, and accelerated against plain dual averaging ([Xiao10] section 7).

The paper has bounds but no experiments here. By section 7.2 the p-norm wins when features are dense
and few true weights are non-zero; by section 7.1 acceleration wins when batches leave little noise.
Every method has its best gamma of a grid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

R = sl.rules
GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LARGE_BATCH_GAMMAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # large batches leave little noise
L1 = 1e-3
NORMS = ("2-norm", "p-norm")
SPEEDS = ("plain", "accelerated")


@dataclass(frozen=True)
class Stream:
    """Dense rows of -1 and 1, and labels that depend on few features."""

    rows: "Floats"
    signs: "Floats"


def stream(m: int, n: int, true: int, seed: int = 0) -> Stream:
    """Generate logistic labels that depend on `true` of n features."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1.0, 1.0], size=(m, n))
    scores = 6.0 / true * rows[:, :true].sum(axis=1)
    signs = np.where(rng.random(m) < 1.0 / (1.0 + np.exp(-scores)), 1.0, -1.0)
    return Stream(rows, signs)


def progressive(data: Stream, rule: sl.rules.Rule) -> "Floats":
    """Return the progressive log-loss of each event, for the averaged weights."""
    model = sl.LinearClassifier(
        rule, sl.losses.Logistic(), sl.penalties.L1(L1), fit_intercept=False, average="uniform"
    )
    scores = model.progressive_rows(data.rows, data.signs)
    return np.asarray(np.logaddexp(0.0, -data.signs * scores))


def norms(
    m: int, widths: Sequence[int], gammas: Sequence[float]
) -> dict[tuple[int, str], "Floats"]:
    """Return the mean loss so far with the best gamma, by width and norm."""
    found = {}
    for n in widths:
        data = stream(m, n, 5)
        for name, rule in zip(NORMS, (R.DualAveraging, R.PNormDualAveraging), strict=True):
            tried = [progressive(data, rule(gamma)) for gamma in gammas]
            best = min(tried, key=lambda losses: float(losses.mean()))
            found[n, name] = np.cumsum(best) / np.arange(1, m + 1)
    return found


class IllConditioned:
    """Logistic regression on Gaussian features of very different variance, and its optimum."""

    def __init__(self, m: int, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rng.normal(size=(m, n)) / np.arange(1.0, n + 1.0)
        scores = self.rows @ (np.arange(1.0, n + 1.0) ** 0.5 * rng.normal(size=n))
        self.signs = np.where(scores + rng.logistic(size=m) > 0.0, 1.0, -1.0)
        self.penalty = sl.penalties.L1(1e-4)
        problem = (self.rows, self.signs, sl.losses.Logistic(), self.penalty)
        self.optimum = sl.hindsight.solve(*problem, gap=1e-6).lower_bound

    def excess(self, w: "Floats") -> float:
        """Return how far w is above the optimum."""
        losses = np.logaddexp(0.0, -self.signs * (self.rows @ w))
        return float(losses.mean() + self.penalty.value(w)) - self.optimum

    def reached(self, rule: sl.rules.Rule, b: int, steps: int, average: str) -> float:
        """Return the excess after these steps on random batches of b."""
        model = sl.LinearClassifier(
            rule,
            sl.losses.Logistic(),
            self.penalty,
            fit_intercept=False,
            batch=b,
            average=average,
        )
        picks = np.random.default_rng(1).integers(len(self.signs), size=steps * b)
        for some in np.array_split(picks, max(1, len(picks) // 100_000)):
            model.learn_rows(self.rows[some], self.signs[some])
        return self.excess(model.coef(self.rows.shape[1]))


def speeds(
    problem: IllConditioned, batches: Sequence[int], steps: int, gammas: Sequence[float]
) -> dict[tuple[int, str], float]:
    """Return the best excess of Algorithm 1 (averaged) and Algorithm 3 for each batch size."""
    found = {}
    for b in batches:
        plain = [problem.reached(R.DualAveraging(g), b, steps, "uniform") for g in gammas]
        fast = [
            problem.reached(R.AcceleratedDualAveraging(g), b, steps, "last") for g in (0.0, *gammas)
        ]
        found[b, "plain"], found[b, "accelerated"] = min(plain), min(fast)
    return found


def picture(
    losses_by_width: dict[tuple[int, str], "Floats"], excess: dict[tuple[int, str], float]
) -> Callable[["Figure"], None]:
    """Draw progressive loss over events by width, and excess over the batch size."""
    widths = list(dict.fromkeys(n for n, _ in losses_by_width))

    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        for k, n in enumerate(widths):
            for name, style in zip(NORMS, ("--", "-"), strict=True):
                losses = losses_by_width[n, name]
                at = np.unique(np.geomspace(10, len(losses), 100).astype(int))
                left.semilogx(at, losses[at - 1], style, color=f"C{k}", label=f"{name}, n = {n}")
        left.set(title="5 true weights of n", xlabel="events", ylabel="progressive log-loss")
        left.legend(fontsize=8)
        batches = list(dict.fromkeys(b for b, _ in excess))
        for name in SPEEDS:
            right.loglog(batches, [excess[b, name] for b in batches], "o-", label=name)
        right.set(title="after the same number of steps", xlabel="batch", ylabel="excess objective")
        right.legend()

    return draw


def run(data: Path, *, quick: bool = False) -> Finding:  # noqa: ARG001 - generated in any case
    """Run both comparisons."""
    gammas = GAMMAS[1:6:2] if quick else GAMMAS
    widths = (20, 400) if quick else (20, 200, 2_000)
    losses_by_width = norms(600 if quick else 3_000, widths, gammas)
    batches = (1, 100) if quick else (1, 4, 16, 64, 256, 1_024)
    problem = IllConditioned(1_000 if quick else 20_000, 10 if quick else 50)
    excess = speeds(
        problem,
        batches,
        150 if quick else 500,
        LARGE_BATCH_GAMMAS[1::2] if quick else LARGE_BATCH_GAMMAS,
    )
    last = {key: float(losses[-1]) for key, losses in losses_by_width.items()}
    rows = [
        [f"5 of {n} weights", *(f"{last[n, name]:.4f}" for name in NORMS), "", ""] for n in widths
    ]
    rows += [
        [f"batches of {b}", "", "", *(f"{excess[b, name]:.2e}" for name in SPEEDS)] for b in batches
    ]
    gains = {b: excess[b, "plain"] / excess[b, "accelerated"] for b in batches}
    most, least = batches[-1], batches[0]
    widest, narrow = widths[-1], widths[0]
    return Finding(
        title="[Xiao10] section 7: p-norm and accelerated dual averaging",
        head=["problem", *(f"{n}: log-loss" for n in NORMS), *(f"{s}: excess" for s in SPEEDS)],
        rows=rows,
        claims={
            "the p-norm wins with many dense features": last[widest, "p-norm"]
            < last[widest, "2-norm"],
            "its advantage grows with their number": last[widest, "2-norm"] - last[widest, "p-norm"]
            > last[narrow, "2-norm"] - last[narrow, "p-norm"],
            "acceleration wins with large batches": gains[most] > 1.5,
            "its advantage is larger than with single examples": gains[most] > gains[least],
        },
        draw=picture(losses_by_width, excess),
        size=(11.0, 4.2),
    )
