"""What a solver returns, and the progress that it records."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from types import TracebackType

    from streamlearn.core.arrays import Array
    from streamlearn.hindsight.problem import Objective
    from streamlearn.hindsight.risk import Vector


class Step(NamedTuple):
    """A solver's progress after an iteration: the best objective and bound so far."""

    iteration: int
    objective: float
    lower_bound: float
    seconds: float

    @property
    def gap(self) -> float:
        """How far the best solution may be above the optimum."""
        return self.objective - self.lower_bound


Callback = Callable[[Step], object]


@dataclass(frozen=True)
class Solution:
    """The best fixed w that was found, with its certificate.

    The optimum is between `lower_bound` and `objective`; `gap` is their difference. `w` has a
    weight for each feature, or with several outputs a row of them for each output. `labels` are the
    classes in the order of the outputs, of two the positive one last. `interrupted`: Ctrl-C or the
    callback stopped the solver before the gap was reached.
    """

    w: Array
    intercept: Any
    objective: float
    lower_bound: float
    gap: float
    iterations: int
    history: list[Step] = field(repr=False)
    method: str
    interrupted: bool = False
    labels: list[Any] = field(default_factory=list)


class Progress:
    """The best w and bound so far; as a context manager, it turns Ctrl-C into a normal end.

    A method enters `with progress:`, calls `record` after each iteration until it returns True,
    and returns `solution()`.
    """

    def __init__(
        self, problem: Objective, method: str, *, gap: float, callback: Callback | None = None
    ) -> None:
        self.problem = problem
        self.method = method
        self.gap = gap
        self.callback = callback
        self.w: Vector | None = None
        self.objective = math.inf
        self.lower_bound = problem.known_bound
        self.history: list[Step] = []
        self.interrupted = False
        self._began = time.perf_counter()

    def record(
        self, iteration: int, w: Vector, objective: float, lower_bound: float = -math.inf
    ) -> bool:
        """Record J(w) and a bound; return whether to stop."""
        if objective < self.objective:
            self.w = w.copy()
            self.objective = objective
        self.raise_bound(lower_bound)
        seconds = time.perf_counter() - self._began
        step = Step(iteration, self.objective, self.lower_bound, seconds)
        self.history.append(step)
        stop = self.callback(step) if self.callback is not None else None
        self.interrupted = stop is True and step.gap > self.gap
        return step.gap <= self.gap or stop is True

    def raise_bound(self, lower_bound: float) -> None:
        """Raise the lower bound, if this one is better."""
        self.lower_bound = min(max(self.lower_bound, lower_bound), self.objective)

    def solution(self) -> Solution:
        """Return the best solution that was recorded, or the start if none was."""
        if self.w is None:
            self.w = self.problem.start()
            self.objective = self.problem.objective(self.w)
        w, intercept = self.problem.split(self.w)
        lower_bound = min(self.lower_bound, self.objective)
        return Solution(
            w=w,
            intercept=intercept,
            objective=self.objective,
            lower_bound=lower_bound,
            gap=self.objective - lower_bound,
            iterations=self.history[-1].iteration if self.history else 0,
            history=self.history,
            method=self.method,
            interrupted=self.interrupted,
            labels=list(getattr(self.problem, "labels", [])),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.interrupted = self.interrupted or stopped
        return stopped
