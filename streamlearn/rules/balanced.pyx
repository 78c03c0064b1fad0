"""Rules that bring their own curvature tau_t ([Do09] section 3): Adaptive and the proximal ones.

A step has size 1/(lambda_{1:t} + tau_{1:t}). tau_t balances the two terms of the regret bound,
which makes it the positive root of  tau (lambda_{1:t} + tau_{1:t-1} + tau) = ratio.
"""

from libc.math cimport fmax, sqrt

from streamlearn.rules.scaled cimport Ballistic

from streamlearn.rules.needs import plain_l2
from streamlearn.rules.scaled import outside
from streamlearn.core.parameters import number


cdef class Balanced(Ballistic):
    """Subgradient steps with proximal curvature."""

    scalars = (*Ballistic.scalars, "R", "curvature", "since")
    needs = (plain_l2,)

    def start(self):
        Ballistic.start(self)
        self.given_bound = -1.0 if self.gradient_bound is None else self.gradient_bound

    cdef double settle_bound(self) noexcept nogil:
        """G_t: the number given, or the largest gradient of f_t seen, this one included."""
        self.largest_gradient = fmax(self.largest_gradient, self.gradient_norm())
        return self.given_bound if self.given_bound > 0.0 else self.largest_gradient

    cdef double balance(self, double curvature, double ratio) noexcept nogil:
        """(-c + sqrt(c^2 + 4 ratio)) / 2 without cancellation."""
        if ratio <= 0.0:
            return 0.0
        return 2.0 * ratio / (sqrt(curvature * curvature + 4.0 * ratio) + curvature)

    def bound(self, u):
        """[Do09] Corollary 1 (Adaptive: footnote 3), for u and all iterates in the ball of R."""
        name = type(self).__name__
        if self.project is None or isinstance(self.project, bool) or self.project != self.R:
            return None, f"{name}: proved only when project = radius, so that w stays in the ball"
        if 0.0 < self.given_bound * (1.0 + 1e-9) < self.largest_gradient:
            return None, (
                f"a gradient of norm {self.largest_gradient:g} was seen, above "
                f"gradient_bound={self.gradient_bound:g}"
            )
        reason = outside(u, self.R)
        return (None, reason) if reason else (self.spent, None)

    @property
    def step_size(self):
        curvature = self.l2 * (self.t - self.since + 1.0) + self.curvature
        return 1.0 / curvature if curvature > 0.0 else None


def optional(owner, name, value):
    """A positive number or None."""
    return None if value is None else number(owner, name, value, above=0.0)
