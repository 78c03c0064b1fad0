"""The penalty Psi(w) and the three ways in which rules use it.

- Dual rules ([Xiao10]) minimize <s, w> + a Psi(w) + b h(w), where s is the sum of gradients:
  `shape` turns a, b and statistics of s into the few scalars that determine every slot's weight.
- Rules with a step size per slot work slot by slot: `coordinate_minimizer` is that minimizer
  for one slot, and `repeat_prox` is the prox applied k times to a slot that no event has touched.
- Primal rules with one step size for all slots use the strengths `l1`, `l2` and `radius` directly.

`value` and `prox` are the interface for users and the hindsight solvers.
"""

from libc.math cimport ceil, exp, expm1, fabs, fmax, fmin, log1p, pow, sqrt

from streamlearn.penalties.order cimport Order
from streamlearn.core.parameters cimport Parameterized

import numpy as np

INFINITY = float("inf")


cdef inline double raise_to(double x, double q) noexcept nogil:
    """Return x^q; for the common 2-norm, a product is many times faster than pow."""
    return x * x if q == 2.0 else pow(x, q)


cdef class DualVector:
    def __cinit__(self):
        self.statistic = NOTHING
        self.q = 2.0

    cdef void change(self, Py_ssize_t j, double old, double new) noexcept nogil:
        """Update the statistic for slot j; sums drift, so they are recomputed from time to time."""
        if self.statistic == NORM:
            self.sum += new * new - old * old
        elif self.statistic == POWER:
            if fabs(new) > 2.0 * self.unit:
                self.refresh()
                return
            self.sum += (
                raise_to(fabs(new) / self.unit, self.q) - raise_to(fabs(old) / self.unit, self.q)
            )
        elif self.statistic == ORDER:
            self.order.remove(j)
            if self.signed_order:
                self.order.insert(j, -new)
            elif new != 0.0:
                self.order.insert(j, fabs(new))
            return
        else:
            return
        self.changes += 1.0
        self.peak = fmax(self.peak, self.sum)
        if self.changes > 64.0 + 4.0 * self.n or self.sum < 1e-3 * self.peak:
            self.refresh()

    cdef void refresh(self) noexcept nogil:
        """Recompute the sum; scaling by `unit`, the largest |s|, keeps powers from overflowing."""
        cdef Py_ssize_t j
        cdef double x
        self.sum = 0.0
        self.unit = 0.0
        for j in range(self.n):
            self.unit = fmax(self.unit, fabs(self.cells[j * self.width]))
        for j in range(self.n):
            x = fabs(self.cells[j * self.width])
            if self.statistic == NORM:
                self.sum += x * x
            elif x > 0.0:
                self.sum += raise_to(x / self.unit, self.q)
        self.peak = self.sum
        self.changes = 0.0

    cdef int grow(self, double* cells, Py_ssize_t old, Py_ssize_t n, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t j
        self.cells = cells
        self.n = n
        if self.statistic == ORDER:
            self.order.reserve(capacity)
            if self.signed_order:
                for j in range(old, n):
                    self.order.insert(j, -cells[j * self.width])
        return 0

    cdef int rebuild(self) except -1:
        """Rebuild the order from the slots, after loading."""
        cdef Py_ssize_t j
        cdef double x
        if self.statistic == ORDER:
            self.order.clear()
            for j in range(self.n):
                x = self.cells[j * self.width]
                if self.signed_order:
                    self.order.insert(j, -x)
                elif x != 0.0:
                    self.order.insert(j, fabs(x))
        return 0


cdef class Penalty(Parameterized):
    """A convex penalty Psi(w) on the weights.

    `l1` and `l2` are the strengths of its l1 and squared l2 parts, and `radius` is the radius of
    its 2-norm ball. `modulus` is its strong convexity, and `dual_norm` the q of the norm |.|_q that
    measures gradients in its geometry.
    """

    # Psi is l1 |w|_1 + l2/2 |w|^2 on the ball of `radius`, so a lazy primal rule can use it
    simple = False
    # Psi is a sum over slots, so a rule with a step size per slot can use it
    coordinatewise = False
    # has its own auxiliary function h ([Xiao10] Algorithm 1) instead of |w|^2 / 2
    own_geometry = False
    # w is a distribution over the slots
    on_simplex = False
    dual_norm = 2.0
    # `shape` sets a scale and a threshold that never decreases: the weights of an untouched slot
    # can be summed over time in closed form
    has_closed_sums = False
    # the strength of l1 follows from the events, and the rule steers it
    steered = False

    def __cinit__(self):
        self.radius = INFINITY

    @property
    def modulus(self):
        """The strong convexity of Psi ([Xiao10], the assumption before equation (11))."""
        return self.l2

    @property
    def norm_limit(self):
        """The largest 2-norm of a w that Psi allows, or infinity."""
        return self.radius

    def canonical(self):
        """Return the simplest penalty that is the same function; equal functions have the same one.

        >>> from streamlearn.penalties import ElasticNet
        >>> ElasticNet(0.1, 0.0).canonical(), ElasticNet(0.0, 0.0).canonical()
        (L1(strength=0.1), Zero())
        """
        return self

    def value(self, w):
        """Return Psi(w), infinite outside its domain."""
        raise NotImplementedError

    def prox(self, v, step=1.0):
        """Return argmin_w  step Psi(w) + |w - v|^2 / 2."""
        raise NotImplementedError

    def auxiliary(self, w):
        """Return h(w) of [Xiao10] Algorithm 1 without rho: |w|^2 / 2 unless Psi has its own."""
        w = np.asarray(w, dtype=float)
        return 0.5 * float(w @ w)

    cdef Statistic statistic_for(self, double rho):
        if self.radius < INFINITY:
            return ORDER if rho > 0.0 else NORM
        return NOTHING

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        """Set the scalars of argmin <s, w> + a Psi(w) + b (|w|^2 / 2 + rho |w|_1)."""
        cdef double norm
        set_soft(shape, a * self.l1 + b * rho, a * self.l2 + b)
        if s.statistic == NORM or s.statistic == ORDER:
            # a ball only shortens the vector
            norm = sqrt(s.sum if s.statistic == NORM else s.order.soft_square(shape.threshold))
            if -shape.scale * norm > self.radius:
                shape.scale = -self.radius / norm

    cdef double coordinate_minimizer(self, double s, double a, double b) noexcept nogil:
        """Return argmin  s w + a Psi_j(w) + b w^2 / 2 for one slot."""
        cdef double excess = fabs(s) - a * self.l1
        if excess <= 0.0:
            return 0.0
        excess /= a * self.l2 + b
        return -excess if s > 0.0 else excess

    cdef double repeat_prox(self, double w, double step, double k) noexcept nogil:
        """Apply prox_{step Psi_j} k times to w: |w| c^k - step l1 (c + .. + c^k)."""
        cdef double m = fabs(w), d, c = 1.0
        if self.l2 > 0.0:
            d = log1p(step * self.l2)
            c = exp(-k * d)
            # the geometric sum c^1 + .. + c^k = (1 - c^k) / (step l2)
            m = m * c + expm1(-k * d) * (self.l1 / self.l2)
        else:
            m -= k * step * self.l1
        if m <= 0.0:
            return 0.0
        return m if w > 0.0 else -m

    cdef double repeat_prox_sum(self, double w, double step, double k) noexcept nogil:
        """Return repeat_prox(w, 1) + .. + repeat_prox(w, k)."""
        cdef double m = fabs(w), total, d, steps = k, ratio
        if w == 0.0 or step == 0.0:
            return k * w
        if self.l2 > 0.0:
            d = log1p(step * self.l2)
            ratio = self.l1 / self.l2
            if self.l1 > 0.0:
                # (m + ratio) c^i > ratio holds for the first `steps` of them
                steps = fmin(k, ceil(log1p(m / ratio) / d) - 1.0)
            total = -(m + ratio) * expm1(-steps * d) / (step * self.l2) - steps * ratio
        elif self.l1 > 0.0:
            steps = fmin(k, ceil(m / (step * self.l1)) - 1.0)
            total = steps * (m - 0.5 * (steps + 1.0) * step * self.l1)
        else:
            total = k * m
        return total if w > 0.0 else -total

    def repeated_prox(self, w, step, k):
        """Apply the prox k times to one weight (coordinate-wise penalties)."""
        return self.repeat_prox(w, step, k)

    def minimizer(self, s, a, b, rho=0.0):
        """Return argmin_w <s, w> + a Psi(w) + b h(w), the step of [Xiao10] Algorithm 1.

        >>> from streamlearn.penalties import L1
        >>> L1(0.5).minimizer([3.0, -0.2], a=1.0, b=1.0)
        array([-2.5,  0. ])
        """
        array = np.array(s, dtype=float)
        cdef Shape shape
        cdef DualVector vector = DualVector()
        cdef double* cells = <double*><size_t>array.ctypes.data
        cdef Py_ssize_t j, n = len(array)
        vector.width = 1
        self.attach(vector, rho)
        vector.grow(cells, 0, n, n)
        vector.rebuild()
        if vector.statistic == NORM or vector.statistic == POWER:
            vector.refresh()
        self.shape(a, b, rho, vector, &shape)
        return np.array([slot_weight(&shape, cells[j], j) + 0.0 for j in range(n)])

    def attach(self, DualVector s, rho):
        """Set the statistic that the dual vector tracks for this penalty."""
        s.statistic = self.statistic_for(rho)
        if s.statistic == ORDER:
            s.order = Order()
