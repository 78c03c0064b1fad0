"""`solve`: one function for every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.core.integers import integer
from streamlearn.core.parameters import number
from streamlearn.hindsight.auto import alternatives, auto
from streamlearn.hindsight.methods import METHODS, AnyLoss
from streamlearn.hindsight.problem import Problem
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
from streamlearn.hindsight.structured.multivariate.problem import MultivariateProblem

if TYPE_CHECKING:
    from streamlearn.hindsight.methods import Method
    from streamlearn.hindsight.problem import LinearProblem
    from streamlearn.hindsight.solution import Callback, Solution
    from streamlearn.penalties import Penalty


def solve(
    X: Any,
    y: Any,
    loss: AnyLoss,
    penalty: Penalty,
    *,
    fit_intercept: bool = False,
    method: str = "auto",
    gap: float = 1e-4,
    max_iter: int | None = None,
    start: Any = None,
    weights: Any = None,
    groups: Any = None,
    callback: Callback | None = None,
    threads: int = 1,
    **options: Any,
) -> Solution:
    """Minimize the weighted mean of the losses plus Psi(w), with a certified gap.

    Parameters
    ----------
    X
        The rows: scipy CSR or an array, float64 or float32, not copied.
    y
        Their labels, as for `learn_rows`.
    loss, penalty
        A loss of `sl.losses` or `sl.hindsight.multivariate`, or a hierarchical one; L1, L2 or
        ElasticNet of a strength > 0, or for the bundle methods a Ball.
    fit_intercept
        Whether to add an intercept, which is not penalized.
    method
        "auto", or a name in `sl.hindsight.METHODS`.
    gap
        Stop when the objective is at most this far above a certified lower bound.
    max_iter
        The largest number of iterations.
    start
        A Solution or weights to start from.
    weights
        A weight >= 0 for each row.
    groups
        The query of each row, for the ranking losses of `sl.hindsight.multivariate`.
    callback
        Called with a Step after each iteration. Returning True, or Ctrl-C, stops the solver: it
        returns the best solution so far with its gap.
    threads
        The number of threads for passes over all rows.
    options
        Further options of the method.
    """
    problem = build_problem(
        X,
        y,
        loss,
        penalty,
        weights=weights,
        groups=groups,
        fit_intercept=fit_intercept,
        threads=threads,
    )
    return solve_problem(
        problem,
        method=method,
        gap=gap,
        max_iter=max_iter,
        start=start,
        callback=callback,
        **options,
    )


def solve_problem(
    problem: LinearProblem,
    *,
    method: str,
    gap: float,
    max_iter: int | None,
    start: Any,
    callback: Callback | None,
    **options: Any,
) -> Solution:
    """Solve a problem by the named method, or the preferred one."""
    arguments: dict[str, Any] = {
        "gap": number("solve", "gap", gap, low=0.0),
        "max_iter": None if max_iter is None else integer("max_iter", max_iter, 1),
        "start": start,
        "callback": callback,
        **options,
    }
    if method == "auto":
        return auto(problem, **arguments)
    chosen = method_named(method)
    reason = chosen.why_unsupported_by(problem)
    if reason is not None:
        raise ValueError(f"{reason}; {alternatives(problem)}")
    return chosen(problem, **arguments)


def build_problem(
    X: Any,
    y: Any,
    loss: AnyLoss,
    penalty: Penalty,
    *,
    weights: Any,
    groups: Any,
    fit_intercept: bool,
    threads: int,
) -> Problem | MultivariateProblem:
    """Build the problem of a loss of single rows or of all rows together."""
    if isinstance(loss, MultivariateLoss):
        return MultivariateProblem(
            X,
            y,
            loss,
            penalty,
            groups=groups,
            weights=weights,
            fit_intercept=fit_intercept,
            threads=threads,
        )
    if groups is not None:
        raise ValueError(f"groups: {loss!r} is a loss of single rows; leave groups out")
    return Problem(
        X, y, loss, penalty, weights=weights, fit_intercept=fit_intercept, threads=threads
    )


def method_named(name: str) -> Method:
    """Return the method of this name."""
    if name not in METHODS:
        raise ValueError(f"method must be one of auto, {', '.join(METHODS)}, got {name!r}")
    return METHODS[name]
