# cython: auto_pickle=False
"""The base classes of losses: their C and Python interfaces, parameters and implicit steps.

A loss implements `value_at`, `slope_at` and `curvature_at` ([Teo07] Tables 1 and 2), and
`conjugate_at` for the bounds of the hindsight solvers; a curved loss also implements `flow_at`.
"""

from libc.math cimport INFINITY, NAN, fabs, isfinite, sqrt

from streamlearn.core.parameters cimport Parameterized

import numpy as np


cdef enum Quantity:
    VALUE
    SLOPE
    CURVATURE
    CONJUGATE
    LOWEST
    RESPONSE
    PROBABILITY


cdef class AnyLoss(Parameterized):
    """The base class of scalar and vector losses: immutable, identified by its parameters.

    kind: "binary" (labels -1 and +1), "one-class", "regression", "multiclass", or "multitarget".
    curvature_bound: the least upper bound of the second derivative, infinite if there is none.
    leaves_zero: False if the loss is flat at p = 0, so that a rule would never leave w = 0.
    ball_proved: the minimizer of strength/2 |w|^2 + mean loss is in the ball 1/sqrt(strength).
    score_is_label: the score is on the label's scale.
    has_probability: the score determines a probability.
    """

    kind = ""

    def __cinit__(self, *args, **kwargs):
        name = type(self).__name__
        if not self.kind:
            raise TypeError(f"{name} is abstract: use a loss of streamlearn.losses")
        if len(args) + len(kwargs) > len(self._names):  # a __cinit__ without arguments accepts any
            raise TypeError(f"{name} takes {', '.join(self._names) or 'no arguments'}")
        self.curvature_bound = INFINITY
        self.leaves_zero = True

    @property
    def smooth(self):
        """Whether the slope is Lipschitz everywhere."""
        return self.curvature_bound < INFINITY


cdef class Loss(AnyLoss):
    """A loss l(p, y) of one prediction p and one label y, convex in p."""

    cdef double value_at(self, double p, double y) noexcept nogil:
        return 0.0

    cdef double slope_at(self, double p, double y) noexcept nogil:
        """Return a subgradient in p."""
        return 0.0

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        """Return the second derivative in p, or 0 where there is none."""
        return 0.0

    cdef double sum_pending(self, const PendingEvents* pending) noexcept nogil:
        """Return the weighted sum of the losses of the pending events."""
        cdef double total = 0.0
        cdef int i
        for i in range(pending.n):
            total += pending.weight[i] * self.value_at(pending.score[i], pending.label[i])
        return total

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Solve h = slope(p - h b) for h by Newton's method in a bracket.

        At a kink, h is such that p - h b is the kink. The root is between 0 and the slope at p,
        possibly hundreds of orders of magnitude smaller: if Newton's steps do not halve, the
        logarithmic bracket is halved instead.
        """
        cdef double side = 1.0 if slope > 0.0 else -1.0
        cdef double low = 0.0, high = fabs(slope), h = high, last = high
        cdef double excess, step
        cdef int _turn
        if b == 0.0 or slope == 0.0:
            return slope
        for _turn in range(300):
            excess = h - side * self.slope_at(p - side * h * b, y)
            if excess > 0.0:
                high = h
            else:
                low = h
            step = excess / (1.0 + b * self.curvature_at(p - side * h * b, y))
            if low <= h - step <= high and fabs(step) <= 0.5 * last:
                h -= step
                last = fabs(step)
                if last <= 4e-16 * h:
                    break
                continue
            h = min(sqrt(max(low, DBL_MIN)) * sqrt(high), high)  # high may be subnormal
            last = high - low
            if last <= 4e-16 * high:
                break
        return side * h

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Return the h for which infinitely many infinitesimal steps lead from p to p - h b.

        They follow dp/ds = -slope(p) from s = 0 to s = b. If the slope is constant up to a kink,
        this is the implicit step; curved losses implement their closed form.
        """
        return self.implicit_at(p, y, b, slope)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        """Return the supremum over p of a p - l(p, y), infinite if a is not a limit of slopes."""
        return INFINITY

    cdef double lowest_at(self, double y) noexcept nogil:
        """Return the infimum over p of l(p, y)."""
        return -self.conjugate_at(0.0, y)

    cdef double response_at(self, double p) noexcept nogil:
        """Return the prediction on the label's scale."""
        return p

    cdef double probability_at(self, double p) noexcept nogil:
        """Return the probability of +1, or NaN if the loss defines none."""
        return NAN

    cdef double score_of(self, double y) noexcept nogil:
        """Return the score whose response is the label `y`."""
        return y

    cdef double constant_at(self, double mean) noexcept nogil:
        """Return the score with the least loss if it is the same for all labels of this mean.

        For losses whose best constant is another statistic, this is an approximation.
        """
        return self.score_of(mean)

    cdef bint accepts(self, double y) noexcept nogil:
        """Return whether `y` is a valid label."""
        return isfinite(y)

    def value(self, p, y):
        """Return the loss of the prediction `p` for the label `y`: numbers or broadcast arrays."""
        return evaluate(self, VALUE, p, y)

    def slope(self, p, y):
        """Return the derivative in `p`; at a kink, the subgradient that the papers choose."""
        return evaluate(self, SLOPE, p, y)

    def total(self, events):
        """Sum weight * loss over up to 64 events (score, label, weight, slope or NaN)."""
        cdef PendingEvents pending
        pending.n = 0
        for score, label, weight, slope in events[:MAX_PENDING]:
            pending.score[pending.n] = score
            pending.label[pending.n] = label
            pending.weight[pending.n] = weight
            pending.slope[pending.n] = slope
            pending.n += 1
        return self.sum_pending(&pending)

    def curvature(self, p, y):
        """Return the second derivative in `p`, 0 where there is none."""
        return evaluate(self, CURVATURE, p, y)

    def implicit(self, double p, double y, double b):
        """Solve h = slope(p - h b) for h: the slope of an implicit (proximal) step of length b."""
        return self.implicit_at(p, y, b, self.slope_at(p, y))

    def flow(self, double p, double y, double b):
        """Return the mean slope along the path from p that follows -slope for the time b."""
        return self.flow_at(p, y, b, self.slope_at(p, y))

    def conjugate(self, a, y):
        """Return the supremum of a p - l(p, y) over p, infinite if `a` is not a limit of slopes."""
        return evaluate(self, CONJUGATE, a, y)

    def lowest(self, y):
        """Return the infimum of the loss for the label `y`."""
        return evaluate(self, LOWEST, 0.0, y)

    def response(self, p):
        """Return the prediction of the score `p` on the label's scale."""
        return evaluate(self, RESPONSE, p, 0.0)

    def probability(self, p):
        """Return the probability of +1 at the score `p`, or None if the loss defines none."""
        return evaluate(self, PROBABILITY, p, 0.0) if self.has_probability else None

    def score(self, double y):
        """Return the score whose response is the label `y`."""
        return self.score_of(y)

    def is_label(self, double y):
        """Return whether `y` is a valid label."""
        return self.accepts(y)


cdef double evaluate_one(Loss loss, Quantity what, double p, double y) noexcept nogil:
    if what == VALUE:
        return loss.value_at(p, y)
    if what == SLOPE:
        return loss.slope_at(p, y)
    if what == CURVATURE:
        return loss.curvature_at(p, y)
    if what == CONJUGATE:
        return loss.conjugate_at(p, y)
    if what == LOWEST:
        return loss.lowest_at(y)
    if what == RESPONSE:
        return loss.response_at(p)
    return loss.probability_at(p)


cdef const double* data_of(object array):
    """Return the data pointer of a contiguous array of doubles."""
    return <const double*><size_t>array.ctypes.data


cdef object evaluate(Loss loss, Quantity what, object p, object y):
    """Evaluate one quantity for two numbers or for broadcast arrays."""
    if isinstance(p, (int, float)) and isinstance(y, (int, float)):
        return evaluate_one(loss, what, p, y)
    p, y = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(y, np.float64))
    result = np.empty(p.shape)
    # Named, because the pointers hold no references.
    scores, labels = np.ascontiguousarray(p), np.ascontiguousarray(y)
    cdef const double* score = data_of(scores)
    cdef const double* label = data_of(labels)
    cdef double* out = <double*>data_of(result)
    cdef Py_ssize_t i, n = result.size
    for i in range(n):
        out[i] = evaluate_one(loss, what, score[i], label[i])
    return result if result.ndim else float(result)


cdef class VectorLoss(AnyLoss):
    """A loss l(f, y) of k outputs f, convex in f.

    `y` is the index of a class, or one number per output (kind "multitarget"); C code passes a
    pointer. `outputs` is the k that the parameters require, or 0 if they allow any.
    """

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil:
        return 0.0

    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil:
        """Write a subgradient in f to `out`."""

    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil:
        """Return the supremum over f of <a, f> - l(f, y), infinite if a is not a limit of slopes.

        Values of a that differ from a slope by rounding count as slopes.
        """
        return INFINITY

    cdef void probabilities_of(self, const double* f, Py_ssize_t k, double* out) noexcept nogil:
        """Write the probability of each class to `out`, NaN if the loss defines none."""
        cdef Py_ssize_t i
        for i in range(k):
            out[i] = NAN

    def value(self, f, y):
        """Return the loss of the outputs `f` (the last axis) for one label `y` or many."""
        f, y = self._checked(f, y)
        cdef Py_ssize_t i, k, n, width
        *batch, k = f.shape
        n = f.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(batch)
        cdef const double* output = data_of(f)
        cdef const double* label = data_of(y)
        cdef double* out = <double*>data_of(result)
        for i in range(n):
            out[i] = self.value_of(output + i * k, k, label + i * width)
        return result if batch else float(result)

    def slope(self, f, y):
        """Return the derivative in `f`, with the same shape."""
        f, y = self._checked(f, y)
        cdef Py_ssize_t i, k, n, width
        *_, k = f.shape
        n = f.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(f.shape)
        cdef const double* output = data_of(f)
        cdef const double* label = data_of(y)
        cdef double* out = <double*>data_of(result)
        for i in range(n):
            self.slopes_of(output + i * k, k, label + i * width, out + i * k)
        return result

    def conjugate(self, a, y):
        """Return the supremum over f of <a, f> - l(f, y), for each `a` (the last axis) and label.

        It is infinite if `a` is not a limit of slopes.
        """
        a, y = self._checked(a, y)
        cdef Py_ssize_t i, k, n, width
        *batch, k = a.shape
        n = a.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(batch)
        cdef const double* slope = data_of(a)
        cdef const double* label = data_of(y)
        cdef double* out = <double*>data_of(result)
        for i in range(n):
            out[i] = self.conjugate_of(slope + i * k, k, label + i * width)
        return result if batch else float(result)

    def probability(self, f):
        """Return the probability of each class at the outputs `f`, or None if there is none."""
        if not self.has_probability:
            return None
        f = self._outputs(f)
        cdef Py_ssize_t i, k
        *_, k = f.shape
        result = np.empty(f.shape)
        cdef const double* output = data_of(f)
        cdef double* out = <double*>data_of(result)
        for i in range(f.size // k):
            self.probabilities_of(output + i * k, k, out + i * k)
        return result

    def _outputs(self, f):
        f = np.asarray(f, np.float64, order="C")
        if f.ndim == 0:
            raise ValueError(f"f must be an array whose last axis is the outputs, got {f}")
        *_, k = f.shape
        if k == 0 or self.outputs not in (0, k):
            needed = self.outputs or "at least one"
            raise ValueError(f"f must have {needed} outputs for {self!r}, got {k}")
        return f

    def _checked(self, f, y):
        f = self._outputs(f)
        y = np.asarray(y, np.float64)
        *batch, k = f.shape
        if self.kind == "multitarget":
            batch = f.shape
        elif not np.all((y == np.floor(y)) & (y >= 0) & (y < k)):
            raise ValueError(f"y must be the index of a class, 0 to {k - 1}, got {y}")
        return f, np.ascontiguousarray(np.broadcast_to(y, batch))
