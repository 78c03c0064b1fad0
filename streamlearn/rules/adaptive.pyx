"""Adaptive online gradient descent ([Bartlett07]; [Do09] equation (4) and footnote 3).

The rule takes a gradient step on f_t + tau_t/2 |w|^2. Its regret is at most

    1/2 sum [ 3 tau_t R^2 + 2 G_t^2 / (lambda_{1:t} + tau_{1:t}) ],

and balancing the two terms gives tau_t (lambda_{1:t} + tau_{1:t}) = 2 G_t^2 / (3 R^2).
"""

from libc.math cimport sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.adaptive_curvature cimport AdaptiveCurvature

from streamlearn.rules.adaptive_curvature import optional
from streamlearn.rules.requirements import radius_or_l2
from streamlearn.rules.scaled import projection


cdef class Adaptive(AdaptiveCurvature):
    """Adaptive online gradient descent ([Do09] section 3.1, equation (4)).

    `radius` is R; None means 1/sqrt(lambda). `gradient_bound` is G; None means the largest gradient
    seen. `project=r` projects on the ball of radius r after the step; the paper's S is
    project=radius, and the regret bound holds only then.
    """

    _names = ("radius", "gradient_bound", "project")
    _examples = ((), (2.0, 3.0, 2.0), (0.4, None, 0.4))
    needs = (*AdaptiveCurvature.needs, radius_or_l2)

    def __init__(self, radius=None, gradient_bound=None, project=None):
        self.radius = optional("Adaptive", "radius", radius)
        self.gradient_bound = optional("Adaptive", "gradient_bound", gradient_bound)
        self.project = projection("Adaptive", project)

    def start(self):
        AdaptiveCurvature.start(self)
        self.R = self.radius if self.radius is not None else 1.0 / sqrt(self.l2)

    def for_intercept(self):
        from streamlearn.penalties.norms import Zero

        return Adaptive(self.R, self.gradient_bound).bind(Zero(), self.loss)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double c = self.l2 * (self.t + 1.0) + self.curvature, G, tau, step = 0.0
        self.measure(row, slope)
        G = self.update_gradient_bound()
        tau = self.balance(c, 2.0 * G * G / (3.0 * self.R * self.R))
        self.curvature += tau
        if c + tau > 0.0:
            step = 1.0 / (c + tau)
        self.bound_sum += 0.5 * (3.0 * tau * self.R * self.R + 2.0 * G * G * step)
        self.move(row, slope, step, 1.0 - (self.l2 + tau) * step, self.limit())
