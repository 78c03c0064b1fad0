"""Penalties with their own auxiliary function h.

- `KL` ([Xiao10] section 2.2)
- `LpSquared`: the squared p-norm ([Zhu09] section III, [Xiao10] section 7.2)
- `Entropy`: the entropy for signed weights ([Zhu09] section VII)
"""

from libc.math cimport INFINITY, exp, expm1, fabs, fmax, log, log1p, pow

from streamlearn.penalties.penalty cimport DualVector, EVERYTHING, POWER, Penalty, Shape, Statistic

from streamlearn.penalties.norms import L2, Zero
from streamlearn.penalties.sets import L1Ball, Simplex
from streamlearn.core.parameters import number

import numpy as np

# projections are inside their set only up to rounding
SLACK = 1e-9


cdef inline double log_prior(const Shape* shape, Py_ssize_t j) noexcept nogil:
    if shape.size == 0:
        return 0.0
    return shape.table[j] if j < shape.size else shape.p


cdef double distribution(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    return exp(log_prior(shape, j) - s * shape.scale - shape.threshold)


cdef class KL(Penalty):
    """Psi(w) = strength sum_j w_j ln(w_j / prior_j) on the simplex; `prior=None` means uniform.

    `prior` is a sequence of positive numbers, one per slot in order of appearance (columns, with
    `learn_rows`); later slots get its smallest entry. It is normalized over the known slots. The
    normalizer makes a pass over all slots: O(n) per event.

    >>> KL(1.0).minimizer([0.0, 0.0], a=1.0, b=1.0)
    array([0.5, 0.5])
    """

    _names = ("strength", "prior")
    _examples = ((0.2,), (0.5, (1.0, 2.0, 3.0, 4.0)), (0.0,))
    own_geometry = True
    on_simplex = True
    dual_norm = INFINITY

    def __init__(self, strength, prior=None):
        self.strength = number("KL", "strength", strength, low=0.0)
        if prior is not None:
            prior = tuple(number("KL", "prior", p, above=0.0) for p in prior)
            if not prior:
                raise ValueError("KL: prior must have at least one entry, got none")
            self.logarithms = np.log(np.array(prior))
            self.table = <const double*><size_t>self.logarithms.ctypes.data
            self.length = len(prior)
            self.least = self.logarithms.min()
        self.prior = prior

    def canonical(self):
        if self.strength == 0.0:
            return Simplex()
        uniform = self.prior is None or min(self.prior) == max(self.prior)
        return KL(self.strength) if uniform else self

    @property
    def modulus(self):
        return self.strength

    @property
    def norm_limit(self):
        return 1.0

    def distribution(self, n):
        """Return the prior over n slots."""
        p = np.full(n, 1.0 if self.prior is None else min(self.prior))
        if self.prior is not None:
            p[: len(self.prior)] = self.prior[:n]
        return p / p.sum()

    def auxiliary(self, w):
        w = np.asarray(w, dtype=float)
        if abs(float(w.sum()) - 1.0) > SLACK or not bool((w >= 0.0).all()):
            return INFINITY
        some = w > 0.0
        return float(np.sum(w[some] * np.log(w[some] / self.distribution(len(w))[some])))

    def value(self, w):
        h = self.auxiliary(w)
        return h if h == INFINITY else self.strength * h

    def prox(self, v, step=1.0):
        """Solve w + c ln(w / prior) = v - nu, with nu by bisection such that the w_j sum to 1."""
        from scipy.special import wrightomega

        v = np.asarray(v, dtype=float)
        prior, c = self.distribution(len(v)), step * self.strength
        if c == 0.0:
            return Simplex().prox(v)
        low, high = float(v.min()) - 2.0 - 60.0 * c, float(v.max()) + 2.0 + 60.0 * c
        for _ in range(200):
            nu = 0.5 * (low + high)
            w = c * wrightomega((v - nu) / c + np.log(prior / c))
            low, high = (nu, high) if w.sum() > 1.0 else (low, nu)
        return w / w.sum()

    cdef Statistic statistic_for(self, double rho):
        return EVERYTHING

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        """Set w_j = prior_j exp(-s_j / (a strength + b)) / Z."""
        cdef double denominator = a * self.strength + b, top = -INFINITY, total = 0.0
        cdef Py_ssize_t j
        shape.transform = distribution
        shape.table = self.table
        shape.size = self.length
        shape.p = self.least
        shape.scale = 1.0 / denominator if denominator > 0.0 else 0.0
        shape.threshold = 0.0
        for j in range(s.n):
            top = fmax(top, log_prior(shape, j) - s.cells[j * s.width] * shape.scale)
        for j in range(s.n):
            total += exp(log_prior(shape, j) - s.cells[j * s.width] * shape.scale - top)
        if s.n > 0:
            shape.threshold = top + log(total)


cdef double power(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    cdef double m = fabs(s) - shape.threshold
    if m <= 0.0:
        return 0.0
    m *= shape.p
    # at p = 2 a weight is a multiple of its sum ([Zhu09] equation (10))
    m = shape.scale * (m if shape.q == 1.0 else pow(m, shape.q))
    return -m if s > 0.0 else m


cdef class LpSquared(Penalty):
    """Psi(w) = strength / (2 (p - 1)) |w|_p^2 with 1 < p <= 2: the smaller p, the closer to l1.

    sum |s|^q with 1/p + 1/q = 1 is updated incrementally, so an event costs O(its features);
    [Zhu09] Figure 2 makes a pass over all slots.
    """

    _names = ("strength", "p")
    _examples = ((0.5, 1.4), (0.5, 2.0))
    own_geometry = True

    def __init__(self, strength, p):
        self.strength = number("LpSquared", "strength", strength, low=0.0)
        self.p = number("LpSquared", "p", p, above=1.0, high=2.0)
        self.q = self.p / (self.p - 1.0)

    def canonical(self):
        if self.strength == 0.0:
            return Zero()
        return L2(self.strength) if self.p == 2.0 else self

    cdef void set_q(self, double q) noexcept nogil:
        self.q = q
        self.p = q / (q - 1.0)

    @property
    def modulus(self):
        return self.strength

    @property
    def dual_norm(self):
        return self.q

    def auxiliary(self, w):
        m = np.abs(np.asarray(w, dtype=float))
        top = float(m.max(initial=0.0))
        if top == 0.0:
            return 0.0
        # not **, whose result is complex in Cython: its square would be NaN, not infinite
        cdef double norm = top * pow(float(((m / top) ** self.p).sum()), 1.0 / self.p)
        return norm * norm / (2.0 * (self.p - 1.0))

    def value(self, w):
        return self.strength * self.auxiliary(w)

    def prox(self, v, step=1.0):
        """Solve |w_j| + c N^(2-p) |w_j|^(p-1) = |v_j| with N = |w|_p: bisect N, then w."""
        v = np.asarray(v, dtype=float)
        m, c = np.abs(v), step * self.strength / (self.p - 1.0)
        if not m.any() or c == 0.0:
            return v.copy()
        top = m.max()  # the prox of a multiple is that multiple of the prox
        m /= top
        low, high = 0.0, float((m**self.p).sum() ** (1.0 / self.p))
        for _ in range(100):
            norm = 0.5 * (low + high)
            a, b = np.zeros_like(m), m.copy()
            for _ in range(100):
                w = 0.5 * (a + b)
                over = w + c * norm ** (2.0 - self.p) * w ** (self.p - 1.0) > m
                a, b = np.where(over, a, w), np.where(over, w, b)
            if float((w**self.p).sum() ** (1.0 / self.p)) > norm:
                low = norm
            else:
                high = norm
        return np.sign(v) * (top * w)

    cdef Statistic statistic_for(self, double rho):
        return EVERYTHING if self.l1 > 0.0 else POWER

    def attach(self, DualVector s, rho):
        s.q = self.q
        Penalty.attach(self, s, rho)

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        """Set w = grad r*(-s / (a strength + b)), [Zhu09] Figure 2 line 3, [Xiao10] section 7.2."""
        cdef double denominator = a * self.strength + b, total = s.sum, unit = s.unit, m
        cdef Py_ssize_t j
        shape.transform = power
        shape.threshold = a * self.l1
        shape.q = self.q - 1.0
        if self.l1 > 0.0:
            unit = 0.0
            total = 0.0
            for j in range(s.n):
                unit = fmax(unit, fabs(s.cells[j * s.width]) - shape.threshold)
            for j in range(s.n):
                m = fabs(s.cells[j * s.width]) - shape.threshold
                if m > 0.0:
                    total += pow(m / unit, self.q)
        if unit <= 0.0 or denominator <= 0.0:
            shape.scale = 0.0
            shape.p = 0.0
            return
        shape.p = 1.0 / unit
        shape.scale = (self.p - 1.0) * unit / denominator
        shape.scale *= pow(total, (2.0 - self.q) / self.q)


cdef double exponential(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    cdef double m = fabs(s) * shape.scale - shape.threshold
    if m <= 0.0:
        return 0.0
    m = shape.p * expm1(m)
    return -m if s > 0.0 else m


cdef class Entropy(Penalty):
    """Entropy for signed weights ([Zhu09] section VII) inside the ball |w|_1 <= radius.

    Psi(w) = strength sum_j [(|w_j| + scale) ln(1 + |w_j| / scale) - |w_j|]. It is strongly convex
    only inside a ball, so the radius is required. Checking whether the ball binds makes a pass over
    all slots: O(n) per event.
    """

    _names = ("strength", "radius", "scale")
    _examples = ((0.4, 0.5), (0.5, 100.0, 0.5))
    own_geometry = True
    dual_norm = INFINITY

    def __init__(self, strength, radius, scale=1.0):
        self.strength = number("Entropy", "strength", strength, low=0.0)
        self.size = number("Entropy", "radius", radius, above=0.0)
        self.scale = number("Entropy", "scale", scale, above=0.0)

    def canonical(self):
        return self if self.strength > 0.0 else L1Ball(self.size)

    @property
    def radius(self):
        return self.size

    @property
    def norm_limit(self):
        return self.size

    @property
    def modulus(self):
        """The strength; the strong convexity depends on the number of slots (`modulus_over`)."""
        return self.strength

    def modulus_over(self, n):
        """Return the modulus of h in the l1 norm over n slots: 1 / (radius + n scale)."""
        return 1.0 / (self.size + n * self.scale)

    def auxiliary(self, w):
        m = np.abs(np.asarray(w, dtype=float))
        if float(m.sum()) > self.size * (1.0 + SLACK):
            return INFINITY
        return float(np.sum((m + self.scale) * np.log1p(m / self.scale) - m))

    def value(self, w):
        h = self.auxiliary(w)
        return h if h == INFINITY else self.strength * h

    def prox(self, v, step=1.0):
        """Solve |w_j| + c ln(1 + |w_j| / e) = |v_j| - nu, with nu = 0 unless the ball binds."""
        from scipy.special import wrightomega

        v = np.asarray(v, dtype=float)
        c, e = step * self.strength, self.scale

        def weights(nu):
            u = np.maximum(np.abs(v) - nu, 0.0)
            if c == 0.0:
                return u
            w = np.maximum(c * wrightomega((u + e) / c + np.log(e / c)) - e, 0.0)
            for _ in range(3):  # the closed form loses digits where w is small relative to e
                w -= (w + c * np.log1p(w / e) - u) / (1.0 + c / (w + e))
            return np.maximum(w, 0.0)

        low, high = 0.0, float(np.abs(v).max(initial=0.0))
        if weights(0.0).sum() > self.size:
            for _ in range(200):
                nu = 0.5 * (low + high)
                low, high = (nu, high) if weights(nu).sum() > self.size else (low, nu)
        return np.sign(v) * weights(low)

    cdef Statistic statistic_for(self, double rho):
        return EVERYTHING

    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil:
        """Set w_j = sgn(theta) scale (exp(|theta| - nu) - 1), theta = -s / (a strength + b)."""
        cdef double denominator = a * self.strength + b, top = 0.0, total, slope, m, move
        cdef double limit = self.size / self.scale
        cdef Py_ssize_t j
        cdef int _turn
        shape.transform = exponential
        shape.p = self.scale
        shape.scale = 1.0 / denominator if denominator > 0.0 else 0.0
        shape.threshold = 0.0
        for j in range(s.n):
            top = fmax(top, fabs(s.cells[j * s.width]) * shape.scale)
        # the largest slot alone fills the ball at this nu, so the root is above it, and Newton's
        # method on a convex decreasing function approaches it from below
        shape.threshold = fmax(0.0, top - log1p(limit))
        for _turn in range(100):
            total = 0.0
            slope = 0.0
            for j in range(s.n):
                m = fabs(s.cells[j * s.width]) * shape.scale - shape.threshold
                if m > 0.0:
                    total += expm1(m)
                    slope += exp(m)
            if total <= limit or slope == 0.0:
                break
            move = (total - limit) / slope
            shape.threshold += move
            if move <= 1e-16 * shape.threshold:
                break
