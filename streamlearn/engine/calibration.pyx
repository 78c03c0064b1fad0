"""Online calibration: two numbers that turn the score of a classifier into log-odds.

The probability is that of `scale` s + `shift`, where s is the score before the event is learned. A
line is fitted to the events so far by online Newton steps on the log-loss, from the line s itself,
and forgets slowly. How much of it is used is decided by its gain: the sum of the log-loss at s
minus the log-loss at the line is the log-odds of using it. So it costs nearly nothing where s is
calibrated, and helps soon where it is not.
"""

cimport cython
from libc.math cimport exp, log1p

cdef double PRIOR = 3.0  # information on the line s, in units of events near the decision
cdef double MEMORY = 3000.0  # events that the line remembers
cdef double START = -2.0  # log-odds of using the line
cdef double MOST = 8.0  # log-odds of using it, or not, so that it can change
cdef double LEAST_CURVATURE = 1e-3
cdef double STEEPEST = 20.0  # slope, or its inverse


cdef inline double log_loss(double margin) noexcept nogil:
    """Return log(1 + exp(-margin))."""
    if margin > 0.0:
        return log1p(exp(-margin))
    return log1p(exp(margin)) - margin


cdef inline double logistic(double s) noexcept nogil:
    if s > 0.0:
        return 1.0 / (1.0 + exp(-s))
    return exp(s) / (1.0 + exp(s))


@cython.final
cdef class Calibration:
    """A line from scores to log-odds.

    >>> line = Calibration()
    >>> for k in range(3000):  # the log-odds are half of the score
    ...     line.update(2.2, 1.0 if k % 4 else -1.0)
    ...     line.update(-2.2, -1.0 if k % 4 else 1.0)
    >>> round(line.scale, 1), abs(round(line.shift, 1))
    (0.5, 0.0)
    """

    def __init__(self):
        self.slope, self.offset, self.trust = 1.0, 0.0, START
        self.ss = self.s1 = self.one = 0.0
        self.set_line()

    cdef int set_line(self) except? -1 nogil:
        """Set `scale` and `shift`, between the score itself and the line."""
        cdef double share = logistic(self.trust)
        self.scale = 1.0 + share * (self.slope - 1.0)
        self.shift = share * self.offset
        return 0

    cdef void learn(self, double score, double y, double weight) noexcept nogil:
        """Learn the label, above 0 for the positive one, of a score."""
        cdef double sign = 1.0 if y > 0.0 else -1.0
        cdef double z = self.slope * score + self.offset
        cdef double p = logistic(z)
        cdef double h = p * (1.0 - p)
        cdef double keep = 1.0 - 1.0 / MEMORY
        cdef double error = weight * (p - (1.0 if y > 0.0 else 0.0))
        cdef double a, b, c, determinant
        self.trust += weight * (log_loss(sign * score) - log_loss(sign * z))
        self.trust = min(max(self.trust, -MOST), MOST)
        h = weight * max(h, LEAST_CURVATURE)
        self.ss = keep * self.ss + h * score * score
        self.s1 = keep * self.s1 + h * score
        self.one = keep * self.one + h
        a, b, c = self.ss + PRIOR, self.s1, self.one + PRIOR
        determinant = a * c - b * b
        self.slope -= error * (c * score - b) / determinant
        self.offset -= error * (a - b * score) / determinant
        self.slope = min(max(self.slope, 1.0 / STEEPEST), STEEPEST)
        self.set_line()

    def update(self, double score, double y, double weight=1.0):
        """Learn the label of a score, 1 or -1."""
        self.learn(score, y, weight)

    def swap_classes(self):
        """Swap the two classes: scores change their sign."""
        self.offset, self.s1 = -self.offset, -self.s1
        self.set_line()

    def state(self):
        return {
            "slope": self.slope, "offset": self.offset, "trust": self.trust,
            "information": [self.ss, self.s1, self.one],
        }

    def restore(self, state):
        self.slope, self.offset, self.trust = state["slope"], state["offset"], state["trust"]
        self.ss, self.s1, self.one = state["information"]
        self.set_line()
