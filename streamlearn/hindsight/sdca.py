"""SDCA, stochastic dual coordinate ascent, with mini-batches ([Takac13] section 4).

The dual problem has a variable for each example. A step maximizes over one of them (14), or over
each of a batch separately, with extra curvature that accounts for the others (15). Any loss and an
elastic net are supported: the step is an implicit step of the loss, and l1 makes w a soft threshold
of a sum of rows. The gap P(w) - D(a) is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.integers import integer
from streamlearn.hindsight.epochs import DualEpochs
from streamlearn.hindsight.intercept_search import InterceptSearch
from streamlearn.hindsight.solution import Progress, Solution

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.problem import Problem
    from streamlearn.hindsight.solution import Callback

UPDATES = ("naive", "safe", "aggressive")
EPOCHS = 10_000


@dataclass(frozen=True)
class DualSolution(Solution):
    """A Solution with its dual variables: a slope of each example's loss.

    As a `start` it saves nearly all work of the next solution; rows may have been appended.
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
    """Run epochs of dual steps until the duality gap is small enough; an iteration is an epoch.

    The gap is measured, and a Step recorded, from time to time and when an estimate from a sample
    of the examples says that it may be small enough. A free intercept is found by an outer search.

    Parameters
    ----------
    batch
        The b of [Takac13]: how many examples are updated at the same w.
    update
        The step length of a batch: "naive", as for a single example (may not converge); "safe", by
        the spectral bound beta_b; "aggressive", by the curvature measured on the way. All are the
        same for batch = 1.
    average
        Whether to also measure the mean of the duals over the second half of the epochs, (21).
    seed
        Seed of the random order.
    """
    batch, seed = integer("batch", batch, 1), integer("seed", seed, 0)
    if update not in UPDATES:
        raise ValueError(f"update must be one of {', '.join(UPDATES)}, got {update!r}")
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
    """Return J(w); at 0, where nearly all runs start, without a pass over the rows."""
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
