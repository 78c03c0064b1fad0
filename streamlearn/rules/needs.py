"""What a rule may demand of its penalty and loss, and the sentence said when it is not met.

A rule lists its demands in `needs`. A demand is a function of (rule, penalty, loss) that returns
None, or what is wrong and the nearest thing that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlearn.errors import IncompatibleError

if TYPE_CHECKING:
    from streamlearn.losses import Loss, VectorLoss
    from streamlearn.penalties import Penalty
    from streamlearn.rules.rule import Rule

Need = Callable[["Rule", "Penalty", "Loss | VectorLoss"], str | None]


def check(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> None:
    """Raise IncompatibleError for the first demand that is not met."""
    for need in (*rule.needs, leaves_zero):
        reason = need(rule, penalty, loss)
        if reason is not None:
            name = type(rule).__name__
            raise IncompatibleError(f"{name} with {penalty!r} and {loss!r}: {reason}")


def leaves_zero(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """A loss that is flat at 0 teaches nothing to a rule that starts there."""
    if loss.leaves_zero or penalty.on_simplex:
        return None
    return "the loss is flat at w = 0, where the rule starts; give it a threshold > 0"


def strong_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Step sizes 1/(lambda t) come from the penalty's curvature."""
    if penalty.simple and penalty.l2 > 0.0 and penalty.l1 == 0.0:
        return None
    if penalty.l2 > 0.0:
        return "its step takes L2 alone; for l1 as well use ForwardBackward or DualAveraging"
    return (
        "its step 1/(lambda t) is the penalty's curvature; use L2(strength > 0), "
        "or the rule Proximal, which brings its own curvature"
    )


def plain_l2(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Zero or L2."""
    if penalty.simple and penalty.l1 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    if penalty.simple and penalty.l1 == 0.0:
        return "its ball is its own parameter; use project=radius with L2 or Zero"
    return "it takes L2 or Zero; for this penalty use DualAveraging"


def simple(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Penalties whose effect on slots left alone is a few scalars."""
    if penalty.simple:
        return None
    return (
        "a step would change every slot in its own way; use Zero, L1, L2, ElasticNet or Ball, "
        "or the rule DualAveraging, which takes every penalty"
    )


def l1_only(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Zero or L1."""
    if penalty.simple and penalty.l2 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    return "it takes L1 or Zero; for other penalties use ForwardBackward or DualAveraging"


def coordinatewise(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """A step for each slot needs a penalty for each slot."""
    if penalty.coordinatewise:
        return None
    return (
        "its steps differ from slot to slot, so the penalty must be a sum over slots; "
        "use Zero, L1, L2, ElasticNet or Berhu, or the rule DualAveraging"
    )


def unpenalised(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Rules that tune themselves take no penalty."""
    if penalty.simple and penalty.l1 == penalty.l2 == 0.0 and penalty.norm_limit == float("inf"):
        return None
    return (
        "it sets its own regularization and takes no penalty; use Zero(), "
        "or DualAveraging or FTRLProximal for sparse weights"
    )


def scalar_loss(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Rules that look at features beside slopes learn one output at a time."""
    if loss.kind not in ("multiclass", "multitarget"):
        return None
    return (
        "it learns one output at a time; use a scalar loss (classes are then learned "
        "one versus the rest) or another rule, AdaGrad for instance"
    )


def smooth(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Acceleration ([Xiao10] section 7.1) needs gradients that are Lipschitz."""
    if loss.smooth or (rule.params.get("smoothness") is not None and loss.curvature_bound > 0.0):
        return None
    return (
        "acceleration needs a smooth loss with bounded curvature; use Logistic, Squared, "
        "SquaredHinge, Huber or Softmax, or the rule DualAveraging"
    )


def not_simplex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Several outputs share one vector of weights, which is no distribution."""
    if not penalty.on_simplex or loss.kind not in ("multiclass", "multitarget"):
        return None
    return "weights on a simplex serve one output; use a scalar loss"


def strongly_convex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Without an auxiliary function, the penalty must be strongly convex ([Xiao10] eq. (13))."""
    if penalty.modulus > 0.0 or rule.params.get("schedule") != "zero":
        return None
    return (
        'schedule="zero" needs a strongly convex penalty; use L2, ElasticNet with l2 > 0, '
        'or KL, LpSquared or Entropy with strength > 0, or schedule="sqrt"'
    )


def enhances(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """The enhanced h of [Xiao10] Algorithm 2 is that of the 2-norm."""
    if rule.params.get("rho", 0.0) == 0.0 or not (penalty.own_geometry or penalty.on_simplex):
        return None
    return "rho enhances the l1 part of h = |w|^2/2, and this penalty brings another h; use rho=0"


def has_geometry(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """The Primal Gradient Solver ([Zhu09]) works in the penalty's own geometry."""
    if penalty.own_geometry and not penalty.on_simplex and penalty.modulus > 0.0:
        return None
    return (
        "its weights are the gradient of the penalty's conjugate; use LpSquared(strength, p) "
        "(p = 2 is L2) or Entropy(strength, radius)"
    )


def simplex(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Exponentiated updates live on the simplex."""
    if penalty.on_simplex:
        return None
    return "exponentiated weights are a distribution; use Simplex() or KL(strength)"


def euclidean(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """Penalties under the auxiliary function |w|^2/2."""
    if not penalty.own_geometry and not penalty.on_simplex:
        return None
    return "it works with h = |w|^2/2; for this penalty use DualAveraging"


def has_radius(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """R = 1/sqrt(lambda) needs a lambda."""
    if rule.params.get("radius") is not None or penalty.l2 > 0.0:
        return None
    return "radius=None means 1/sqrt(L2 strength); give a radius, or L2(strength > 0)"


def accurate(rule: Rule, penalty: Penalty, loss: Loss | VectorLoss) -> str | None:
    """The margin sqrt(2 accuracy/lambda) needs a lambda."""
    if rule.params.get("accuracy", 0.0) == 0.0 or penalty.l2 > 0.0:
        return None
    return "accuracy > 0 needs L2(strength > 0); use accuracy=0"
