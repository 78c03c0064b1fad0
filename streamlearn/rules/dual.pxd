from streamlearn.penalties.penalty cimport DualVector, Penalty, Shape
from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule


cdef class Dual(Rule):
    cdef DualVector vector
    cdef Penalty geometry
    cdef Shape shape
    cdef readonly double rho
    cdef double q             # gradients are measured in the q-norm ..
    cdef double modulus       # .. and in its dual norm h has this modulus,
    cdef double sigma         # Psi sigma times as much
    cdef bint watching
    cdef bint plain           # nothing to watch: the penalty is its two strengths
    cdef bint accounting      # the regret bound sums up something at every step
    cdef double a, b          # a_t and b_t as of the last step
    cdef public double largest_gradient, spent, slots_at_start
    cdef void coefficients(self, double* a, double* b) noexcept nogil
    cdef double gradient_norm(self, Row* row) noexcept nogil
    cdef void add(self, Row* row, double slope) noexcept nogil
    cdef void reshape(self) noexcept nogil
    cdef void soften(self) noexcept nogil
    cdef void account(self, double gradient) noexcept nogil
