"""SDCA, stochastic dual coordinate ascent: 002 section 4, with mini-batches.

The dual problem has a variable for each example. A step maximizes it in one of them (14), or in
each of a batch as if it were alone, with a bend that accounts for the others (15). Any loss and an
elastic net will do: the step is an implicit step of the loss, and l1 makes w a soft threshold of a
sum of rows. The gap between P(w) and D(a) is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.hindsight.epochs import DualEpochs
from streamlearn.hindsight.intercept_search import InterceptSearch
from streamlearn.hindsight.solution import Progress, Solution

if TYPE_CHECKING:
    from streamlearn.estimators.frames import Array
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.solution import Callback

UPDATES = ("naive", "safe", "aggressive")
EPOCHS = 10_000


@dataclass(frozen=True)
class DualSolution(Solution):
    """A Solution with its dual variables: the slope that the dual gives to each example's loss.

    As a `start` it saves the next solution nearly all work; rows may have been added at the end.
    """

    dual: Array = field(default_factory=lambda: np.zeros(0), repr=False)


def sdca(
    problem: Problem,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
    batch: int = 1,
    update: str = "safe",
    average: bool = False,
    seed: int = 0,
) -> DualSolution:
    """Epochs of dual steps until the duality gap is small enough; an iteration is an epoch.

    The gap is measured, and a Step recorded, now and then and when a sample of the examples says
    that it may be small enough. A free intercept is found by an outer search.

    Parameters
    ----------
    batch
        The b of 002: how many examples answer the same w.
    update
        How far the steps of a batch go: "naive", as if each were alone (may not converge);
        "safe", by the spectral bound beta_b; "aggressive", by what was measured on the way.
        With batch = 1 they are the same.
    average
        Whether to measure the mean of the duals over the latter half of the epochs too, 002 (21).
    seed
        Of the random order.
    """
    batch, seed = _whole("batch", batch, 1), _whole("seed", seed, 0)
    if update not in UPDATES:
        raise ValueError(f"update is one of {', '.join(UPDATES)}; not {update!r}")
    progress = Progress(problem, "sdca", gap=gap, callback=callback)
    limit = EPOCHS if max_iter is None else max_iter
    dual = np.zeros(0)
    with progress:
        w = problem.start(start)
        stop = progress.record(0, w, _objective(problem, w))
        epochs = DualEpochs(
            problem, batch=batch, update=update, average=average, seed=seed, limit=limit
        )
        try:
            if not stop:
                _run(epochs, progress, w, start)
        finally:
            dual = epochs.ascent.duals
    found = progress.solution()
    known = {part.name: getattr(found, part.name) for part in fields(found)}
    return DualSolution(**known, dual=dual)


def _objective(problem: Problem, w: Array) -> float:
    """J(w); at 0, where nearly all runs start, without a pass over the rows."""
    if w.any():
        return problem.objective(w)
    losses: Array = problem.loss.value(np.zeros(problem.rows), problem.y)
    return float((problem.weights * losses).sum())


def _run(epochs: DualEpochs, progress: Progress, w: Array, start: Any) -> None:
    weights, t = np.split(w, [epochs.problem.features])
    if start is not None:
        epochs.warm_start(
            weights, float(t.sum()), np.asarray(getattr(start, "dual", ()), dtype=float)
        )
    if len(t):
        InterceptSearch(epochs, progress, float(t[0])).run()
    else:
        epochs.run_until(
            progress.gap,
            lambda found: progress.record(found.epoch, found.w, found.primal, found.dual),
        )


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)
