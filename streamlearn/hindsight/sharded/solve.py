"""`solve_shards`: `solve` for data in shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.hindsight.sharded.host import LocalHost
from streamlearn.hindsight.sharded.problem import load_shards
from streamlearn.hindsight.solve import solve_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.sharded.data import ShardSource
    from streamlearn.hindsight.sharded.host import Host
    from streamlearn.hindsight.solution import Callback, Solution
    from streamlearn.penalties import Penalty


def solve_shards(
    shards: Sequence[ShardSource],
    loss: AnyLoss,
    penalty: Penalty,
    *,
    host: Host | None = None,
    fit_intercept: bool = False,
    method: str = "auto",
    gap: float = 1e-4,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
    **options: Any,
) -> Solution:
    """Minimize the weighted mean of the losses over all shards plus Psi(w), with a certified gap.

    Each shard is loaded once, and computes its part of values, gradients and Hessian products; only
    these and w travel. The result does not depend on where the shards are.

    Parameters
    ----------
    shards
        The shards: `ArrayShard(X, y)`, those of `file_shards`, or your own `ShardSource`. They may
        be of unlike size, or empty.
    loss, penalty
        As for `solve`. The groups of a loss of rankings must each lie in one shard.
    host
        Where the shards are: None is a thread for each in this process, `fleet.RayHost` the workers
        of a Ray cluster.
    fit_intercept, method, gap, max_iter, start, callback, options
        As for `solve`; methods that need single rows (sdca, newton) are not available.

    Examples
    --------
    >>> import numpy as np
    >>> import streamlearn as sl
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]])
    >>> y = [1, 0, 1, 0]
    >>> shards = [sl.hindsight.ArrayShard(X[:3], y[:3]), sl.hindsight.ArrayShard(X[3:], y[3:])]
    >>> solution = sl.hindsight.solve_shards(shards, sl.losses.Logistic(), sl.penalties.L2(0.1))
    >>> solution.method, solution.gap <= 1e-4, solution.w.round(2).tolist()
    ('newton-cg', True, [1.5, -0.48])
    """
    loaded = load_shards(
        shards, loss, penalty, LocalHost() if host is None else host, fit_intercept=fit_intercept
    )
    return solve_problem(
        loaded.problem,
        method=method,
        gap=gap,
        max_iter=max_iter,
        start=start,
        callback=callback,
        **options,
    )
