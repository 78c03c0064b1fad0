"""The Primal Gradient Solver: [Zhu09] Figures 1 and 2.

    w_{t+1} = grad r*( lambda_t / ((t + 1) sigma) ),   lambda_t = -(sum of the t gradients),

where r is |w|_p^2 / (2 (p - 1)) or the entropy of section VII, and sigma is its strength.
"""

from libc.math cimport INFINITY, pow

from streamlearn.rules.dual cimport Dual

from streamlearn.rules.requirements import has_geometry, one_output_on_simplex
from streamlearn.core.parameters import number


cdef class PrimalGradient(Dual):
    """The Primal Gradient Solver ([Zhu09] Figure 1); its step size is the penalty's curvature.

    `radius` keeps |w|_p (|w|_1 with Entropy) inside a ball (Figure 2, lines 5-6), which losses with
    unbounded slopes require. An event costs O(its features) with LpSquared, because sum |lambda|^q
    is updated incrementally, and O(n) with Entropy. The intercept is a feature of value 1 inside
    the penalty (section VII).
    """

    _names = ("radius",)
    _examples = ((), (0.3,))
    needs = (one_output_on_simplex, has_geometry)
    intercept = "inside"
    cdef readonly object radius
    cdef double limit

    def __init__(self, radius=None):
        self.limit = INFINITY
        if radius is not None:
            self.limit = number("PrimalGradient", "radius", radius, above=0.0)
        self.radius = radius

    cdef void coefficients(self, double* a, double* b) noexcept nogil:
        a[0] = self.t + 1.0
        b[0] = 0.0

    cdef void reshape(self) noexcept nogil:
        Dual.reshape(self)
        # shape.scale multiplies all weights, and their p-norm follows from sum |s|^q:
        # |w|_p^p = scale^p sum (|s|/unit)^((q-1) p), and (q - 1) p = q
        cdef double p, norm
        if self.limit < INFINITY and self.t > 0.0 and self.q < INFINITY:
            p = self.q / (self.q - 1.0)
            norm = self.shape.scale * pow(self.vector.sum, 1.0 / p)
            if norm > self.limit:
                self.shape.scale *= self.limit / norm

    def start(self):
        self.sums_bound = True
        Dual.start(self)
        if self.q == INFINITY and self.limit < self.penalty.radius:
            from streamlearn.penalties.geometries import Entropy

            self.geometry = Entropy(self.penalty.strength, self.limit, self.penalty.scale)
            Dual.start(self)

    # -- Lemma 1: regret <= 1/2 sum |lambda_t|_q^2 / (t sigma) ------------------------------------

    cdef void add_to_bound(self, double gradient) noexcept nogil:
        self.bound_sum += gradient * gradient / ((self.t + 1.0) * self.sigma * self.modulus)

    def bound(self, u):
        if u is not None and self.limit < INFINITY:
            import numpy as np

            p = self.q / (self.q - 1.0) if self.q < INFINITY else 1.0
            size = np.abs(u) if np.ndim(u) == 0 else np.linalg.norm(np.asarray(u, float), p)
            if size > self.limit * (1.0 + 1e-9):
                return None, f"u is outside the ball of radius {self.radius}"
        return 0.5 * self.bound_sum, None
