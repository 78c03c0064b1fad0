from streamlearn.penalties.order cimport Order
from streamlearn.core.row cimport soft
from streamlearn.core.parameters cimport Parameterized

# The statistic of the dual vector that a penalty needs.
cdef enum Statistic:
    NOTHING     # none: the weight depends on the slot's own number only
    NORM        # |s|_2
    POWER       # sum |s|^q
    ORDER       # |s| (or -s), sorted
    EVERYTHING  # all slots: a pass per event

# How a slot's sum of gradients s becomes its weight:
# w = scale * soft(s, threshold), or transform(shape, s, j) if a penalty needs another form.
ctypedef double (*Transform)(const Shape* shape, double s, Py_ssize_t j) noexcept nogil

cdef struct Shape:
    double threshold
    double scale
    Transform transform
    double p
    double q
    const double* table
    Py_ssize_t size


cdef inline void set_soft(Shape* shape, double threshold, double denominator) noexcept nogil:
    """Set the shape of argmin <s, w> + threshold |w|_1 + denominator / 2 |w|^2."""
    shape.transform = NULL
    shape.threshold = threshold
    shape.scale = -1.0 / denominator if denominator > 0.0 else 0.0


cdef inline double slot_weight(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    if shape.transform != NULL:
        return shape.transform(shape, s, j)
    return shape.scale * soft(s, shape.threshold)


cdef class DualVector:
    """The sums of gradients s_0 .. s_{n-1} of a rule, and the statistic that its penalty needs."""
    cdef double* cells
    cdef int width
    cdef Py_ssize_t n
    cdef Statistic statistic
    cdef bint signed_order
    cdef double q
    cdef double sum, peak, unit
    cdef double changes
    cdef Order order
    cdef void change(self, Py_ssize_t j, double old, double new) noexcept nogil
    cdef void refresh(self) noexcept nogil
    cdef int grow(self, double* cells, Py_ssize_t old, Py_ssize_t n, Py_ssize_t capacity) except -1
    cdef int rebuild(self) except -1


cdef class Penalty(Parameterized):
    cdef readonly double l1, l2, radius
    cdef Statistic statistic_for(self, double rho)
    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil
    cdef double coordinate_minimizer(self, double s, double a, double b) noexcept nogil
    cdef double repeat_prox(self, double w, double step, double k) noexcept nogil
    cdef double repeat_prox_sum(self, double w, double step, double k) noexcept nogil
