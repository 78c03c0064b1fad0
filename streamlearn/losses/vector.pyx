# cython: auto_pickle=False
"""Losses of several outputs f, one per class or target ([Teo07] Table 2)."""

from collections.abc import Mapping

from libc.math cimport INFINITY, exp, fabs, log, pow
from libc.stdlib cimport free, malloc

from streamlearn.losses.loss cimport DBL_MAX, VectorLoss, entropy, finite, softmax

import numpy as np

from streamlearn.core.parameters import number
from streamlearn.losses.checks import checked_costs, semidefinite, square_matrix


cdef double ROUNDING = 1e-9  # tolerance of computed slopes


cdef double* allocate_matrix(Py_ssize_t n) except NULL:
    """Allocate an n x n matrix in row-major order."""
    cdef double* matrix = <double*>malloc(max(n * n, 1) * sizeof(double))
    if matrix == NULL:
        raise MemoryError
    return matrix


cdef class MulticlassHinge(VectorLoss):
    """max over y' of Delta(y, y')^rescale (f_y' - f_y + Delta(y, y')): the structured margin.

    [Teo07] Table 2, "Soft Margin" (rescale 0) and "Scaled Soft Margin" (rescale beta).
    Delta(y, y') is the cost of predicting y' for y. `cost=None` means 1 for every error; a mapping
    {true: {predicted: cost}} names labels, and `bound(labels)` turns it into a matrix in the order
    of `labels`; a square array is for the classes 0, 1, ... Errors not listed cost 1.
    A tie with the true class has slope 0, like the hinge at its threshold.

    >>> loss = MulticlassHinge()
    >>> loss.value([0.0, 0.5, 0.25], 0), loss.slope([0.0, 0.5, 0.25], 0).tolist()
    (1.5, [-1.0, 1.0, 0.0])
    >>> MulticlassHinge({"ham": {"spam": 5}}).bound(["ham", "spam"])
    MulticlassHinge(cost=((0.0, 5.0), (1.0, 0.0)), rescale=0.0)
    """

    kind = "multiclass"
    _names = ("cost", "rescale")
    _examples = (
        (None, 0.0),
        (((0, 1, 4), (0.5, 0, 2), (3, 1, 0)), 0.0),
        (((0, 1, 4), (0.5, 0, 2), (3, 1, 0)), 1.0),
        (((0, 3), (2, 0)), 0.5),
    )
    cdef readonly double rescale
    cdef object costs
    cdef double* deltas
    cdef double* scales

    def __cinit__(self, cost=None, rescale=0.0):
        self.rescale = number("MulticlassHinge", "rescale", rescale, low=0.0)
        if isinstance(cost, Mapping):
            costs = {true: checked_costs(true, row, self.rescale) for true, row in cost.items()}
            self.costs = costs
            return
        if cost is None:
            return
        rows = square_matrix(cost, "cost").tolist()
        self.costs = tuple([
            tuple(checked_costs(i, dict(enumerate(row)), self.rescale).values())
            for i, row in enumerate(rows)
        ])
        cdef Py_ssize_t n = len(rows), here, there
        self.deltas = allocate_matrix(n)
        self.scales = allocate_matrix(n)
        for here in range(n):
            for there in range(n):
                self.deltas[here * n + there] = self.costs[here][there]
                self.scales[here * n + there] = pow(self.costs[here][there], self.rescale)
        self.outputs = n

    def __dealloc__(self):
        free(self.deltas)
        free(self.scales)

    @property
    def cost(self):
        """The costs: a copy of the mapping, the rows of the matrix, or None."""
        if isinstance(self.costs, dict):
            return {true: dict(row) for true, row in self.costs.items()}
        return self.costs

    def bound(self, labels):
        """Return the same loss with its costs as a matrix in the order of `labels`."""
        costs = self.costs
        if costs is None:
            return self
        if not isinstance(costs, dict):
            costs = {i: dict(enumerate(row)) for i, row in enumerate(costs)}
        matrix = [
            [costs.get(true, {}).get(guess, float(i != j)) for j, guess in enumerate(labels)]
            for i, true in enumerate(labels)
        ]
        return type(self)(matrix, self.rescale) if matrix else self

    cdef Py_ssize_t worst(
        self, const double* f, Py_ssize_t k, Py_ssize_t y, double* value, double* scale
    ) noexcept nogil:
        """Return the maximizing y'; set the maximum and Delta^rescale."""
        cdef Py_ssize_t best = y, i, n = self.outputs
        cdef double delta, factor, loss
        value[0] = scale[0] = 0.0
        for i in range(k):
            if i == y:
                continue
            delta = factor = 1.0
            if i < n and y < n:
                delta = self.deltas[y * n + i]
                factor = self.scales[y * n + i]
            loss = factor * finite(f[i] - f[y] + delta)
            if loss > value[0]:
                best = i
                value[0] = loss
                scale[0] = factor
        return best

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil:
        cdef double value, scale
        self.worst(f, k, <Py_ssize_t>y[0], &value, &scale)
        return finite(value)

    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil:
        cdef double value, scale
        cdef Py_ssize_t i, true = <Py_ssize_t>y[0]
        cdef Py_ssize_t best = self.worst(f, k, true, &value, &scale)
        for i in range(k):
            out[i] = 0.0
        out[best] += scale
        out[true] -= scale

    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil:
        """Return minus the mean cost if a is a mean of scale (e_y' - e_y), else infinity."""
        cdef double total = a[<Py_ssize_t>y[0]], used = 0.0, value = 0.0, delta, factor
        cdef Py_ssize_t i, true = <Py_ssize_t>y[0], n = self.outputs
        for i in range(k):
            if i == true:
                continue
            delta = factor = 1.0
            if i < n and true < n:
                delta = self.deltas[true * n + i]
                factor = self.scales[true * n + i]
            if a[i] < 0.0 or (a[i] > 0.0 and factor == 0.0):
                return INFINITY
            total += a[i]
            if a[i] > 0.0:
                used += a[i] / factor
                value -= a[i] * delta
        if fabs(total) > ROUNDING * fabs(a[true]) or used > 1.0 + ROUNDING:
            return INFINITY
        return value

    def _outputs(self, f):
        if isinstance(self.costs, dict):
            raise ValueError("cost names labels; call bound(labels) first to set their order in f")
        return super()._outputs(f)


cdef class Softmax(VectorLoss):
    """log sum exp(f_y') - f_y: multinomial logistic regression. [Teo07] Table 2, "Softmax".

    >>> loss = Softmax()
    >>> round(loss.value([0.0, 0.0], 1), 4), loss.slope([0.0, 0.0], 1).tolist()
    (0.6931, [0.5, -0.5])
    >>> loss.probability([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """

    kind = "multiclass"

    def __cinit__(self):
        self.curvature_bound = 0.5
        self.has_probability = True

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil:
        cdef Py_ssize_t i, true = <Py_ssize_t>y[0]
        cdef double top = highest(f, k), total = 0.0
        for i in range(k):
            total += exp(f[i] - top)
        return finite(top - f[true] + log(total))

    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil:
        cdef Py_ssize_t i, true = <Py_ssize_t>y[0]
        self.probabilities_of(f, k, out)
        # Minus the sum of the others, because p - 1 loses digits when p is near 1.
        out[true] = 0.0
        cdef double others = 0.0
        for i in range(k):
            others += out[i]
        out[true] = -others

    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil:
        """Return the negative entropy of the probabilities a + e_y."""
        cdef double total = 0.0, value = 0.0, share
        cdef Py_ssize_t i, true = <Py_ssize_t>y[0]
        for i in range(k):
            share = a[i] + 1.0 if i == true else a[i]
            if share < -ROUNDING:
                return INFINITY
            total += share
            value += entropy(share)
        return value if fabs(total - 1.0) <= ROUNDING else INFINITY

    cdef void probabilities_of(self, const double* f, Py_ssize_t k, double* out) noexcept nogil:
        softmax(f, k, 1.0, out)


cdef double highest(const double* f, Py_ssize_t k) noexcept nogil:
    cdef double top = -DBL_MAX
    cdef Py_ssize_t i
    for i in range(k):
        top = max(top, f[i])
    return top


cdef class MultiSquared(VectorLoss):
    """1/2 (f - y)' M (f - y), M positive semidefinite; `metric=None` means the identity.

    [Teo07] Table 2, "Multivariate Regression".

    >>> loss = MultiSquared([[2, 0], [0, 1]])
    >>> loss.value([1.0, 3.0], [0.0, 1.0]), loss.slope([1.0, 3.0], [0.0, 1.0]).tolist()
    (3.0, [2.0, 2.0])
    """

    kind = "multitarget"
    _names = ("metric",)
    _examples = ((None,), (((2.0, -0.5), (-0.5, 1.0)),), (((1.0, 1.0), (1.0, 1.0)),))
    cdef readonly object metric
    cdef double* matrix
    cdef double* inverse

    def __cinit__(self, metric=None):
        self.score_is_label = True
        self.curvature_bound = 1.0
        if metric is None:
            return
        array, self.curvature_bound = semidefinite(metric, "metric")
        self.metric = tuple(map(tuple, array.tolist()))
        cdef Py_ssize_t n = len(array), i, j
        inverse = np.linalg.pinv(array, rcond=1e-10, hermitian=True).tolist()
        self.matrix = allocate_matrix(n)
        self.inverse = allocate_matrix(n)
        for i in range(n):
            for j in range(n):
                self.matrix[i * n + j] = self.metric[i][j]
                self.inverse[i * n + j] = inverse[i][j]
        self.outputs = n

    def __dealloc__(self):
        free(self.matrix)
        free(self.inverse)

    cdef double times(
        self, const double* f, Py_ssize_t k, const double* y, Py_ssize_t i, double scale
    ) noexcept nogil:
        """Return entry i of M (f - y), times `scale`."""
        cdef double total = 0.0
        cdef Py_ssize_t j, n = self.outputs
        if n == 0:
            return scale * finite(f[i] - y[i])
        if i >= n:
            return 0.0
        for j in range(min(k, n)):
            total += self.matrix[i * n + j] * (scale * finite(f[j] - y[j]))
        return total

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil:
        cdef double scale = safe_scale(f, k, y), total = 0.0
        cdef Py_ssize_t i
        for i in range(k):
            total += scale * finite(f[i] - y[i]) * self.times(f, k, y, i, scale)
        return finite(0.5 * max(0.0, total) / scale / scale)

    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil:
        cdef double scale = safe_scale(f, k, y)
        cdef Py_ssize_t i
        for i in range(k):
            out[i] = finite(self.times(f, k, y, i, scale) / scale)

    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil:
        """Return <a, y> + 1/2 a' M^-1 a, infinite if a is not in the range of M."""
        cdef double value = 0.0, top = 0.0, back, reached
        cdef Py_ssize_t i, j, c, n = self.outputs
        for i in range(k):
            value += a[i] * y[i]
            top = max(top, fabs(a[i]))
        for i in range(k):
            if n == 0:
                value += 0.5 * a[i] * a[i]
                continue
            back = reached = 0.0
            for j in range(n):
                back += self.inverse[i * n + j] * a[j]
                for c in range(n):
                    reached += self.matrix[i * n + j] * self.inverse[j * n + c] * a[c]
            if fabs(reached - a[i]) > ROUNDING * top:
                return INFINITY
            value += 0.5 * a[i] * back
        return finite(value)


cdef double safe_scale(const double* f, Py_ssize_t k, const double* y) noexcept nogil:
    """Return 1, or for distances beyond 1e100 their inverse, because their squares overflow."""
    cdef double top = 0.0
    cdef Py_ssize_t i
    for i in range(k):
        top = max(top, finite(fabs(f[i] - y[i])))
    return 1.0 if top < 1e100 else 1.0 / top
