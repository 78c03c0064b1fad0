from streamlearn.penalties.penalty cimport DualVector, Penalty, Shape
from streamlearn.core.row cimport Row
from streamlearn.rules.recorded_steps cimport RecordedSteps


cdef class Dual(RecordedSteps):
    cdef DualVector vector
    cdef Penalty geometry
    cdef Shape shape
    cdef readonly double rho
    cdef double q             # gradients are measured in the q-norm
    cdef double modulus       # the strong convexity of h in the dual norm
    cdef double sigma         # the strong convexity of Psi, relative to `modulus`
    cdef bint tracks_statistic
    cdef bint l1_l2_only           # nothing to watch: the penalty is its two strengths
    cdef bint sums_bound      # the regret bound sums up something at every step
    cdef double a, b          # a_t and b_t as of the last step
    cdef public double largest_gradient, bound_sum, slots_at_start
    cdef public double charged     # penalties that all slots have paid besides those of t events
    cdef void coefficients(self, double* a, double* b) noexcept nogil
    cdef double gradient_norm(self, Row* row) noexcept nogil
    cdef void add(self, Row* row, double slope) noexcept nogil
    cdef void reshape(self) noexcept nogil
    cdef void reshape_l1_l2(self) noexcept nogil
    cdef void add_to_bound(self, double gradient) noexcept nogil
