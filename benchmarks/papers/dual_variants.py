"""001 section 7: the p-norm beside the 2-norm, and accelerated beside plain dual averaging.

The paper has bounds and no experiments here. Section 7.2 promises the p-norm a gain where features
are dense and few of the true weights are not 0; section 7.1 promises acceleration a gain where
batches leave little noise. Every method with its best gamma of a grid.
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
PACES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
BOLD = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # where batches leave little noise
L1 = 1e-3
NORMS = ("2-norm", "p-norm")
SPEEDS = ("plain", "accelerated")


@dataclass(frozen=True)
class Stream:
    """Dense rows of -1 and 1, labels that few features tell of."""

    rows: "Floats"
    signs: "Floats"


def stream(m: int, n: int, true: int, seed: int = 0) -> Stream:
    """Logistic labels of `true` features among n."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1.0, 1.0], size=(m, n))
    scores = 6.0 / true * rows[:, :true].sum(axis=1)
    signs = np.where(rng.random(m) < 1.0 / (1.0 + np.exp(-scores)), 1.0, -1.0)
    return Stream(rows, signs)


def progressive(data: Stream, rule: sl.rules.Rule) -> "Floats":
    """The log-loss of each event before it was learned, of the averaged weights."""
    model = sl.LinearClassifier(
        rule, sl.losses.Logistic(), sl.penalties.L1(L1), fit_intercept=False, average="uniform"
    )
    scores = model.progressive_rows(data.rows, data.signs)
    return np.asarray(np.logaddexp(0.0, -data.signs * scores))


def norms(m: int, widths: Sequence[int], paces: Sequence[float]) -> dict[tuple[int, str], "Floats"]:
    """The better of the paces for each norm, by width: the mean loss so far."""
    found = {}
    for n in widths:
        data = stream(m, n, 5)
        for name, rule in zip(NORMS, (R.DualAveraging, R.PNormDualAveraging), strict=True):
            tried = [progressive(data, rule(gamma)) for gamma in paces]
            best = min(tried, key=lambda losses: float(losses.mean()))
            found[n, name] = np.cumsum(best) / np.arange(1, m + 1)
    return found


class Ill:
    """Logistic regression on Gaussians of very different width, and its optimum."""

    def __init__(self, m: int, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rng.normal(size=(m, n)) / np.arange(1.0, n + 1.0)
        scores = self.rows @ (np.arange(1.0, n + 1.0) ** 0.5 * rng.normal(size=n))
        self.signs = np.where(scores + rng.logistic(size=m) > 0.0, 1.0, -1.0)
        self.penalty = sl.penalties.L1(1e-4)
        problem = (self.rows, self.signs, sl.losses.Logistic(), self.penalty)
        self.optimum = sl.hindsight.solve(*problem, gap=1e-6).lower_bound

    def excess(self, w: "Floats") -> float:
        """How far above the optimum w is."""
        losses = np.logaddexp(0.0, -self.signs * (self.rows @ w))
        return float(losses.mean() + self.penalty.value(w)) - self.optimum

    def reached(self, rule: sl.rules.Rule, b: int, steps: int, average: str) -> float:
        """The excess after so many steps on random batches of b."""
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
    problem: Ill, batches: Sequence[int], steps: int, paces: Sequence[float]
) -> dict[tuple[int, str], float]:
    """The best excess of each method for each batch: Algorithm 1 averaged, and Algorithm 3."""
    found = {}
    for b in batches:
        plain = [problem.reached(R.DualAveraging(g), b, steps, "uniform") for g in paces]
        fast = [
            problem.reached(R.AcceleratedDualAveraging(g), b, steps, "last") for g in (0.0, *paces)
        ]
        found[b, "plain"], found[b, "accelerated"] = min(plain), min(fast)
    return found


def picture(
    lengths: dict[tuple[int, str], "Floats"], excess: dict[tuple[int, str], float]
) -> Callable[["Figure"], None]:
    """Progressive loss over events by width; excess over the batch."""
    widths = list(dict.fromkeys(n for n, _ in lengths))

    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        for k, n in enumerate(widths):
            for name, style in zip(NORMS, ("--", "-"), strict=True):
                losses = lengths[n, name]
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
    """Both comparisons."""
    paces = PACES[1:6:2] if quick else PACES
    widths = (20, 400) if quick else (20, 200, 2_000)
    lengths = norms(600 if quick else 3_000, widths, paces)
    batches = (1, 100) if quick else (1, 4, 16, 64, 256, 1_024)
    problem = Ill(1_000 if quick else 20_000, 10 if quick else 50)
    excess = speeds(problem, batches, 150 if quick else 500, BOLD[1::2] if quick else BOLD)
    last = {key: float(losses[-1]) for key, losses in lengths.items()}
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
        title="001 section 7: p-norm and accelerated dual averaging",
        head=["problem", *(f"{n}: log-loss" for n in NORMS), *(f"{s}: excess" for s in SPEEDS)],
        rows=rows,
        claims={
            "the p-norm wins with many dense features": last[widest, "p-norm"]
            < last[widest, "2-norm"],
            "and the more, the more": last[widest, "2-norm"] - last[widest, "p-norm"]
            > last[narrow, "2-norm"] - last[narrow, "p-norm"],
            "acceleration wins with large batches": gains[most] > 1.5,
            "and gains more from them than from single examples": gains[most] > gains[least],
        },
        draw=picture(lengths, excess),
        size=(11.0, 4.2),
    )
