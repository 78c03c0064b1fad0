"""Step size schedules c, c / sqrt t and c / t; t = 1 at the first event."""

from libc.math cimport log, sqrt

from streamlearn.core.parameters cimport Parameterized

from streamlearn.core.parameters import number


cdef class Schedule(Parameterized):
    """A step size for every event t = 1, 2, ...

    >>> InverseSqrt(0.5)(4)
    0.25
    """

    _names = ("c",)

    def __init__(self, c):
        self.c = number(type(self).__name__, "c", c, above=0.0)

    cdef double at(self, double t) noexcept nogil:
        return 0.0

    cdef double total(self, double t) noexcept nogil:
        """Return the sum of the steps 1..t, in O(1)."""
        return 0.0

    def __call__(self, t):
        return self.at(t)

    def sum_to(self, t):
        """Return the sum of the steps 1..t.

        >>> InverseSqrt(1.0).sum_to(2) == 1 + 2 ** -0.5
        True
        """
        return self.total(t)


cdef class Constant(Schedule):
    """The same step c at every event."""

    cdef double at(self, double t) noexcept nogil:
        return self.c

    cdef double total(self, double t) noexcept nogil:
        return self.c * t


# From t = START on, Euler-Maclaurin is exact to the last digit; below, the sum itself is short.
DEF START = 24


cdef class InverseSqrt(Schedule):
    """c / sqrt t: the step of online gradient descent for convex losses."""

    cdef double at(self, double t) noexcept nogil:
        return self.c / sqrt(t)

    cdef double total(self, double t) noexcept nogil:
        cdef double s = 0.0, r, u
        cdef int i
        if t < START:
            for i in range(1, <int>t + 1):
                s += 1.0 / sqrt(<double>i)
            return self.c * s
        r = sqrt(t)
        u = 1.0 / (t * t)
        # 2 sqrt t + zeta(1/2) + t^-0.5 / 2 - t^-1.5 / 24 + t^-3.5 / 384 - t^-5.5 / 1024
        s = 2.0 * r - 1.4603545088095868
        return self.c * (s + (0.5 - (1.0 / 24.0 - u * (1.0 / 384.0 - u / 1024.0)) / t) / r)


cdef class Inverse(Schedule):
    """c / t: the step for strongly convex objectives."""

    cdef double at(self, double t) noexcept nogil:
        return self.c / t

    cdef double total(self, double t) noexcept nogil:
        cdef double s = 0.0, u
        cdef int i
        if t < START:
            for i in range(1, <int>t + 1):
                s += 1.0 / i
            return self.c * s
        u = 1.0 / (t * t)
        # ln t + Euler's constant + 1/(2t) - 1/(12 t^2) + 1/(120 t^4) - 1/(252 t^6)
        s = log(t) + 0.5772156649015329 + 0.5 / t
        return self.c * (s - u * (1.0 / 12.0 - u * (1.0 / 120.0 - u / 252.0)))


def schedule(owner, step):
    """Return `step` as a schedule; a number means a constant step."""
    return step if isinstance(step, Schedule) else Constant(number(owner, "step", step, above=0.0))
