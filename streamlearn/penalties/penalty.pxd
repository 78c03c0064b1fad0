from streamlearn.penalties.order cimport Order
from streamlearn.core.row cimport soft
from streamlearn.core.parameters cimport Parameterized

# What of the dual vector a penalty wants kept up to date.
cdef enum Watch:
    NOTHING     # its formula needs no more than the slot's own number
    NORM        # |s|_2
    POWER       # sum |s|^q
    ORDER       # |s| (or -s) in order
    EVERYTHING  # a pass over all slots per event

# How a slot's sum of gradients s becomes its weight:
# w = scale * soft(s, threshold), or bend(shape, s, j) where a penalty needs another form.
ctypedef double (*Bend)(const Shape* shape, double s, Py_ssize_t j) noexcept nogil

cdef struct Shape:
    double threshold
    double scale
    Bend bend
    double p
    double q
    const double* table
    Py_ssize_t size


cdef inline void set_soft(Shape* shape, double threshold, double denominator) noexcept nogil:
    """argmin <s, w> + threshold |w|_1 + denominator / 2 |w|^2, slot by slot."""
    shape.bend = NULL
    shape.threshold = threshold
    shape.scale = -1.0 / denominator if denominator > 0.0 else 0.0


cdef inline double read(const Shape* shape, double s, Py_ssize_t j) noexcept nogil:
    if shape.bend != NULL:
        return shape.bend(shape, s, j)
    return shape.scale * soft(s, shape.threshold)


cdef class DualVector:
    """The sums of gradients s_0 .. s_{n-1} of a rule, and what its penalty asks of them."""
    cdef double* cells
    cdef int width
    cdef Py_ssize_t n
    cdef Watch watch
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
    cdef Watch watches(self, double rho)
    cdef void shape(
        self, double a, double b, double rho, DualVector s, Shape* shape
    ) noexcept nogil
    cdef double coordinate(self, double s, double a, double b) noexcept nogil
    cdef double repeat(self, double w, double step, double k) noexcept nogil
    cdef double repeat_sum(self, double w, double step, double k) noexcept nogil
