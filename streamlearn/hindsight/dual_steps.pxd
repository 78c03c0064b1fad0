cimport cython

from streamlearn.hindsight.dual_problem cimport DualProblem


cdef class Ascent(DualProblem):
    cdef object orders
    cdef int* order
    cdef Py_ssize_t active, at
    cdef unsigned long long state
    cdef double sampled, sampled_weight, visited_weight
    cdef Py_ssize_t below(self, Py_ssize_t n) noexcept nogil
    cdef void sample(self, Py_ssize_t k, Py_ssize_t i, double p) noexcept nogil
    cdef void fetch_ahead(self, Py_ssize_t k) noexcept nogil


@cython.final
cdef class Batches(Ascent):
    cdef Py_ssize_t size, count
    cdef readonly double ceiling, beta
    cdef bint naive, adaptive
    cdef object found, marks
    cdef double* score
    cdef double* first
    cdef double* second
    cdef double* sum
    cdef double* other
    cdef long long* touched
    cdef unsigned char* mark
    cdef void batch(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef void careful(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef void answers(
        self, const int* picks, Py_ssize_t b, double beta, double* dual
    ) noexcept nogil
    cdef double step_of(self, Py_ssize_t i, double dual) noexcept nogil
    cdef void touch(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef double together(
        self, const int* picks, Py_ssize_t b, const double* dual, double* total
    ) noexcept nogil
    cdef double apart(self, const int* picks, Py_ssize_t b, const double* dual) noexcept nogil
    cdef double gain(
        self, const int* picks, Py_ssize_t b, const double* dual, double square
    ) noexcept nogil
    cdef void apply(
        self, const int* picks, Py_ssize_t b, const double* dual, double share
    ) noexcept nogil
