"""The table of methods by name, with the losses and penalties that each supports.

A method is a function in its own file, `method(problem, *, gap, max_iter, start, callback,
**options) -> Solution`. It is imported when it is first called.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from streamlearn.core.nearest import nearest
from streamlearn.hindsight.structured.multivariate.loss import MultivariateLoss
from streamlearn.losses import Exponential, Loss, Poisson, Softmax, VectorLoss

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.hindsight.problem import LinearProblem
    from streamlearn.hindsight.solution import Solution
    from streamlearn.penalties import Penalty

AnyLoss = Loss | VectorLoss | MultivariateLoss


@dataclass(frozen=True)
class Method:
    """A method: its module and function, and what it supports."""

    name: str
    module: str
    function: str
    takes_loss: Callable[[AnyLoss], bool]
    takes_penalty: Callable[[Penalty], bool]
    takes_intercept: bool = True
    losses: str = "every loss"
    penalties: str = "L2"
    needs_rows: bool = False
    takes_linear: bool = True

    def why_unsupported(
        self, loss: AnyLoss, penalty: Penalty, *, fit_intercept: bool, has_rows: bool = True
    ) -> str | None:
        """Return why this method does not support the problem, or None if it does."""
        if not self.takes_loss(loss):
            return f"{self.name} supports {self.losses}, not {loss!r}"
        if not self.takes_penalty(penalty):
            return f"{self.name} supports {self.penalties}, not {penalty!r}"
        if fit_intercept and not self.takes_intercept:
            return f"{self.name} supports no free intercept; give X a column of ones"
        if self.needs_rows and not has_rows:
            return f"{self.name} needs single rows, which shards keep to themselves"
        return None

    def why_unsupported_by(self, problem: LinearProblem) -> str | None:
        """Return why this method does not support a problem, or None if it does."""
        if problem.linear.any() and not self.takes_linear:
            return f"{self.name} supports no linear part of the risk"
        return self.why_unsupported(
            problem.loss,
            problem.penalty,
            fit_intercept=problem.fit_intercept,
            has_rows=problem.has_rows,
        )

    def __call__(self, problem: Any, **options: Any) -> Solution:
        """Import the method and run it."""
        module = importlib.import_module(f"streamlearn.hindsight.{self.module}")
        function: Callable[..., Solution] = getattr(module, self.function)
        known = list(signature(function).parameters)[1:]
        for name in options.keys() - set(known):
            raise TypeError(f"{self.name} has no option {name!r}; {nearest(name, known)}")
        return function(problem, **options)


def any_loss(_part: object) -> bool:
    """Accept every loss."""
    return True


def scalar_loss(loss: AnyLoss) -> bool:
    """Accept losses of one output."""
    return isinstance(loss, Loss)


def smooth_loss(loss: AnyLoss) -> bool:
    """Accept losses with a continuous slope, even if it grows without bound."""
    if isinstance(loss, MultivariateLoss):
        return False
    return loss.smooth or isinstance(loss, Exponential | Poisson)


def smooth_scalar_loss(loss: AnyLoss) -> bool:
    """Accept smooth losses of one output."""
    return scalar_loss(loss) and smooth_loss(loss)


def newton_loss(loss: AnyLoss) -> bool:
    """Accept smooth losses of one output, and Softmax."""
    return smooth_scalar_loss(loss) or isinstance(loss, Softmax)


def l2_only(penalty: Penalty) -> bool:
    """Accept l2/2 |w|^2 alone, with l2 > 0."""
    return norm_penalty(penalty) and penalty.l1 == 0.0 and penalty.l2 > 0.0


def norm_penalty(penalty: Penalty) -> bool:
    """Accept L1, L2 and ElasticNet: l1 |w|_1 + l2/2 |w|^2 with l1 > 0 or l2 > 0."""
    unbounded = penalty.simple and penalty.norm_limit == float("inf")
    return unbounded and (penalty.l1 > 0.0 or penalty.l2 > 0.0)


def with_l2(penalty: Penalty) -> bool:
    """Accept L2 and ElasticNet with l2 > 0."""
    return norm_penalty(penalty) and penalty.l2 > 0.0


def norm_or_ball(penalty: Penalty) -> bool:
    """Accept L1, L2, ElasticNet or a ball: with them the planes have a finite minimizer."""
    return norm_penalty(penalty) or (penalty.simple and penalty.norm_limit < float("inf"))


_BUNDLE = "L2, L1 or ElasticNet of a strength > 0, or a Ball"

# `auto` chooses the first that supports the problem.
_TABLE = (
    Method(
        "sdca",
        "sdca",
        "sdca",
        scalar_loss,
        with_l2,
        losses="losses of one output",
        penalties="L2 and ElasticNet with l2 > 0",
        needs_rows=True,
        takes_linear=False,
    ),
    Method(
        "newton",
        "newton",
        "newton",
        newton_loss,
        norm_penalty,
        losses="smooth losses of one output, and Softmax",
        penalties="L1, L2 or ElasticNet of a strength > 0",
        needs_rows=True,
    ),
    Method(
        "newton-cg",
        "newton_cg",
        "newton_cg",
        smooth_scalar_loss,
        l2_only,
        losses="smooth losses of one output",
    ),
    Method("lbfgs", "lbfgs", "lbfgs", smooth_loss, l2_only, losses="smooth losses"),
    Method(
        "owlqn",
        "owlqn",
        "owlqn",
        smooth_loss,
        norm_penalty,
        losses="smooth losses",
        penalties="L1, L2 or ElasticNet of a strength > 0",
    ),
    Method(
        "bundle-ls",
        "bundle_line_search",
        "bundle_line_search",
        any_loss,
        norm_or_ball,
        penalties=_BUNDLE,
    ),
    Method(
        "proximal-bundle",
        "proximal_bundle",
        "proximal_bundle",
        any_loss,
        norm_or_ball,
        penalties=_BUNDLE,
    ),
    Method("bundle", "bundle", "bundle", any_loss, norm_or_ball, penalties=_BUNDLE),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
