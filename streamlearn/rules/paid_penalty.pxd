"""The sum of gradients of a slot that has paid its penalty more often than the others.

Dual rules minimize  s w + t Psi(w) + b w^2 / 2 + rho |w|  with one t for all slots. A slot whose
penalty counts t + e times has the same minimizer at t if the gradients of the other e penalties,
at that minimizer, are added to s.
"""

from libc.math cimport fabs


cdef inline double with_penalty(
    double s, double t, double e, double l1, double l2, double b, double rho
) noexcept nogil:
    """Return s with e more penalties l1 |w| + l2 w^2 / 2 in it."""
    cdef double limit = t * l1 + rho, more = limit + e * l1, excess = fabs(s) - more, size
    if e == 0.0 or s == 0.0:
        return s
    if excess <= 0.0:  # as near to the limit as before
        return s * limit / more
    size = limit + (t * l2 + b) * excess / ((t + e) * l2 + b)
    return size if s > 0.0 else -size
