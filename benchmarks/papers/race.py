"""Every rule on the same streams, with its first setting and with the best of a small grid.

Logistic loss for all, with a suitable penalty for each rule; one pass, progressive loss. The regret
is against the best fixed weights of the whole stream. ExponentiatedDualAveraging is excluded,
because its weights sum to 1.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

import streamlearn as sl
from benchmarks.data import CLASSIFICATION, Examples, load
from benchmarks.papers.finding import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

L1, L2, LpSquared, Zero = (
    sl.penalties.L1,
    sl.penalties.L2,
    sl.penalties.LpSquared,
    sl.penalties.Zero,
)
R, Sqrt = sl.rules, sl.rules.schedules.InverseSqrt
STREAMS = ("a9a", "rcv1v2_ccat", "elec2")
WIDE = "rcv1v2_ccat"

Setting: TypeAlias = tuple[sl.rules.Rule, sl.penalties.Penalty]

STEPS = (0.1, 0.01, 1.0, 10.0, 100.0, 1000.0)
GAMMAS = (1.0, 0.001, 0.01, 0.1, 10.0)
L2S = (1e-4, 1e-2, 1e-3, 1e-5, 1e-6)
DEFAULT = "Mixture (the default)"


def grid(
    name: str, values: Sequence[float], make: Callable[[float], Setting]
) -> dict[str, Setting]:
    """Return settings by label; the first is the rule's default."""
    return {f"{name}={value:g}": make(value) for value in values}


def settings_by_rule() -> dict[str, dict[str, Setting]]:
    """Return the settings of each rule."""
    lasso = L1(1e-5)
    return {
        "Pegasos": grid("l2", L2S, lambda x: (R.Pegasos(), L2(x))),
        "Adaptive": grid("l2", L2S, lambda x: (R.Adaptive(), L2(x))),
        "OptimisticProximal": grid("l2", L2S, lambda x: (R.OptimisticProximal(), L2(x)))
        | grid("restrained, l2", L2S, lambda x: (R.OptimisticProximal(restrained=True), L2(x))),
        "Proximal": grid("radius", (1, 3, 10, 30, 100), lambda x: (R.Proximal(x), L2(1e-6))),
        "PrimalGradient": grid("l2", L2S, lambda x: (R.PrimalGradient(), LpSquared(x, 2.0)))
        | grid("p=1.6, l2", L2S[1:4], lambda x: (R.PrimalGradient(), LpSquared(x, 1.6))),
        "GradientDescent": grid("step", STEPS, lambda x: (R.GradientDescent(Sqrt(x)), Zero())),
        "ForwardBackward": grid("step", STEPS, lambda x: (R.ForwardBackward(Sqrt(x)), lasso)),
        "TruncatedGradient": grid(
            "every=10, step", STEPS, lambda x: (R.TruncatedGradient(Sqrt(x), every=10), lasso)
        ),
        "DualAveraging": grid("l1=1e-4, gamma", GAMMAS, lambda x: (R.DualAveraging(x), L1(1e-4)))
        | grid("l1=1e-5, gamma", GAMMAS, lambda x: (R.DualAveraging(x), lasso)),
        "PNormDualAveraging": grid("gamma", GAMMAS, lambda x: (R.PNormDualAveraging(x), Zero())),
        "AcceleratedDualAveraging": grid(
            "gamma", GAMMAS, lambda x: (R.AcceleratedDualAveraging(x), lasso)
        ),
        "AdaGrad": grid("step", (0.1, 0.01, 0.03, 0.3, 1.0, 3.0), lambda x: (R.AdaGrad(x), lasso)),
        "AdaGradDualAveraging": grid(
            "step", (0.3, 0.03, 0.1, 1.0, 3.0, 10.0), lambda x: (R.AdaGradDualAveraging(x), lasso)
        ),
        "FTRLProximal": grid(
            "l1=1, alpha", (0.1, 0.03, 0.3, 1.0, 3.0), lambda x: (R.FTRLProximal(x), L1(1.0))
        )
        | grid("l1=0.1, alpha", (0.1, 0.3, 1.0, 3.0), lambda x: (R.FTRLProximal(x), L1(0.1))),
        "CoinBetting": grid("alpha", (1.0, 0.3, 3.0), lambda x: (R.CoinBetting(x), Zero())),
        "DiagonalNewton": grid(
            "prior", (3.0, 0.3, 1.0, 10.0), lambda x: (R.DiagonalNewton(x), Zero())
        ),
        "NormalizedAdaptive": grid(
            "rate", (1.0, 0.2, 0.5, 2.0, 5.0), lambda x: (R.NormalizedAdaptive(x), Zero())
        ),
        DEFAULT: {"no settings": (R.Mixture(), Zero())},
    }


@dataclass(frozen=True)
class Run:
    """The result of one setting on one stream."""

    label: str
    loss: float
    nonzero: int
    seconds: float


def learn(stream: Examples, label: str, setting: Setting) -> Run:
    """Learn the stream with one setting; a loss that is not finite counts as infinite."""
    rule, penalty = setting
    model = sl.LinearClassifier(rule, sl.losses.Logistic(), penalty)
    began = time.process_time()
    scores = model.progressive_rows(stream.rows, stream.labels)
    seconds = time.process_time() - began
    loss = float(np.logaddexp(0.0, -stream.labels * scores).mean())
    return Run(label, loss if math.isfinite(loss) else math.inf, model.nonzero, seconds)


@dataclass(frozen=True)
class Result:
    """The results of a rule on a stream: its first setting, and its best."""

    first: Run
    best: Run


Results: TypeAlias = dict[str, Result]


def race(stream: Examples) -> Results:
    """Run all settings of all rules; the best setting is timed three times."""
    results = {}
    for name, settings in settings_by_rule().items():
        runs = [learn(stream, *setting) for setting in settings.items()]
        best = min(runs, key=lambda each: each.loss)
        again = [learn(stream, best.label, settings[best.label]).seconds for _ in range(2)]
        results[name] = Result(runs[0], replace(best, seconds=min(best.seconds, *again)))
    return results


def best_fixed_loss(stream: Examples) -> float:
    """Return the mean loss of the best fixed weights, nearly unpenalized."""
    problem = (stream.rows, stream.labels, sl.losses.Logistic(), L2(1e-6))
    best = sl.hindsight.solve(*problem, fit_intercept=True, gap=1e-3, max_iter=300)
    scores = stream.rows @ best.w + best.intercept
    return float(np.logaddexp(0.0, -stream.labels * scores).mean())


# -- streams ----------------------------------------------------------------------------------


def real(data: Path) -> list[Examples]:
    """Load three different streams: short rows, long texts, and one with drift."""
    sources = {source.name: source for source in CLASSIFICATION}
    return [load(sources[name], data) for name in STREAMS]


def generated() -> list[Examples]:
    """Generate words of very different frequency, a tenth of which matter."""
    rng = np.random.default_rng(0)
    n, m = 300, 4_000
    rows = sparse.csr_array((rng.random((m, n)) < 0.5 / np.arange(1, n + 1) ** 0.7) * 1.0)
    truth = np.where(rng.random(n) < 0.1, 3.0 * rng.normal(size=n), 0.0)
    scores = rows @ truth
    chances = 1.0 / (1.0 + np.exp(scores.mean() - scores))
    return [Examples(WIDE, rows, np.where(rng.random(m) < chances, 1.0, -1.0))]


# -- output -----------------------------------------------------------------------------------


def claims(name: str, results: Results) -> dict[str, bool]:
    """Check the claims about the default and about sparsity."""
    tuned = {rule: result.best.loss for rule, result in results.items()}
    default = tuned.pop(DEFAULT)
    found = {
        "the default is at most 3% behind the best tuned rule": default
        <= 1.03 * min(tuned.values()),
        "no rule with its first setting beats the default by 1%": all(
            result.first.loss >= 0.99 * default for result in results.values()
        ),
    }
    if name == WIDE:
        sparse_ones = ("DualAveraging", "ForwardBackward", "TruncatedGradient", "GradientDescent")
        counts = [results[rule].best.nonzero for rule in sparse_ones]
        found["dual averaging keeps fewer weights than the gradient methods"] = counts[0] == min(
            counts
        )
    return {f"{name}: {text}": true for text, true in found.items()}


def rows(everything: dict[str, Results], floor: float, events: int) -> list[list[str]]:
    """Return a line for each rule, sorted by its loss on the widest stream."""
    wide = everything[WIDE]
    lines = []
    for rule in sorted(wide, key=lambda name: wide[name].best.loss):
        best = wide[rule].best
        cells = [
            f"{results[rule].best.loss:.4f} ({results[rule].first.loss:.4f})"
            for results in everything.values()
        ]
        regret = f"{best.loss - floor:.4f}"
        micro = f"{1e6 * best.seconds / events:.2f}"
        lines.append([rule, *cells, best.label, regret, str(best.nonzero), micro])
    return lines


def picture(everything: dict[str, Results]) -> Callable[["Figure"], None]:
    """Draw the rules in order for each stream, and their non-zero weights on the widest."""

    def draw(figure: "Figure") -> None:
        widths = [1.0] * len(everything) + [0.7]
        axes = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
        for axis, (name, results) in zip(axes, everything.items(), strict=False):
            dots(axis, name, results)
        bars(axes[-1], everything[WIDE])

    return draw


def ranked(results: Results) -> list[str]:
    """Sort the rules from the worst to the best."""
    return sorted(results, key=lambda rule: -results[rule].best.loss)


def dots(axis: "Axes", name: str, results: Results) -> None:
    """Draw a line for each rule: its best setting, and its first."""
    low = min(result.best.loss for result in results.values())
    edge = 2.5 * low
    for k, rule in enumerate(ranked(results)):
        best, first = results[rule].best.loss, results[rule].first.loss
        axis.plot([min(best, edge), min(first, edge)], [k, k], color="0.8", zorder=1)
        axis.plot(min(best, edge), k, "o", color="C0", zorder=2)
        axis.plot(min(first, edge), k, ">" if first > edge else "o", color="C1", mfc="none")
    axis.set_yticks(range(len(results)), ranked(results), fontsize=8)
    axis.set(title=name, xlabel="progressive log-loss", xlim=(0.97 * low, 1.02 * edge))
    axis.plot([], [], "o", color="C0", label="best of a grid")
    axis.plot([], [], "o", color="C1", mfc="none", label="first setting (>: off scale)")
    axis.legend(fontsize=7, loc="upper right")


def bars(axis: "Axes", results: Results) -> None:
    """Draw the non-zero weights of each rule with its best setting."""
    counts = [results[rule].best.nonzero for rule in ranked(results)]
    axis.barh(range(len(counts)), counts, color="C0", height=0.6)
    axis.set_yticks(range(len(counts)), ranked(results), fontsize=8)
    axis.set(title=WIDE, xlabel="non-zero weights")


def run(data: Path, *, quick: bool = False) -> Finding:
    """Run all rules on three streams, or on a synthetic one."""
    streams = generated() if quick else real(data)
    everything = {stream.name: race(stream) for stream in streams}
    wide = next(stream for stream in streams if stream.name == WIDE)
    found: dict[str, bool] = {}
    for name, results in everything.items():
        found |= claims(name, results)
    return Finding(
        title="All rules: progressive log-loss of the best of a grid (and of the first setting)",
        head=[
            "rule",
            *everything,
            f"best setting on {WIDE}",
            "regret per event",
            "non-zeros",
            "CPU us/event",
        ],
        rows=rows(everything, best_fixed_loss(wide), len(wide.labels)),
        claims=found,
        draw=picture(everything),
        size=(4.4 * (len(streams) + 1), 4.6),
    )
