"""Inverse time dependency: more data need fewer steps to a fixed accuracy ([Zhu09] Figs. 5-9).

The Primal Gradient Solver draws examples at random from m of them until it reaches the test
accuracy (for Gaussians, the distance from the true direction): with the fastest sigma, as in
Theorem 2, and with the sigma of the best final accuracy, as in the paper's experiments. k = 1, and
300 for p = 1.8, where the paper's step costs O(n).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from matplotlib.lines import Line2D

from benchmarks.papers.descent import (
    L2_LOGISTIC,
    L2_SQUARES,
    L18_LOGISTIC,
    Data,
    Kind,
    Trace,
    ccat,
    lbfgs,
    quantile,
    stochastic,
    toy,
)
from benchmarks.papers.finding import Finding, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUARTERS = (0.25, 0.5, 0.75)


# -- curves over m ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Steps to a goal (quartiles over the runs), and the median of seconds."""

    steps: tuple[float, float, float]
    seconds: float
    sigma: float

    @property
    def median(self) -> float:
        """The median of the steps."""
        return self.steps[1]


Trials: TypeAlias = Mapping[float, Sequence[Trace]]  # by sigma
Points: TypeAlias = dict[int, Point]  # by m


def point(trials: Trials, sigma: float, goal: float) -> Point:
    """Return what the traces of one sigma needed to reach the goal."""
    each = [trace.reached(goal) for trace in trials[sigma]]
    low, half, high = (quantile([steps for steps, _ in each], share) for share in QUARTERS)
    return Point((low, half, high), quantile([seconds for _, seconds in each]), sigma)


def fastest(trials: Trials, goal: float) -> Point:
    """Return the point of the sigma that reaches the goal in the fewest steps."""
    return min((point(trials, s, goal) for s in trials), key=lambda one: one.median)


def most_accurate(trials: Trials, goal: float) -> Point:
    """Return the point of the sigma with the best final score."""
    ends = {s: quantile([trace.values[-1] for trace in trials[s]]) for s in trials}
    return point(trials, max(ends, key=lambda s: ends[s]), goal)


def sizes_with_goal(points: Points) -> list[int]:
    """Return the m that reached the goal."""
    return [m for m in sorted(points) if math.isfinite(points[m].median)]


@dataclass(frozen=True)
class Curve:
    """Steps and time over m for one goal, by both choices of sigma, and those of L-BFGS."""

    name: str
    goal: str
    first: Points
    best: Points
    lbfgs: Points

    def ends(self, points: Points) -> tuple[Point, Point]:
        """Return the points of the smallest m that reaches the goal, and of the largest."""
        return points[min(sizes_with_goal(points), default=min(points))], points[max(points)]

    def falls(self) -> bool:
        """Return whether the largest m needs fewer steps than the smallest, and nearly the fewest.

        At large m the curve is flat, and medians of few runs scatter by a third.
        """
        few, all_data = self.ends(self.first)
        least = min(one.median for one in self.first.values())
        return all_data.median < few.median and all_data.median <= 1.35 * least

    def claims(self) -> dict[str, bool]:
        """Check the claims of section V; those about time only if L-BFGS was run too."""
        found = {"fewer steps with more data": self.falls()}
        if self.lbfgs:
            few, all_data = self.ends(self.first)
            found["less time with more data"] = all_data.seconds < few.seconds
            few, all_data = self.ends(self.lbfgs)
            found["L-BFGS takes more time with more data"] = all_data.seconds > few.seconds
        return {f"{self.name}, {self.goal}: {claim}": true for claim, true in found.items()}


@dataclass(frozen=True)
class Experiment:
    """The settings of a kind: m, sigmas, goals, and the maximal number of steps."""

    kind: Kind
    sizes: Sequence[int]
    sigmas: Sequence[float]
    goals: Mapping[str, float]
    limit: int

    def curves(
        self, name: str, data: Data, runs: int, *, with_lbfgs: bool = False
    ) -> Iterator[Curve]:
        """Generate a curve for each goal, from the same traces."""
        trials = {m: self.trials(data, m, runs) for m in self.sizes}
        others = {m: self.others(data, m, runs) for m in self.sizes} if with_lbfgs else {}
        for goal, value in self.goals.items():
            yield Curve(
                name,
                goal,
                {m: fastest(found, value) for m, found in trials.items()},
                {m: most_accurate(found, value) for m, found in trials.items()},
                {m: fastest(found, value) for m, found in others.items()},
            )

    def trials(self, data: Data, m: int, runs: int) -> Trials:
        """Run the solver for each sigma."""
        return {
            s: [stochastic(self.kind, s, data, m, self.limit, seed) for seed in range(runs)]
            for s in self.sigmas
        }

    def others(self, data: Data, m: int, runs: int) -> Trials:
        """Run L-BFGS for each sigma; a few runs suffice, as only the examples are random."""
        some = range(min(runs, 3))
        return {s: [lbfgs(self.kind, s, data, m, seed)[0] for seed in some] for s in self.sigmas}


# -- output -------------------------------------------------------------------------------------


def shown(one: Point) -> str:
    """Format steps, time and sigma."""
    if math.isinf(one.median):
        return "never"
    return f"{one.median:.0f} ({1e3 * one.seconds:.2g} ms, {one.sigma:g})"


def lbfgs_cell(points: Points) -> str:
    """Format iterations and time of L-BFGS for the smallest and the largest m."""
    if not sizes_with_goal(points):
        return ""
    few, most = min(sizes_with_goal(points)), max(points)
    return f"{few}: {shown(points[few])}; all: {shown(points[most])}"


def cells(curve: Curve) -> list[str]:
    """Format a line of the table."""
    few = min(sizes_with_goal(curve.first), default=min(curve.first))
    return [
        curve.name,
        curve.goal,
        f"{few}: {shown(curve.first[few])}",
        shown(curve.first[max(curve.first)]),
        shown(curve.best[few]),
        shown(curve.best[max(curve.first)]),
        lbfgs_cell(curve.lbfgs),
    ]


def picture(curves: Sequence[Curve]) -> Callable[["Figure"], None]:
    """Draw steps (above) and time (below) over m: one panel for Gaussians, one per text problem."""
    panels: dict[str, list[Curve]] = {}
    for curve in curves:
        name = "l2 logistic, Gaussians" if "dimensions" in curve.name else curve.name
        panels.setdefault(name, []).append(curve)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots(2, len(panels), squeeze=False, sharex="col")
        for (above, below), (name, some) in zip(axes.T, panels.items(), strict=True):
            for axis in (above, below):
                axis.set(xscale="log", yscale="log")
                plain(axis.xaxis)
                plain(axis.yaxis)
                axis.margins(x=0.2)
                axis.tick_params(which="both", labelsize=8)
            for c, curve in enumerate(some):
                steps(above, curve, f"C{c}")
                seconds(below, curve, f"C{c}")
            above.set(title=name, ylabel="steps to the goal")
            below.set(xlabel="training examples m", ylabel="CPU seconds to the goal")
        lines = [Line2D([], [], color="k", marker=m, ls=ls, ms=4) for m, ls in STYLES.values()]
        figure.legend(lines, list(STYLES), loc="outside lower center", ncols=3, fontsize=9)

    return draw


STYLES = {
    "fastest sigma, with quartiles": ("o", "-"),
    "sigma of best final accuracy": ("", ":"),
    "L-BFGS, fastest sigma": ("x", "--"),
}


def drawn(
    axis: "Axes", points: Points, style: str, color: str, of: Callable[[Point], float]
) -> None:
    """Draw one line over the m that reached the goal."""
    marker, line = STYLES[style]
    sizes = sizes_with_goal(points)
    values = [of(points[m]) for m in sizes]
    axis.plot(sizes, values, color=color, marker=marker, ls=line, ms=4, lw=1.2)


def named(axis: "Axes", curve: Curve, color: str, of: Callable[[Point], float]) -> None:
    """Write the curve's name at its right end."""
    name = curve.name if "dimensions" in curve.name else curve.goal.removeprefix("accuracy ")
    name = f"n = {name.removesuffix(' dimensions')}" if "dimensions" in name else name
    m = max(curve.first)
    where = (m, of(curve.first[m]))
    axis.annotate(name, where, (5, 0), textcoords="offset points", c=color, fontsize=8, va="center")


def steps(axis: "Axes", curve: Curve, color: str) -> None:
    """Draw medians by both choices of sigma, and the quartiles of the first."""
    first, best, _ = STYLES

    def median(one: Point) -> float:
        return one.median

    drawn(axis, curve.first, first, color, median)
    drawn(axis, curve.best, best, color, median)
    sizes = sizes_with_goal(curve.first)
    low = [curve.first[m].steps[0] for m in sizes]
    # clipped where a quarter of the runs did not reach the goal
    high = [min(curve.first[m].steps[2], 3.0 * curve.first[m].median) for m in sizes]
    axis.fill_between(sizes, low, high, color=color, alpha=0.15, lw=0)
    named(axis, curve, color, median)


def seconds(axis: "Axes", curve: Curve, color: str) -> None:
    """Draw the time of the solver, and of L-BFGS if it was run."""

    def taken(one: Point) -> float:
        return one.seconds

    for points, style in zip((curve.first, curve.best, curve.lbfgs), STYLES, strict=True):
        drawn(axis, points, style, color, taken)
    named(axis, curve, color, taken)


TEXT_SIZES = (1_250, 2_000, 3_000, 5_000, 8_000, 12_000, 20_000)
TEXT_GOALS = {f"accuracy {goal}%": goal / 100 for goal in (90, 91, 92, 93)}
TEXT_EXPERIMENTS = (
    Experiment(L2_LOGISTIC, TEXT_SIZES, (1e-3, 3e-4, 1e-4, 3e-5), TEXT_GOALS, 40_000),
    Experiment(L18_LOGISTIC, TEXT_SIZES, (3e-4, 1e-4, 3e-5, 1e-5), TEXT_GOALS, 120),
    Experiment(L2_SQUARES, TEXT_SIZES, (3e-3, 1e-3, 3e-4), TEXT_GOALS, 60_000),
)
TOY_SIZES = (2_000, 3_000, 5_000, 8_000, 12_000, 20_000, 30_000, 50_000, 100_000, 200_000)
TOY_GOAL = {"distance 0.05": -0.05}
TOY_EXPERIMENTS = {
    n: Experiment(L2_LOGISTIC, TOY_SIZES, (0.05, 0.03), TOY_GOAL, 3_500 * n) for n in (10, 20, 40)
}
QUICK_EXPERIMENT = Experiment(
    L2_LOGISTIC, (300, 2_000, 20_000), (0.1, 0.03), {"distance 0.15": -0.15}, 4_000
)


def run(data: Path, *, quick: bool = False, permutations: int = 11) -> Finding:
    """Run on Gaussians and rcv1v2_ccat, or on small Gaussians."""
    if quick:
        curves = list(QUICK_EXPERIMENT.curves("10 dimensions", toy(20_000, 10), 5))
    else:
        curves = []
        for n, experiment in TOY_EXPERIMENTS.items():
            curves += experiment.curves(
                f"{n} dimensions", toy(200_000, n), max(2, 60 // n) * permutations
            )
        text = ccat(data)
        for experiment in TEXT_EXPERIMENTS:
            with_lbfgs = experiment.kind is L2_LOGISTIC
            curves += experiment.curves(
                experiment.kind.name, text, permutations, with_lbfgs=with_lbfgs
            )
    return Finding(
        title="[Zhu09] Figures 5 to 9: inverse time dependency",
        head=[
            "problem",
            "goal",
            "smallest m that reaches it",
            "largest m",
            "most accurate sigma: smallest m",
            "most accurate sigma: largest m",
            "L-BFGS",
        ],
        rows=[cells(curve) for curve in curves],
        claims={claim: true for curve in curves for claim, true in curve.claims().items()},
        draw=picture(curves),
        size=(16.0, 7.0) if not quick else (5.0, 7.0),
    )
