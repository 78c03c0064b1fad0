"""Requirements of rules on their penalty and loss, and the error messages.

A rule lists its requirements in `needs`. A requirement is a function of (rule, penalty, loss) that
returns None if it is met, or else what is wrong and the closest allowed choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlearn.errors import IncompatibleError

if TYPE_CHECKING:
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty
    from streamlearn.rules.rule import Rule

Requirement = Callable[["Rule", "Penalty", "Loss | VectorLoss"], str | None]


def check(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> None:
    """Raise IncompatibleError for the first requirement that is not met."""
    for need in (steers, *rule.needs, leaves_zero):
        reason = need(rule, penalty, loss)
        if reason is not None:
            name = type(rule).__name__
            raise IncompatibleError(f"{name} with {penalty!r} and {loss!r}: {reason}")


def steers(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a rule that steers the strength of l1, if the penalty is a number of weights."""
    if rule.steers or not penalty.steered:
        return None
    return "only the default rule, Mixture(), steers the strength of l1; use it, or L1(strength)"


def leaves_zero(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a loss that is not flat at w = 0, where rules start."""
    if loss.leaves_zero or penalty.on_simplex:
        return None
    return "the loss is flat at w = 0, where the rule starts; give it a threshold > 0"


def strong_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require L2 with strength > 0: the step sizes 1/(lambda t) come from its curvature."""
    if penalty.simple and penalty.l2 > 0.0 and penalty.l1 == 0.0:
        return None
    if penalty.l2 > 0.0:
        return "it supports L2 only; to add l1, use ForwardBackward or DualAveraging"
    return (
        "its step size 1/(lambda t) needs the penalty's curvature; use L2(strength > 0), "
        "or the rule Proximal, which adds its own curvature"
    )


def plain_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require Zero or L2."""
    if penalty.simple and penalty.l1 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    if penalty.simple and penalty.l1 == 0.0:
        return "its ball is a parameter of the rule; use project=radius with L2 or Zero"
    return "it supports L2 and Zero only; for this penalty, use DualAveraging"


def simple(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty whose effect on untouched slots is a few scalars."""
    if penalty.simple:
        return None
    return (
        "a step would change every slot differently; use Zero, L1, L2, ElasticNet or Ball, "
        "or the rule DualAveraging, which supports every penalty"
    )


def l1_only(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require Zero or L1."""
    if penalty.simple and penalty.l2 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    return "it supports L1 and Zero only; for others, use ForwardBackward or DualAveraging"


def coordinatewise(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty that is a sum over slots: the step sizes differ between slots."""
    if penalty.coordinatewise:
        return None
    return (
        "its step sizes differ between slots, so the penalty must be a sum over slots; "
        "use Zero, L1, L2, ElasticNet or Berhu, or the rule DualAveraging"
    )


def l1_and_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty that is its strengths of l1 and l2."""
    if penalty.simple and penalty.norm_limit == float("inf"):
        return None
    return (
        "it supports Zero, L1, L2 and ElasticNet only; for this penalty, use the rule DualAveraging"
    )


def unpenalized(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require Zero: self-tuning rules set their own regularization."""
    if penalty.simple and penalty.l1 == penalty.l2 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    return (
        "it supports no penalty; use Zero(), the default rule for L1, L2 or ElasticNet, "
        "or DualAveraging, which supports every penalty"
    )


def chargeable(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty of l1 and l2, with which a mixture can charge each member."""
    if not penalty.simple:
        return (
            "it charges its members l1 and l2; use Zero, L1, L2, ElasticNet or Ball, or the rule "
            "DualAveraging, which supports every penalty"
        )
    once = [r for r in rule.params["rules"] if r.penalty_counts_once]
    if once and penalty.l1 + penalty.l2 > 0.0:
        return (
            f"{type(once[0]).__name__} counts its penalty once, and a mixture charges it for each "
            "event; use AdaGrad or AdaGradDualAveraging"
        )
    return None


def scalar_loss(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a scalar loss: rules that learn whole events learn one output at a time."""
    if loss.kind not in ("multiclass", "multitarget"):
        return None
    return (
        "it learns one output at a time; use a scalar loss (classes are then learned "
        "one versus the rest) or another rule such as AdaGrad"
    )


def smooth(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require Lipschitz gradients, for acceleration ([Xiao10] section 7.1)."""
    if loss.smooth or (rule.params.get("smoothness") is not None and loss.curvature_bound > 0.0):
        return None
    return (
        "acceleration needs a smooth loss with bounded curvature; use Logistic, Squared, "
        "SquaredHinge, Huber or Softmax, or the rule DualAveraging"
    )


def one_output_on_simplex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require one output on a simplex: several would share one weight vector."""
    if not penalty.on_simplex or loss.kind not in ("multiclass", "multitarget"):
        return None
    return "weights on a simplex support one output only; use a scalar loss"


def strongly_convex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a strongly convex penalty if there is no auxiliary function ([Xiao10] (13))."""
    if penalty.modulus > 0.0 or rule.params.get("schedule") != "zero":
        return None
    return (
        'schedule="zero" needs a strongly convex penalty; use L2, ElasticNet with l2 > 0, '
        'or KL, LpSquared or Entropy with strength > 0, or schedule="sqrt"'
    )


def pace_needs_strengths(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require l1 and l2 for gamma="auto", which learns from scores proportional to 1/gamma."""
    if rule.params.get("gamma") != "auto" or penalty.simple:
        return None
    return "gamma='auto' needs Zero, L1, L2, ElasticNet or Ball; give gamma a number"


def no_enhanced_l1(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require h = |w|^2/2 for the enhanced l1 of [Xiao10] Algorithm 2."""
    if rule.params.get("rho", 0.0) == 0.0 or not (penalty.own_geometry or penalty.on_simplex):
        return None
    return "rho adds an l1 part to h = |w|^2/2, but this penalty has another h; use rho=0"


def has_geometry(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty with its own geometry, for the Primal Gradient Solver ([Zhu09])."""
    if penalty.own_geometry and not penalty.on_simplex and penalty.modulus > 0.0:
        return None
    return (
        "its weights are the gradient of the penalty's conjugate; use LpSquared(strength, p) "
        "(p=2 is L2) or Entropy(strength, radius)"
    )


def simplex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty on the simplex, for exponentiated updates."""
    if penalty.on_simplex:
        return None
    return "exponentiated weights are a distribution; use Simplex() or KL(strength)"


def euclidean(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require a penalty with the auxiliary function |w|^2/2."""
    if not penalty.own_geometry and not penalty.on_simplex:
        return None
    return "it supports h = |w|^2/2 only; for this penalty, use DualAveraging"


def radius_or_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require L2 with strength > 0 if no radius is given: R = 1/sqrt(lambda)."""
    if rule.params.get("radius") is not None or penalty.l2 > 0.0:
        return None
    return "radius=None means 1/sqrt(L2 strength); give a radius, or L2(strength > 0)"


def accuracy_needs_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Require L2 with strength > 0 if accuracy > 0: the margin is sqrt(2 accuracy/lambda)."""
    if rule.params["accuracy"] == 0.0 or penalty.l2 > 0.0:
        return None
    return "accuracy > 0 needs L2(strength > 0); use accuracy=0"
