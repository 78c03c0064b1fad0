"""The shares of the members of a mixture, by exponentiated gradient.

    c_k += d_k,  V += sum pi_k d_k^2
    pi_k proportional to exp(-sqrt(ln K / V) c_k), then (1 - share) pi_k + share / K

where d_k is what member k cost more than the mixture at this event. The rate is that of
[CesaBianchi07].
"""

from libc.math cimport exp, sqrt

DEF SILENT = 0.3  # of an equal share


cdef inline void set_shares(
    int K, double log_K, double share, double* pi, const double* c, double V
) noexcept nogil:
    """Set the shares pi from the regrets c and their variance V."""
    cdef double least = c[0], rate, total = 0.0
    cdef int k
    if V <= 0.0:
        return
    rate = sqrt(log_K / V)
    for k in range(1, K):
        least = c[k] if c[k] < least else least
    for k in range(K):
        pi[k] = exp(rate * (least - c[k]))
        total += pi[k]
    for k in range(K):
        pi[k] = (1.0 - share) * pi[k] / total + share / K


cdef inline void reweigh(
    int K, double log_K, double share, const double* d, double* pi, double* c, double* V
) noexcept nogil:
    """Update the regrets, their variance and the shares after an event."""
    cdef double spread = 0.0
    cdef int k
    for k in range(K):
        c[k] += d[k]
        spread += pi[k] * d[k] * d[k]
    V[0] += spread
    set_shares(K, log_K, share, pi, c, V[0])


cdef inline void silence(int K, const double* pi, double* out) noexcept nogil:
    """Set `out` to the shares without those of members that are nearly 0, rescaled.

    So a mixture under l1 is exactly 0 where the members that matter are.
    """
    cdef double total = 0.0
    cdef int k
    for k in range(K):
        out[k] = pi[k] if pi[k] >= SILENT / K else 0.0
        total += out[k]
    for k in range(K):
        out[k] /= total
