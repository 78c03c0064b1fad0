# cython: auto_pickle=False
"""Losses of the margin m = y p, y in {-1, +1}, and Novelty, whose margin is p ([Teo07] Table 1).

The slope of a margin loss is -y s with s >= 0, and a step of length b moves m to m + s b.
"""

from libc.math cimport INFINITY, copysign, exp, expm1, fabs, log, log1p, sqrt

from streamlearn.losses.loss cimport (
    LAST_EXPONENT, PendingEvents, Loss, entropy, exponential, exponential_curvature,
    exponential_slope, finite, log_growth, slope_until,
)

from streamlearn.core.parameters import number


cdef class MarginLoss(Loss):
    """A loss of the margin y p."""

    cdef bint accepts(self, double y) noexcept nogil:
        return y == 1.0 or y == -1.0


cdef class Hinge(MarginLoss):
    """max(0, threshold - y p): the soft margin of SVMs; with threshold 0, the perceptron's loss.

    [Teo07] Table 1, "Hinge" (threshold 0) and "Soft Margin" (threshold 1). At y p = threshold the
    slope is 0, except for threshold 0: there it is -y, or the perceptron would never leave w = 0.

    >>> loss = Hinge()
    >>> loss.value(0.25, 1), loss.slope(0.25, 1), loss.slope(1.0, 1)
    (0.75, -1.0, 0.0)
    >>> Hinge(0).slope(0.0, -1)
    1.0
    """

    kind = "binary"
    _names = ("threshold",)
    _examples = ((1.0,), (0.0,), (2.5,))
    cdef readonly double threshold

    def __cinit__(self, threshold=1.0):
        self.threshold = number("Hinge", "threshold", threshold, low=0.0)
        self.ball_proved = self.threshold <= 1.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(max(0.0, self.threshold - y * p))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        cdef double margin = y * p
        if margin < self.threshold or margin == self.threshold == 0.0:
            return -y
        return 0.0

    cdef double constant_at(self, double mean) noexcept nogil:
        return copysign(self.threshold, mean) if mean != 0.0 else 0.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * y * self.threshold if 0.0 <= -a * y <= 1.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        if b == 0.0:
            return slope
        return -y * slope_until(1.0, max(0.0, self.threshold - y * p), b)


cdef class SquaredHinge(MarginLoss):
    """1/2 max(0, threshold - y p)^2.

    [Teo07] Table 1, "Squared Hinge" (threshold 0) and "Squared Soft Margin" (threshold 1).
    With threshold 0 it is flat at p = 0: a rule that starts at w = 0 would stay there.

    >>> loss = SquaredHinge()
    >>> loss.value(0.5, 1), loss.slope(0.5, 1), loss.probability(0.5)
    (0.125, -0.5, 0.75)
    """

    kind = "binary"
    _names = ("threshold",)
    _examples = ((1.0,), (0.0,), (2.5,))
    cdef readonly double threshold

    def __cinit__(self, threshold=1.0):
        self.threshold = number("SquaredHinge", "threshold", threshold, low=0.0)
        self.curvature_bound = 1.0
        self.leaves_zero = self.threshold > 0.0
        self.has_probability = self.threshold > 0.0

    cdef double gap(self, double p, double y) noexcept nogil:
        return finite(max(0.0, self.threshold - y * p))

    cdef double value_at(self, double p, double y) noexcept nogil:
        cdef double gap = self.gap(p, y)
        return finite(0.5 * gap * gap)

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return -y * self.gap(p, y)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        return 1.0 if y * p < self.threshold else 0.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        cdef double u = -a * y
        return finite(0.5 * u * u - u * self.threshold) if u >= 0.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return -y * self.gap(p, y) / (1.0 + b)

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        return slope * (-expm1(-b) / b) if b > 0.0 else slope

    cdef double constant_at(self, double mean) noexcept nogil:
        return self.threshold * mean

    cdef double probability_at(self, double p) noexcept nogil:
        """Invert p = threshold (2 P(+1) - 1), which minimizes the mean loss over y = +-1."""
        return 0.5 * (min(1.0, max(-1.0, p / self.threshold)) + 1.0)


cdef extern from *:
    """
    #include <float.h>
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__)
    #define STREAMLEARN_VECTORS __attribute__((optimize("O3")))
    #else
    #define STREAMLEARN_VECTORS
    #endif

    #define STREAMLEARN_LEAST(a, b) ((a) < (b) ? (a) : (b))
    #define STREAMLEARN_MOST(a, b) ((a) > (b) ? (a) : (b))

    /* The bits in which two doubles differ. */
    static inline uint64_t streamlearn_bit_difference(double a, double b) {
        uint64_t one, other;
        memcpy(&one, &a, 8);
        memcpy(&other, &b, 8);
        return one ^ other;
    }

    /* The weighted sum of logistic losses; NaN if a slope is NaN. No branch depends on the data, so
       compilers vectorize the loops. */
    STREAMLEARN_VECTORS
    static double streamlearn_logistic(
        const double *score, const double *label, const double *weight, const double *slope,
        int n
    ) {
        double lead[STREAMLEARN_MAX_PENDING], growth[STREAMLEARN_MAX_PENDING];
        uint64_t weights_differ = 0;
        for (int i = 0; i < n; i++) {
            double s = fabs(slope[i]), rest = 1.0 - s;
            growth[i] = STREAMLEARN_LEAST(s, rest) / STREAMLEARN_MOST(s, rest);
        }
        for (int i = 0; i < n; i++) {
            double below = -label[i] * score[i];
            below = STREAMLEARN_MOST(below, 0.0);
            lead[i] = weight[i] * STREAMLEARN_LEAST(below, DBL_MAX);
        }
        for (int i = 0; i < n; i++)
            weights_differ |= streamlearn_bit_difference(weight[i], weight[0]);
        for (int i = n; i < STREAMLEARN_MAX_PENDING; i++)
            lead[i] = growth[i] = 0.0;
        if (weights_differ)
            for (int i = 0; i < n; i++) {
                lead[i] += weight[i] * log1p(growth[i]);
                growth[i] = 0.0;
            }
        /* pairwise sums, and pairwise products of 1 + growth, minus 1 */
        for (int half = STREAMLEARN_MAX_PENDING / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++) {
                lead[i] += lead[half + i];
                growth[i] += growth[half + i] * (1.0 + growth[i]);
            }
        return n ? lead[0] + weight[0] * log1p(growth[0]) : 0.0;
    }
    """
    double summed "streamlearn_logistic"(
        const double* score, const double* label, const double* weight, const double* slope, int n
    ) noexcept nogil


cdef inline double logistic_sum(const PendingEvents* pending) noexcept nogil:
    return summed(pending.score, pending.label, pending.weight, pending.slope, pending.n)


cdef double long_step_slope(double margin, double b) noexcept nogil:
    """Approximate s = 1/(1 + e^z), z = m + s b, for large b, from z + log(z - m) = log b."""
    cdef double z
    if margin + b <= 0.0:
        return 1.0
    z = log1p(b / (1.0 + max(-margin, 0.0) + log1p(b)))
    return min(1.0, (z - margin) / b) if z > margin else 0.0


cdef double LINEAR = -37.0  # below this margin log(1 + e^-m) = -m, in doubles
cdef double EXPONENTIAL = 37.0  # above it log(1 + e^-m) = e^-m


cdef class Logistic(MarginLoss):
    """log(1 + exp(-y p)): logistic regression. [Teo07] Table 1, "Logistic".

    >>> loss = Logistic()
    >>> round(loss.value(0.0, 1), 4), loss.slope(0.0, 1), loss.probability(0.0)
    (0.6931, -0.5, 0.5)
    >>> loss.value(-1e5, 1)
    100000.0
    """

    kind = "binary"

    def __cinit__(self):
        self.curvature_bound = 0.25
        self.ball_proved = True
        self.has_probability = True

    cdef double value_at(self, double p, double y) noexcept nogil:
        cdef double margin = y * p
        if margin > 0.0:
            return log1p(exp(-margin))
        return finite(log1p(exp(margin)) - margin)

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return -y / (1.0 + exp(y * p))

    cdef double sum_pending(self, const PendingEvents* pending) noexcept nogil:
        """Sum max(0, -m) + log(1 + e^-|m|) over the margins m with one logarithm.

        e^-|m| follows from the slope, whose size is s = 1 / (1 + e^m).
        """
        cdef double total = logistic_sum(pending)
        cdef PendingEvents known
        cdef int i
        if total == total:
            return total
        known = pending[0]  # with recomputed slopes, because one was unknown
        for i in range(known.n):
            known.slope[i] = Logistic.slope_at(self, known.score[i], known.label[i])
        return logistic_sum(&known)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        cdef double e = exp(-fabs(p))
        return e / ((1.0 + e) * (1.0 + e))

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        """Return the negative entropy of (u, 1 - u) with u = -a y."""
        cdef double u = -a * y
        if not 0.0 <= u <= 1.0:
            return INFINITY
        return entropy(u) + (1.0 - u) * log1p(-u) if u < 1.0 else 0.0

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Solve s = 1/(1 + e^(m + s b)) by Halley's method, usually in two or three rounds.

        The start is s = 0 or, for a long step, the solution with e^-z in place of 1/(1 + e^z).
        """
        cdef double margin = y * p, s = 0.0, step, pull = -y * slope, bend, ascent
        cdef int turn
        if b > 4.0:
            s = long_step_slope(margin, b)
        for turn in range(8):
            if turn > 0 or s > 0.0:
                pull = 1.0 / (1.0 + exp(margin + s * b))
            bend = b * pull * (1.0 - pull)
            ascent = 1.0 + bend
            step = (pull - s) / ascent
            step /= 1.0 - 0.5 * step * bend * b * (1.0 - 2.0 * pull) / ascent
            s += step
            if not 0.0 < s <= 1.0:
                break
            # Convergence is cubic: the next step would be below rounding.
            if fabs(step) <= 1e-5 * s and fabs(step) * b <= 1e-5:
                return -y * s
        return Loss.implicit_at(self, p, y, b, slope)

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Solve m' + e^m' = m + e^m + b; for large |m| the slope is 1 or e^-m."""
        cdef double margin = y * p
        cdef double lead = max(0.0, LINEAR - margin)
        if b < 1e-17:
            return slope
        if margin > EXPONENTIAL:
            return -y * log_growth(exp(-margin), b)
        if b <= lead:
            return -y
        return -y * ((lead + logistic_margin_gain(max(margin, LINEAR), b - lead)) / b)

    cdef double constant_at(self, double mean) noexcept nogil:
        return log((1.0 + mean) / (1.0 - mean))

    cdef double probability_at(self, double p) noexcept nogil:
        return 1.0 / (1.0 + exp(-p))


cdef enum:
    FIRST = -4  # the first c of the table of z(c)
    FINEST = 4  # nodes per unit of c
    NODES = 257

cdef struct Node:
    double z  # the solution of z + e^z = c
    double rate  # dz/dc = 1/(1 + e^z), per node

cdef Node[NODES] NODE


cdef int build_nodes() except -1:
    cdef double z = FIRST
    cdef int k, _turn
    for k in range(NODES):
        for _turn in range(20):  # Newton's method, from the previous node
            z -= (z + exp(z) - (FIRST + k / <double>FINEST)) / (1.0 + exp(z))
        NODE[k] = Node(z, 1.0 / (FINEST * (1.0 + exp(z))))
    return 0


build_nodes()


cdef inline double interpolated_root(double c) noexcept nogil:
    """Return z with z + e^z = c to 1e-6, by cubic interpolation between two nodes."""
    cdef double x = (c - FIRST) * FINEST
    cdef int k = min(<int>x, NODES - 2)
    cdef double t = x - k, rise = NODE[k + 1].z - NODE[k].z
    return NODE[k].z + t * (
        rise + (1.0 - t) * ((NODE[k].rate - rise) * (1.0 - t) + (rise - NODE[k + 1].rate) * t)
    )


cdef inline double halley_step(
    double margin, double e, double b, double d, double* step
) noexcept nogil:
    """Return d after one step of Halley's method; d is > 0 and not far above the root."""
    cdef double growth, ascent
    if d < 0.1:
        # e^d - 1 without cancellation
        growth = e * d * (1.0 + d * (1.0 / 2.0 + d * (1.0 / 6.0 + d * (1.0 / 24.0 + d * (
            1.0 / 120.0 + d * (1.0 / 720.0 + d * (1.0 / 5040.0 + d * (
                1.0 / 40320.0 + d / 362880.0))))))))
    else:
        growth = exp(margin + d) - e
    ascent = 1.0 + e + growth
    step[0] = (d + growth - b) / ascent
    step[0] /= 1.0 - 0.5 * step[0] * (e + growth) / ascent
    return d - step[0]


cdef double logistic_margin_gain(double margin, double b) noexcept nogil:
    """Solve d + e^m (e^d - 1) = b for d >= 0, |m| <= 37, by Halley's method.

    Solving for d instead of z = m + d keeps precision for small b. A start that is accurate to 1e-6
    needs one step: the root of a parabola for small b, else the table of z + e^z = m + e^m + b.
    """
    cdef double e = exp(margin)
    cdef double pace = 1.0 + e
    cdef double c = margin + e + b
    cdef double d, step
    cdef int _turn
    if b <= 0.02 * pace:
        d = 2.0 * b / (pace + sqrt(pace * pace + 2.0 * e * b))
        return halley_step(margin, e, b, d, &step)
    if FIRST <= c <= FIRST + (NODES - 1) // FINEST:
        return halley_step(margin, e, b, interpolated_root(c) - margin, &step)
    b = min(b, 1e307)  # keeps e^(m + d) finite
    d = b / pace
    if d > 1.0:
        d = min(d, log(b + e) - margin)
    for _turn in range(100):
        d = halley_step(margin, e, b, d, &step)
        if fabs(step) <= 1e-6 * min(d, 1.0):
            break
    return d


cdef class Exponential(MarginLoss):
    """exp(-y p): boosting's loss. [Teo07] Table 1, "Exponential".

    Below the margin -700 it continues along its tangent, so the slope stays finite.

    >>> loss = Exponential()
    >>> loss.value(0.0, 1), loss.slope(0.0, -1), loss.probability(0.0)
    (1.0, 1.0, 0.5)
    """

    kind = "binary"

    def __cinit__(self):
        self.ball_proved = True
        self.has_probability = True

    cdef double value_at(self, double p, double y) noexcept nogil:
        return exponential(-y * p)

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return -y * exponential_slope(-y * p)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        return exponential_curvature(-y * p)

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        cdef double u = -a * y
        return finite(entropy(u) - u) if 0.0 <= u <= exponential_slope(LAST_EXPONENT) else INFINITY

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """Follow the tangent, then e^m' = e^m + b."""
        cdef double speed = exponential_slope(-y * p)
        cdef double lead = max(0.0, -y * p - LAST_EXPONENT)
        cdef double rest = b - lead / speed if lead > 0.0 else b
        if rest <= 0.0:
            return -y * speed
        return -y * (lead / b + rest / b * log_growth(speed, rest))

    cdef double constant_at(self, double mean) noexcept nogil:
        return 0.5 * log((1.0 + mean) / (1.0 - mean))

    cdef double probability_at(self, double p) noexcept nogil:
        """Invert p = 1/2 log(P(+1)/P(-1)), which minimizes the mean loss over y = +-1."""
        return 1.0 / (1.0 + exp(-2.0 * p))


cdef class Novelty(Loss):
    """max(0, threshold - p): the one-class SVM's loss, which ignores the label.

    [Teo07] Table 1, "Novelty", whose slope is misprinted: it is 0 for p >= threshold.

    >>> loss = Novelty()
    >>> loss.value(0.25, 1), loss.slope(0.25, 1), loss.slope(1.0, 1)
    (0.75, -1.0, 0.0)
    """

    kind = "one-class"
    _names = ("threshold",)
    _examples = ((1.0,), (0.0,), (2.5,))
    cdef readonly double threshold

    def __cinit__(self, threshold=1.0):
        self.threshold = number("Novelty", "threshold", threshold, low=0.0)
        self.leaves_zero = self.threshold > 0.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(max(0.0, self.threshold - p))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return -1.0 if p < self.threshold else 0.0

    cdef double constant_at(self, double mean) noexcept nogil:
        return 0.0  # labels tell nothing

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * self.threshold if -1.0 <= a <= 0.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return -slope_until(1.0, max(0.0, self.threshold - p), b)
