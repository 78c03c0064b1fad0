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
    """What scalar and vector losses share: an immutable value, known by its constructor call.

    kind: "binary" (labels -1 and +1), "one-class", "regression", "multiclass", "multitarget".
    curvature_bound: the least upper bound of the second derivative, infinite where there is none.
    leaves_zero: False where the loss is flat at p = 0, so that a rule would never leave w = 0.
    ball_proved: the minimizer of strength/2 |w|^2 + mean loss is in the ball 1/sqrt(strength).
    score_is_label: the score is on the label's scale.
    has_probability: the score stands for a probability.
    """

    kind = ""

    def __cinit__(self, *args, **kwargs):
        name = type(self).__name__
        if not self.kind:
            raise TypeError(f"{name} is abstract: take one of streamlearn.losses")
        if len(args) + len(kwargs) > len(self._names):  # a __cinit__ without arguments lets them by
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
        """A subgradient in p."""
        return 0.0

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        """The second derivative in p where there is one, else 0."""
        return 0.0

    cdef double sum_of(self, const Few* few) noexcept nogil:
        """The weighted sum of the losses of a few events."""
        cdef double total = 0.0
        cdef int i
        for i in range(few.n):
            total += few.weight[i] * self.value_at(few.score[i], few.label[i])
        return total

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        """The h with h = slope(p - h b): Newton's method, kept in a bracket.

        At a kink that is the h for which p - h b is the kink. The root is between 0 and the slope
        at p, which the caller knows, maybe hundreds of orders of magnitude below it; so where
        Newton's steps do not halve, the bracket is halved, in its logarithm.
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
            h = min(sqrt(max(low, DBL_MIN)) * sqrt(high), high)  # which may be subnormal
            last = high - low
            if last <= 4e-16 * high:
                break
        return side * h

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """The h for which p - h b is reached by infinitely many infinitely small steps.

        That is, by dp/ds = -slope(p) from s = 0 to s = b. Where the slope is constant up to a kink
        it is the implicit step; a curved loss has its closed form.
        """
        return self.implicit_at(p, y, b, slope)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        """The supremum over p of a p - l(p, y); infinite where no slope comes near a."""
        return INFINITY

    cdef double lowest_at(self, double y) noexcept nogil:
        """The infimum over p of l(p, y)."""
        return -self.conjugate_at(0.0, y)

    cdef double response_at(self, double p) noexcept nogil:
        """The prediction on the label's scale."""
        return p

    cdef double probability_at(self, double p) noexcept nogil:
        """The probability of +1; NaN where the loss defines none."""
        return NAN

    cdef double score_of(self, double y) noexcept nogil:
        """The score whose response is the label `y`."""
        return y

    cdef bint admits(self, double y) noexcept nogil:
        """Whether `y` is a label of this loss."""
        return isfinite(y)

    def value(self, p, y):
        """The loss of the prediction `p` for the label `y`; numbers, or arrays that broadcast."""
        return each(self, VALUE, p, y)

    def slope(self, p, y):
        """The derivative in `p`; at a kink, the one the papers choose."""
        return each(self, SLOPE, p, y)

    def total(self, events):
        """The sum of weight * loss of up to 64 events (score, label, weight, slope or NaN)."""
        cdef Few few
        few.n = 0
        for score, label, weight, slope in events[:FEW]:
            few.score[few.n] = score
            few.label[few.n] = label
            few.weight[few.n] = weight
            few.slope[few.n] = slope
            few.n += 1
        return self.sum_of(&few)

    def curvature(self, p, y):
        """The second derivative in `p`, 0 where there is none."""
        return each(self, CURVATURE, p, y)

    def implicit(self, double p, double y, double b):
        """The h with h = slope(p - h b): the slope of an implicit (proximal) step of length b."""
        return self.implicit_at(p, y, b, self.slope_at(p, y))

    def flow(self, double p, double y, double b):
        """The mean slope on the way from p that follows -slope for the time b."""
        return self.flow_at(p, y, b, self.slope_at(p, y))

    def conjugate(self, a, y):
        """The largest a p - l(p, y) over all p; infinite where no slope comes near `a`."""
        return each(self, CONJUGATE, a, y)

    def lowest(self, y):
        """The lowest value (the infimum) of the loss for the label `y`."""
        return each(self, LOWEST, 0.0, y)

    def response(self, p):
        """The prediction of the score `p` on the label's scale."""
        return each(self, RESPONSE, p, 0.0)

    def probability(self, p):
        """The probability of +1 at the score `p`; None where the loss defines none."""
        return each(self, PROBABILITY, p, 0.0) if self.has_probability else None

    def score(self, double y):
        """The score whose response is the label `y`."""
        return self.score_of(y)

    def is_label(self, double y):
        """Whether `y` is a label of this loss."""
        return self.admits(y)


cdef double one(Loss loss, Quantity what, double p, double y) noexcept nogil:
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


cdef const double* numbers(object array):
    """Where a contiguous array of doubles begins."""
    return <const double*><size_t>array.ctypes.data


cdef object each(Loss loss, Quantity what, object p, object y):
    """One quantity, of two numbers or of each pair of two arrays."""
    if isinstance(p, (int, float)) and isinstance(y, (int, float)):
        return one(loss, what, p, y)
    p, y = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(y, np.float64))
    result = np.empty(p.shape)
    # Kept by name: the pointers hold no reference.
    scores, labels = np.ascontiguousarray(p), np.ascontiguousarray(y)
    cdef const double* score = numbers(scores)
    cdef const double* label = numbers(labels)
    cdef double* out = <double*>numbers(result)
    cdef Py_ssize_t i, n = result.size
    for i in range(n):
        out[i] = one(loss, what, score[i], label[i])
    return result if result.ndim else float(result)


cdef class VectorLoss(AnyLoss):
    """A loss l(f, y) of k outputs f, convex in f.

    `y` is the index of a class, or as many numbers as outputs (kind "multitarget"); C code passes
    a pointer to them. outputs: the k that the parameters ask for, 0 if they ask for none.
    """

    cdef double value_of(self, const double* f, Py_ssize_t k, const double* y) noexcept nogil:
        return 0.0

    cdef void slopes_of(
        self, const double* f, Py_ssize_t k, const double* y, double* out
    ) noexcept nogil:
        """A subgradient in f."""

    cdef double conjugate_of(self, const double* a, Py_ssize_t k, const double* y) noexcept nogil:
        """The supremum over f of <a, f> - l(f, y); infinite where no slope comes near a.

        What differs from a slope by rounding is taken for one.
        """
        return INFINITY

    cdef void probabilities_of(self, const double* f, Py_ssize_t k, double* out) noexcept nogil:
        """The probability of each class; NaN where the loss defines none."""
        cdef Py_ssize_t i
        for i in range(k):
            out[i] = NAN

    def value(self, f, y):
        """The loss of the outputs `f` (the last axis) for the label `y`, or for each of many."""
        f, y = self._checked(f, y)
        cdef Py_ssize_t i, k, n, width
        *batch, k = f.shape
        n = f.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(batch)
        cdef const double* output = numbers(f)
        cdef const double* label = numbers(y)
        cdef double* out = <double*>numbers(result)
        for i in range(n):
            out[i] = self.value_of(output + i * k, k, label + i * width)
        return result if batch else float(result)

    def slope(self, f, y):
        """The derivative in `f`, of the same shape."""
        f, y = self._checked(f, y)
        cdef Py_ssize_t i, k, n, width
        *_, k = f.shape
        n = f.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(f.shape)
        cdef const double* output = numbers(f)
        cdef const double* label = numbers(y)
        cdef double* out = <double*>numbers(result)
        for i in range(n):
            self.slopes_of(output + i * k, k, label + i * width, out + i * k)
        return result

    def conjugate(self, a, y):
        """The largest <a, f> - l(f, y) over all f, for each `a` (the last axis) and label.

        Infinite where no slope comes near `a`.
        """
        a, y = self._checked(a, y)
        cdef Py_ssize_t i, k, n, width
        *batch, k = a.shape
        n = a.size // k
        width = k if self.kind == "multitarget" else 1
        result = np.empty(batch)
        cdef const double* slope = numbers(a)
        cdef const double* label = numbers(y)
        cdef double* out = <double*>numbers(result)
        for i in range(n):
            out[i] = self.conjugate_of(slope + i * k, k, label + i * width)
        return result if batch else float(result)

    def probability(self, f):
        """The probability of each class at the outputs `f`; None where the loss defines none."""
        if not self.has_probability:
            return None
        f = self._outputs(f)
        cdef Py_ssize_t i, k
        *_, k = f.shape
        result = np.empty(f.shape)
        cdef const double* output = numbers(f)
        cdef double* out = <double*>numbers(result)
        for i in range(f.size // k):
            self.probabilities_of(output + i * k, k, out + i * k)
        return result

    def _outputs(self, f):
        f = np.asarray(f, np.float64, order="C")
        if f.ndim == 0:
            raise ValueError(f"f is {f}; it must be an array whose last axis is the outputs")
        *_, k = f.shape
        if k == 0 or self.outputs not in (0, k):
            raise ValueError(f"f has {k} outputs; {self!r} needs {self.outputs or 'at least one'}")
        return f

    def _checked(self, f, y):
        f = self._outputs(f)
        y = np.asarray(y, np.float64)
        *batch, k = f.shape
        if self.kind == "multitarget":
            batch = f.shape
        elif not np.all((y == np.floor(y)) & (y >= 0) & (y < k)):
            raise ValueError(f"y is {y}; it must be the index of a class, 0 to {k - 1}")
        return f, np.ascontiguousarray(np.broadcast_to(y, batch))
