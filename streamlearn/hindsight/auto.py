"""Choose the method for a problem.

The choice follows from measurements: `python -m benchmarks.hindsight --only methods`. Where SDCA
([Takac13]) applies it is the fastest by far, 5 to 50 times on text and on scaled features, but it
stalls when features differ widely in scale. So it runs first, for as many epochs as it needs on
well-scaled problems; if it stalls, Newton's method (smooth losses) or cutting planes (losses with
kinks) resumes from its solution. Where SDCA does not apply: Newton's method for smooth losses of
one output, and under l1 for Softmax, which takes a tenth of the time of OWL-QN or less; L-BFGS for
Softmax without l1; cutting planes for losses with kinks.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from streamlearn.hindsight.methods import METHODS, norm_penalty
from streamlearn.hindsight.solution import Solution, Step

if TYPE_CHECKING:
    from streamlearn.hindsight.methods import Method
    from streamlearn.hindsight.problem import LinearProblem
    from streamlearn.hindsight.solution import Callback

TRIAL = 30  # epochs
KINKED_TRIAL = 300  # epochs; cutting planes, which follow, need many passes at a small penalty
CURVED = ("newton", "newton-cg", "lbfgs", "owlqn")
PLANES = "bundle-ls"


def supporting_methods(problem: LinearProblem) -> list[Method]:
    """List the methods that solve this problem, the preferred one first."""
    methods = [method for method in METHODS.values() if method.why_unsupported_by(problem) is None]
    if problem.outputs > 1 and problem.penalty.l1 == 0.0:  # its working set would be everything
        methods.sort(key=lambda method: method.name == "newton")
    return methods


def alternatives(problem: LinearProblem) -> str:
    """Suggest what to do instead of what was rejected."""
    names = [method.name for method in supporting_methods(problem)]
    if names:
        return f"use method={' or '.join(map(repr, names))}, or 'auto'"
    if not norm_penalty(problem.penalty):
        return "use L2, L1 or ElasticNet with a strength > 0"
    return "no method supports this loss with this penalty"


def auto(
    problem: Any,
    *,
    gap: float,
    max_iter: int | None = None,
    start: Any = None,
    callback: Callback | None = None,
    **options: Any,
) -> Solution:
    """Solve the problem with the preferred method, and if that stalls with a second one."""
    methods = supporting_methods(problem)
    if not methods:
        raise ValueError(
            f"no method solves {problem.loss!r} with {problem.penalty!r}: {alternatives(problem)}"
        )
    first = methods[0]
    then, trial = next((m for m in methods if m.name in CURVED), None), TRIAL
    if then is None:
        then, trial = next((m for m in methods if m.name == PLANES), None), KINKED_TRIAL
    alone = first.name in (*CURVED, PLANES)
    if alone or then is None or options or (max_iter or trial + 1) <= trial:
        return first(problem, gap=gap, max_iter=max_iter, start=start, callback=callback, **options)
    tried = first(problem, gap=gap, max_iter=trial, start=start, callback=callback)
    if tried.gap <= gap or tried.interrupted:
        return tried
    problem = copy(problem)
    problem.known_bound = max(problem.known_bound, tried.lower_bound)
    left = None if max_iter is None else max_iter - trial
    found = then(
        problem, gap=gap, max_iter=left, start=tried, callback=renumbering_callback(tried, callback)
    )
    return merged(tried, found)


def renumbering_callback(tried: Solution, callback: Callback | None) -> Callback | None:
    """Wrap the callback so that both methods report their steps as one sequence."""
    if callback is None:
        return None
    return lambda step: callback(renumbered(tried, step))


def renumbered(tried: Solution, step: Step) -> Step:
    """Renumber a step of the second method from the start of the first."""
    objective = min(tried.objective, step.objective)
    return Step(
        tried.iterations + step.iteration,
        objective,
        min(max(tried.lower_bound, step.lower_bound), objective),
        tried.history[-1].seconds + step.seconds,
    )


def merged(tried: Solution, found: Solution) -> Solution:
    """Return the better solution, with the history of both."""
    best = found if found.objective <= tried.objective else tried
    lower_bound = min(max(tried.lower_bound, found.lower_bound), best.objective)
    return Solution(
        w=best.w,
        intercept=best.intercept,
        objective=best.objective,
        lower_bound=lower_bound,
        gap=best.objective - lower_bound,
        iterations=tried.iterations + found.iterations,
        history=[*tried.history, *(renumbered(tried, step) for step in found.history)],
        method=f"{tried.method}, {found.method}",
        interrupted=found.interrupted,
        labels=best.labels,
    )
