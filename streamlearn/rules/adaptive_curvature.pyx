"""Rules that add their own curvature tau_t ([Do09] section 3): Adaptive and Proximal.

The step size is 1/(lambda_{1:t} + tau_{1:t}). tau_t balances the two terms of the regret bound: it
is the positive root of  tau (lambda_{1:t} + tau_{1:t-1} + tau) = ratio.
"""

from libc.math cimport fmax, sqrt

from streamlearn.rules.scaled cimport ProjectedSubgradient

from streamlearn.rules.requirements import plain_l2
from streamlearn.rules.scaled import outside_ball
from streamlearn.core.parameters import number


cdef class AdaptiveCurvature(ProjectedSubgradient):
    """Subgradient steps with added curvature."""

    scalars = (*ProjectedSubgradient.scalars, "R", "curvature", "since")
    scalar_merges = {
        **ProjectedSubgradient.scalar_merges, "R": "max", "curvature": "mean", "since": "max",
    }
    needs = (plain_l2,)

    def start(self):
        ProjectedSubgradient.start(self)
        self.given_bound = -1.0 if self.gradient_bound is None else self.gradient_bound

    cdef double update_gradient_bound(self) noexcept nogil:
        """Return G_t: `gradient_bound`, or the largest gradient of f_t including this one."""
        self.largest_gradient = fmax(self.largest_gradient, self.gradient_norm())
        return self.given_bound if self.given_bound > 0.0 else self.largest_gradient

    cdef double balance(self, double curvature, double ratio) noexcept nogil:
        """Return (-c + sqrt(c^2 + 4 ratio)) / 2 without cancellation."""
        if ratio <= 0.0:
            return 0.0
        return 2.0 * ratio / (sqrt(curvature * curvature + 4.0 * ratio) + curvature)

    def bound(self, u):
        """Return the bound of [Do09] Corollary 1 (Adaptive: footnote 3), for w in the ball of R."""
        name = type(self).__name__
        if isinstance(self.project, bool) or self.project != self.R:
            return None, f"{name}: the bound holds only with project=radius"
        if 0.0 < self.given_bound * (1.0 + 1e-9) < self.largest_gradient:
            return None, (
                f"the gradient norm {self.largest_gradient:g} exceeded "
                f"gradient_bound={self.gradient_bound:g}"
            )
        reason = outside_ball(u, self.R)
        return (None, reason) if reason else (self.bound_sum, None)

    @property
    def step_size(self):
        curvature = self.l2 * (self.t - self.since + 1.0) + self.curvature
        return 1.0 / curvature if curvature > 0.0 else None


def optional(owner, name, value):
    """Return `value` as a positive number, or None."""
    return None if value is None else number(owner, name, value, above=0.0)
