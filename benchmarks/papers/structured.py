"""The bundle method and the proximal bundle method on structured losses ([Do09] Figure 3).

Web search: queries whose documents have grades of 0 to 4, and NDCG. Label sequences replace the
paper's RNA folding: a chain of labels with emission and transition features, the fraction of wrong
labels as the loss, and Viterbi's algorithm as the oracle.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import streamlearn as sl
from benchmarks.papers.finding import Finding
from streamlearn.hindsight import Solution, solve, solve_risk
from streamlearn.hindsight.structured import multivariate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.intp]

METHODS = ("bundle", "proximal-bundle")
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-5)
NEAR = 0.05  # of f(0) - min f: distance to the best objective that counts as reached


@dataclass(frozen=True)
class Queries:
    """Documents, their grades, and the query of each."""

    rows: "Floats"
    grades: "Floats"
    groups: "Ints"


def queries(number: int, documents: int, features: int, seed: int = 0) -> Queries:
    """Generate grades of 0 to 4 by a noisy score; most documents are irrelevant, as on the web."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(number * documents, features))
    groups = np.repeat(np.arange(number), documents)
    # a common offset of each query
    rows[:, 0] += rng.normal(size=number)[groups]
    truth = rng.normal(size=features) / math.sqrt(features)
    scores = rows @ truth + 0.5 * rng.normal(size=len(rows))
    # features have different units
    rows *= np.geomspace(1.0, 0.03, features)
    grades = np.searchsorted(np.quantile(scores, [0.6, 0.8, 0.92, 0.98]), scores).astype(float)
    return Queries(rows, grades, groups)


class Chains:
    """Sequences of one length, their labels, and the maximum-margin loss of a chain model.

    max over y' of  Delta(y', y) + <w, phi(x, y') - phi(x, y)>,  the mean over sequences; w holds
    the emission weights of each label, then a weight for each pair of neighbors.
    """

    def __init__(self, tokens: "Floats", labels: "Ints") -> None:
        self.tokens = tokens  # sequence x place x feature
        self.labels = labels  # sequence x place
        self.kinds = int(labels.max()) + 1
        self.emissions = self.kinds * tokens.shape[2]
        self.size = self.emissions + self.kinds**2
        self.truth = self.features(labels)
        wrong = labels[:, :, None] != np.arange(self.kinds)
        self.costs = wrong / labels.shape[1]

    def features(self, labels: "Ints") -> "Floats":
        """Return the mean of phi over the sequences."""
        marks = np.eye(self.kinds)[labels]
        emitted = np.einsum("nlk,nlf->kf", marks, self.tokens)
        moved = np.einsum("nlj,nlk->jk", marks[:, :-1], marks[:, 1:])
        return np.asarray(np.concatenate([emitted.ravel(), moved.ravel()]) / len(labels))

    def value_and_slope(self, w: "Floats") -> tuple[float, "Floats"]:
        """Return the loss and a subgradient."""
        emit = w[: self.emissions].reshape(self.kinds, -1)
        move = w[self.emissions :].reshape(self.kinds, self.kinds)
        scores = self.tokens @ emit.T + self.costs
        worst = viterbi(scores, move)
        slope = self.features(worst) - self.truth
        cost = np.take_along_axis(self.costs, worst[:, :, None], axis=2).sum() / len(worst)
        return float(cost + slope @ w), slope


def viterbi(scores: "Floats", move: "Floats") -> "Ints":
    """Return the best labels of all sequences (scores: sequence x position x label)."""
    n, length, _ = scores.shape
    best = scores[:, 0]
    back = np.zeros(scores.shape, dtype=np.intp)
    for k in range(1, length):
        through = best[:, :, None] + move
        back[:, k] = through.argmax(axis=1)
        best = through.max(axis=1) + scores[:, k]
    labels = np.empty((n, length), dtype=np.intp)
    labels[:, -1] = best.argmax(axis=1)
    for k in range(length - 1, 0, -1):
        labels[:, k - 1] = back[np.arange(n), k, labels[:, k]]
    return labels


def chains(number: int, length: int, kinds: int, features: int, seed: int = 0) -> Chains:
    """Generate labels of a hidden Markov model, and noisy tokens."""
    rng = np.random.default_rng(seed)
    move = np.log(rng.dirichlet(0.5 * np.ones(kinds), size=kinds) + 1e-3)
    emit = rng.normal(size=(kinds, features))
    tokens = rng.normal(size=(number, length, features))
    noise = rng.gumbel(size=(number, length, kinds))
    return Chains(tokens, viterbi(tokens @ emit.T + noise, move))


Solver: TypeAlias = Callable[[float, str], Solution]


def problems(*, quick: bool) -> Iterator[tuple[str, Solver]]:
    """Generate the two problems, as functions of lambda and the method."""
    limit = 60 if quick else 150
    asked = queries(60, 15, 12) if quick else queries(1_000, 50, 60)

    def rank(l2: float, method: str) -> Solution:
        return solve(
            asked.rows,
            asked.grades,
            multivariate.NDCG(),
            sl.penalties.L2(l2),
            groups=asked.groups,
            method=method,
            gap=0.0,
            max_iter=limit,
        )

    def label(chain: Chains, l2: float, method: str) -> Solution:
        return solve_risk(chain, sl.penalties.L2(l2), method=method, gap=0.0, max_iter=limit)

    yield "ranking", rank
    chain = chains(60, 10, 4, 5) if quick else chains(151, 60, 6, 50)
    yield "sequences", partial(label, chain)


Key: TypeAlias = tuple[str, float, str]  # problem, lambda, method


def objectives(solution: Solution) -> "Floats":
    """Return the best objective after 1, 2, ... iterations; the first is that of w = 0."""
    found: dict[int, float] = {step.iteration: step.objective for step in solution.history}
    values = np.array([found.get(k, math.nan) for k in range(1, solution.iterations + 1)])
    return np.asarray(np.minimum.accumulate(np.where(np.isnan(values), math.inf, values)))


def needed(values: "Floats", goal: float) -> float:
    """Return the iterations until the objective is at most `goal`."""
    reached = np.flatnonzero(values <= goal)
    return float(reached[0] + 1) if len(reached) else math.inf


def picture(found: dict[Key, "Floats"], lambdas: Sequence[float]) -> Callable[["Figure"], None]:
    """Draw a row for each problem, a column for each lambda, the largest first."""

    def draw(figure: "Figure") -> None:
        names = list(dict.fromkeys(name for name, _, _ in found))
        axes = figure.subplots(len(names), len(lambdas), squeeze=False)
        for i, name in enumerate(names):
            for j, l2 in enumerate(lambdas):
                for method in METHODS:
                    values = found[name, l2, method]
                    axes[i][j].plot(np.arange(1, len(values) + 1), values, label=method)
                axes[i][j].set_title(f"{name}, lambda = {l2:g}", fontsize=9)
                if i == len(names) - 1:
                    axes[i][j].set_xlabel("iterations")
            axes[i][0].set_ylabel("best objective")
        axes[0][0].legend(fontsize=8)

    return draw


def run(data: Path, *, quick: bool = False) -> Finding:  # noqa: ARG001 - generated in any case
    """Run both methods over lambda, on both problems."""
    lambdas = (1e-1, 1e-5) if quick else LAMBDAS
    found: dict[Key, Floats] = {}
    rows, claims = [], {}
    for name, solver in problems(quick=quick):
        for l2 in lambdas:
            both = {method: objectives(solver(l2, method)) for method in METHODS}
            found |= {(name, l2, method): values for method, values in both.items()}
            least = min(float(values[-1]) for values in both.values())
            goal = least + NEAR * (both["bundle"][0] - least)
            counts = [needed(both[method], goal) for method in METHODS]
            rows.append(
                [name, f"{l2:g}", *(f"{both[m][-1]:.4f}" for m in METHODS)]
                + [f"{count:g}" for count in counts]
            )
            if l2 <= 1e-3:
                claims[f"{name}: the proximal method wins with lambda = {l2:g}"] = (
                    counts[1] < counts[0]
                )
    return Finding(
        title="[Do09] Figure 3: bundle and proximal bundle",
        head=["problem", "lambda", *(f"{m}, objective" for m in METHODS)]
        + [f"{m}, iterations" for m in METHODS],
        rows=rows,
        claims=claims,
        draw=picture(found, lambdas),
        size=(3.2 * len(lambdas), 5.5),
    )
