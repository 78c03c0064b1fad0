# cython: auto_pickle=False
"""Losses of the margin m = y p, y in {-1, +1}, and Novelty, whose margin is p ([Teo07], Table 1).

In a margin the slope is -y s with s >= 0, and a step of length b leads from m to m + s b.
"""

from libc.math cimport INFINITY, exp, expm1, fabs, log, log1p, sqrt

from streamlearn.losses.loss cimport (
    LAST_EXPONENT,
    Few,
    Loss,
    entropy,
    exponential,
    exponential_curvature,
    exponential_slope,
    finite,
    log_growth,
    until,
)

from streamlearn.losses.checks import limited


cdef class MarginLoss(Loss):
    """A loss of the margin y p."""

    cdef bint admits(self, double y) noexcept nogil:
        return y == 1.0 or y == -1.0


cdef class Hinge(MarginLoss):
    """max(0, threshold - y p): the soft margin of SVMs; with threshold 0, the perceptron's loss.

    [Teo07] Table 1, "Hinge" (threshold 0) and "Soft Margin" (threshold 1). At y p = threshold the
    slope is 0, save for threshold 0: there it is -y, or the perceptron would never leave w = 0.

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
        self.threshold = limited(threshold, "threshold", 0.0)
        self.ball_proved = self.threshold <= 1.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(max(0.0, self.threshold - y * p))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        cdef double margin = y * p
        if margin < self.threshold or margin == self.threshold == 0.0:
            return -y
        return 0.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * y * self.threshold if 0.0 <= -a * y <= 1.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        if b == 0.0:
            return slope
        return -y * until(1.0, max(0.0, self.threshold - y * p), b)


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
        self.threshold = limited(threshold, "threshold", 0.0)
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

    cdef double probability_at(self, double p) noexcept nogil:
        """Its mean over +-1 is least where p = threshold (2 P(+1) - 1)."""
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

    /* What two doubles differ by, as bits. */
    static inline uint64_t streamlearn_apart(double a, double b) {
        uint64_t one, other;
        memcpy(&one, &a, 8);
        memcpy(&other, &b, 8);
        return one ^ other;
    }

    /* The weighted sum of logistic losses; NaN if a slope is. No branch hangs on the data, which
       could not be foreseen, so that compilers take two or more rounds of a loop at a time. */
    STREAMLEARN_VECTORS
    static double streamlearn_logistic(
        const double *score, const double *label, const double *weight, const double *slope,
        int n
    ) {
        double lead[STREAMLEARN_FEW], growth[STREAMLEARN_FEW];
        uint64_t apart = 0;
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
            apart |= streamlearn_apart(weight[i], weight[0]);
        for (int i = n; i < STREAMLEARN_FEW; i++)
            lead[i] = growth[i] = 0.0;
        if (apart)
            for (int i = 0; i < n; i++) {
                lead[i] += weight[i] * log1p(growth[i]);
                growth[i] = 0.0;
            }
        /* sums, and products of 1 + growth less 1, in pairs */
        for (int half = STREAMLEARN_FEW / 2; half > 0; half /= 2)
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


cdef inline double logistic_sum(const Few* few) noexcept nogil:
    return summed(few.score, few.label, few.weight, few.slope, few.n)


cdef double long_step(double margin, double b) noexcept nogil:
    """About the s with s = 1/(1 + e^z), z = m + s b, where b is large: z + log(z - m) = log b."""
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

    cdef double sum_of(self, const Few* few) noexcept nogil:
        """Of each margin m max(0, -m) + log(1 + e^-|m|), one logarithm for all.

        The slope knows e^-|m|: its size is s = 1 / (1 + e^m).
        """
        cdef double total = logistic_sum(few)
        cdef Few known
        cdef int i
        if total == total:
            return total
        known = few[0]  # with the slopes that were missing
        for i in range(known.n):
            known.slope[i] = Logistic.slope_at(self, known.score[i], known.label[i])
        return logistic_sum(&known)

    cdef double curvature_at(self, double p, double y) noexcept nogil:
        cdef double e = exp(-fabs(p))
        return e / ((1.0 + e) * (1.0 + e))

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        """The entropy of (u, 1 - u) with u = -a y."""
        cdef double u = -a * y
        if not 0.0 <= u <= 1.0:
            return INFINITY
        return entropy(u) + (1.0 - u) * log1p(-u) if u < 1.0 else 0.0

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        """s = 1/(1 + e^(m + s b)) by Halley's method: two or three rounds, as a rule.

        From s = 0; of a long step, from where e^-z takes the place of 1/(1 + e^z).
        """
        cdef double margin = y * p, s = 0.0, step, pull = -y * slope, bend, ascent
        cdef int turn
        if b > 4.0:
            s = long_step(margin, b)
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
            # The order is three: the next step would be below rounding.
            if fabs(step) <= 1e-5 * s and fabs(step) * b <= 1e-5:
                return -y * s
        return Loss.implicit_at(self, p, y, b, slope)

    cdef double flow_at(self, double p, double y, double b, double slope) noexcept nogil:
        """m' + e^m' = m + e^m + b; far out the slope is 1 or e^-m."""
        cdef double margin = y * p
        cdef double lead = max(0.0, LINEAR - margin)
        if b < 1e-17:
            return slope
        if margin > EXPONENTIAL:
            return -y * log_growth(exp(-margin), b)
        if b <= lead:
            return -y
        return -y * ((lead + logistic_rise(max(margin, LINEAR), b - lead)) / b)

    cdef double probability_at(self, double p) noexcept nogil:
        return 1.0 / (1.0 + exp(-p))


cdef enum:
    FIRST = -4  # where the table of z(c) begins
    FINEST = 4  # nodes in a unit of c
    NODES = 257

cdef struct Node:
    double z  # with z + e^z = c
    double pace  # dz/dc = 1/(1 + e^z), from a node to the next

cdef Node[NODES] NODE


cdef int lay_nodes() except -1:
    cdef double z = FIRST
    cdef int k, _turn
    for k in range(NODES):
        for _turn in range(20):  # Newton's, from the node before
            z -= (z + exp(z) - (FIRST + k / <double>FINEST)) / (1.0 + exp(z))
        NODE[k] = Node(z, 1.0 / (FINEST * (1.0 + exp(z))))
    return 0


lay_nodes()


cdef inline double landing(double c) noexcept nogil:
    """z with z + e^z = c, to 1e-6: the cubic through two nodes."""
    cdef double x = (c - FIRST) * FINEST
    cdef int k = min(<int>x, NODES - 2)
    cdef double t = x - k, rise = NODE[k + 1].z - NODE[k].z
    return NODE[k].z + t * (
        rise + (1.0 - t) * ((NODE[k].pace - rise) * (1.0 - t) + (rise - NODE[k + 1].pace) * t)
    )


cdef inline double one_step(
    double margin, double e, double b, double d, double* step
) noexcept nogil:
    """Halley's step from d, which is > 0 and, on the way, not far above the root."""
    cdef double growth, ascent
    if d < 0.1:
        # e^d - 1, without loss
        growth = e * d * (1.0 + d * (1.0 / 2.0 + d * (1.0 / 6.0 + d * (1.0 / 24.0 + d * (
            1.0 / 120.0 + d * (1.0 / 720.0 + d * (1.0 / 5040.0 + d * (
                1.0 / 40320.0 + d / 362880.0))))))))
    else:
        growth = exp(margin + d) - e
    ascent = 1.0 + e + growth
    step[0] = (d + growth - b) / ascent
    step[0] /= 1.0 - 0.5 * step[0] * (e + growth) / ascent
    return d - step[0]


cdef double logistic_rise(double margin, double b) noexcept nogil:
    """The d >= 0 with d + e^m (e^d - 1) = b, |m| <= 37: Halley's method.

    In d, not in z = m + d, so that a small b loses nothing. A start that is right to 1e-6 needs one
    step: the place on the parabola for a short way, the table for z + e^z = m + e^m + b else.
    """
    cdef double e = exp(margin)
    cdef double pace = 1.0 + e
    cdef double c = margin + e + b
    cdef double d, step
    cdef int _turn
    if b <= 0.02 * pace:
        d = 2.0 * b / (pace + sqrt(pace * pace + 2.0 * e * b))
        return one_step(margin, e, b, d, &step)
    if FIRST <= c <= FIRST + (NODES - 1) // FINEST:
        return one_step(margin, e, b, landing(c) - margin, &step)
    b = min(b, 1e307)  # keeps e^(m + d) finite
    d = b / pace
    if d > 1.0:
        d = min(d, log(b + e) - margin)
    for _turn in range(100):
        d = one_step(margin, e, b, d, &step)
        if fabs(step) <= 1e-6 * min(d, 1.0):
            break
    return d


cdef class Exponential(MarginLoss):
    """exp(-y p): boosting's loss. [Teo07] Table 1, "Exponential".

    Below the margin -700 it goes on along its tangent, so that its slope stays finite.

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
        """e^m' = e^m + b, after the tangent."""
        cdef double speed = exponential_slope(-y * p)
        cdef double lead = max(0.0, -y * p - LAST_EXPONENT)
        cdef double rest = b - lead / speed if lead > 0.0 else b
        if rest <= 0.0:
            return -y * speed
        return -y * (lead / b + rest / b * log_growth(speed, rest))

    cdef double probability_at(self, double p) noexcept nogil:
        """Its mean over +-1 is least where p = 1/2 log(P(+1)/P(-1))."""
        return 1.0 / (1.0 + exp(-2.0 * p))


cdef class Novelty(Loss):
    """max(0, threshold - p): the one-class SVM's loss; the label is not read.

    [Teo07] Table 1, "Novelty", whose slope is misprinted: it is 0 from p = threshold on.

    >>> loss = Novelty()
    >>> loss.value(0.25, 1), loss.slope(0.25, 1), loss.slope(1.0, 1)
    (0.75, -1.0, 0.0)
    """

    kind = "one-class"
    _names = ("threshold",)
    _examples = ((1.0,), (0.0,), (2.5,))
    cdef readonly double threshold

    def __cinit__(self, threshold=1.0):
        self.threshold = limited(threshold, "threshold", 0.0)
        self.leaves_zero = self.threshold > 0.0

    cdef double value_at(self, double p, double y) noexcept nogil:
        return finite(max(0.0, self.threshold - p))

    cdef double slope_at(self, double p, double y) noexcept nogil:
        return -1.0 if p < self.threshold else 0.0

    cdef double conjugate_at(self, double a, double y) noexcept nogil:
        return a * self.threshold if -1.0 <= a <= 0.0 else INFINITY

    cdef double implicit_at(self, double p, double y, double b, double slope) noexcept nogil:
        return -until(1.0, max(0.0, self.threshold - p), b)
