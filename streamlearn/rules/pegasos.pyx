"""Pegasos ([Do09] section 3.3: Algorithm 1 on the SVM objective; [Takac13] Algorithm 1: batches).

    w <- w - (lambda w + slope x) / (lambda t), then project on the ball
"""

from streamlearn.core.row cimport Row
from streamlearn.rules.scaled cimport ProjectedSubgradient

from streamlearn.rules.requirements import strong_l2
from streamlearn.rules.scaled import outside_ball, projection


cdef class Pegasos(ProjectedSubgradient):
    """Subgradient steps of size 1/(lambda t) on lambda/2 |w|^2 + loss ([Do09] section 3.3).

    `project`: True for the paper's ball, a number for a ball of that radius, False for none.
    The step size comes from the penalty's curvature, so the intercept is a feature of value 1
    inside the penalty.
    """

    _names = ("project",)
    _examples = ((True,), (False,), (0.3,))
    needs = (strong_l2,)
    intercept = "inside"

    def __init__(self, project=True):
        self.project = projection("Pegasos", project)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double t = self.t + 1.0, step = 1.0 / (self.l2 * t), gradient
        self.measure(row, slope)
        gradient = self.gradient_norm()
        if gradient > self.largest_gradient:
            self.largest_gradient = gradient
        self.bound_sum += 0.5 * self.largest_gradient * self.largest_gradient * step
        self.move(row, slope, step, (t - 1.0) / t, self.limit())

    def bound(self, u):
        """Return the bound of [Do09] Lemma 1: half the sum of G_t^2 / (lambda t)."""
        reason = outside_ball(u, self.limit())
        return (None, reason) if reason else (self.bound_sum, None)

    @property
    def step_size(self):
        return 1.0 / (self.l2 * (self.t + 1.0))
