"""Hard constraints: Psi is 0 inside a convex set and infinite outside ([Xiao10] section 2.1).

The l-infinity norm is here too: its prox is the residual of a projection on the l1 ball.
"""

from libc.math cimport INFINITY, fabs

from streamlearn.penalties.penalty cimport DualVector, ORDER, Penalty, Shape, Statistic

from streamlearn.penalties.norms import Zero
from streamlearn.core.parameters import number

import numpy as np

# projections are inside their set only up to rounding
SLACK = 1e-9


cdef class Ball(Penalty):
    """|w|_2 <= radius."""

    _names = ("radius",)
    _examples = ((0.3,),)
    simple = True
    has_closed_sums = True

    def __init__(self, radius):
        self.radius = number("Ball", "radius", radius, above=0.0)

    def value(self, w):
        return 0.0 if float(np.linalg.norm(w)) <= self.radius * (1.0 + SLACK) else INFINITY

    def prox(self, v, step=1.0):
        v = np.asarray(v, dtype=float)
        return v * min(1.0, self.radius / max(float(np.linalg.norm(v)), 1e-300))


cdef class L1Ball(Penalty):
    """|w|_1 <= radius: hard l1-regularization.

    The threshold depends on all slots, which are kept sorted: O(d log n) per event.
    """

    _names = ("radius",)
    _examples = ((0.4,),)
    cdef readonly double size

    def __init__(self, radius):
        self.size = number("L1Ball", "radius", radius, above=0.0)

    @property
    def radius(self):
        return self.size

    @property
    def norm_limit(self):
        return self.size

    def value(self, w):
        return 0.0 if float(np.abs(w).sum()) <= self.size * (1.0 + SLACK) else INFINITY

    def prox(self, v, step=1.0):
        v = np.asarray(v, dtype=float)
        m = np.abs(v)
        return v.copy() if m.sum() <= self.size else np.sign(v) * project_to_sum(m, self.size)

    cdef Statistic statistic_for(self, double rho):
        return ORDER

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        shape.transform = NULL
        shape.threshold = b * rho
        shape.scale = -1.0 / b if b > 0.0 else 0.0
        if s.order.soft_total(shape.threshold) > b * self.size:
            shape.threshold = s.order.level(b * self.size)


cdef double clipped(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    cdef double m = fabs(s) - shape.threshold
    if m <= 0.0:
        return 0.0
    if m > shape.p:
        m = shape.p
    return m * shape.scale if s > 0.0 else -m * shape.scale


cdef class LInfinity(Penalty):
    """Psi(w) = strength max_j |w_j|: the largest weights are equal.

    The clipping level depends on all slots, which are kept sorted: O(d log n) per event.
    """

    _names = ("strength",)
    _examples = ((0.1,),)
    cdef readonly double strength

    def __init__(self, strength):
        self.strength = number("LInfinity", "strength", strength, low=0.0)

    def canonical(self):
        return self if self.strength > 0.0 else Zero()

    def value(self, w):
        w = np.asarray(w, dtype=float)
        return self.strength * float(np.abs(w).max(initial=0.0))

    def prox(self, v, step=1.0):
        v = np.asarray(v, dtype=float)
        m, total = np.abs(v), step * self.strength
        if total == 0.0:
            return v.copy()
        if m.sum() <= total:
            return np.zeros_like(v)
        limit = m.max() - project_to_sum(m, total).max()
        return np.clip(v, -limit, limit)

    cdef Statistic statistic_for(self, double rho):
        return ORDER

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        cdef double excess = a * self.strength
        shape.transform = clipped
        shape.threshold = b * rho
        shape.scale = -1.0 / b if b > 0.0 else 0.0
        if excess <= 0.0:
            shape.p = INFINITY
        elif s.order.soft_total(shape.threshold) <= excess:
            shape.p = 0.0
        else:
            shape.p = s.order.level(excess) - shape.threshold


cdef double one_sided(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    cdef double w = -s * shape.scale - shape.threshold
    return w if w > 0.0 else 0.0


cdef class Simplex(Penalty):
    """w_j >= 0 and sum w_j = 1, over the slots known when an event is scored.

    The projection depends on all slots, which are kept sorted: O(d log n) per event.
    """

    on_simplex = True

    @property
    def norm_limit(self):
        return 1.0

    def value(self, w):
        w = np.asarray(w, dtype=float)
        inside = abs(float(w.sum()) - 1.0) <= SLACK and bool((w >= 0.0).all())
        return 0.0 if inside else INFINITY

    def prox(self, v, step=1.0):
        return project_to_sum(np.asarray(v, dtype=float), 1.0)

    cdef Statistic statistic_for(self, double rho):
        return ORDER

    def attach(self, DualVector s, rho):
        s.signed_order = True
        Penalty.attach(self, s, rho)

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        shape.transform = one_sided
        if b > 0.0:
            shape.scale = 1.0 / b
            shape.threshold = s.order.level(b) / b
        else:
            # before the first event: the minimizer of h, which is uniform
            shape.scale = 0.0
            shape.threshold = -1.0 / s.n if s.n > 0 else 0.0


def project_to_sum(v, total):
    """Return max(0, v - level) for the level at which the result sums to `total`.

    Works with differences from the largest v, because `total` may be below its rounding error.
    """
    if not len(v):
        return v.copy()
    below = v - v.max()
    u = np.sort(below)[::-1]
    levels = (np.cumsum(u) - total) / np.arange(1, len(u) + 1)
    return np.maximum(below - levels[np.nonzero(u > levels)[0][-1]], 0.0)
