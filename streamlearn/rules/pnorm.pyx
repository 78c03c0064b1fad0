"""p-norm regularized dual averaging: [Xiao10] section 7.2.

With h(w) = |w|_p^2 / (2 (p - 1)) and beta_t = gamma sqrt t, the weights are

    w = theta^{-1}(ghat),   ghat_j = -(p-1) sqrt t / gamma * soft(gbar_j, lambda).
"""

from libc.math cimport fmax, log

from streamlearn.penalties.geometries cimport LpSquared
from streamlearn.rules.dual cimport Dual
from streamlearn.rules.dual_averaging cimport DualAveraging

from streamlearn.rules.requirements import l1_only
from streamlearn.core.parameters import number


cdef class PNormDualAveraging(DualAveraging):
    """RDA in the p-norm ([Xiao10] section 7.2): for dense features and few relevant ones.

    `p=None` means the conjugate exponent q = max(2, ln n), where n is the current number of slots.
    Without l1, sum |s|^q is updated incrementally: O(d) per event, and O(n) when n changes q. With
    l1, the norm of the truncated vector needs a pass over all slots: O(n) per event.
    """

    _names = ("gamma", "p")
    _examples = ((), (0.5, 1.5), (1.0, 2.0))
    needs = (l1_only,)
    cdef readonly object p
    cdef LpSquared norm

    def __init__(self, gamma=1.0, p=None):
        DualAveraging.__init__(self, gamma)
        self.p = p if p is None else number("PNormDualAveraging", "p", p, above=1.0, high=2.0)

    def start(self):
        self.norm = LpSquared(0.0, 2.0 if self.p is None else self.p)
        self.norm.l1 = self.penalty.l1
        self.geometry = self.norm
        DualAveraging.start(self)

    cdef int grow(self, Py_ssize_t n) except -1:
        if n <= self.n:
            return 0
        Dual.grow(self, n)
        if self.p is None:
            self.norm.set_q(fmax(2.0, log(<double>self.n)))
            self.q = self.norm.q
            self.vector.q = self.norm.q
            if self.tracks_statistic:
                self.vector.refresh()
            self.reshape()
        return 0

    def domain_changed(self):
        if self.p is None and self.t > 0.0 and self.slots_at_start != self.n:
            return "p changed with the number of slots; set p, or use learn_rows"
        return None
