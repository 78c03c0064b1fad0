cimport cython

from streamlearn.hindsight.dual_problem cimport DualProblem


cdef class DualAscent(DualProblem):
    cdef object orders
    cdef int* order
    cdef Py_ssize_t active, at
    cdef unsigned long long state
    cdef double sampled, sampled_weight, visited_weight
    cdef Py_ssize_t random_below(self, Py_ssize_t n) noexcept nogil
    cdef void sample_gap(self, Py_ssize_t k, Py_ssize_t i, double p) noexcept nogil
    cdef void prefetch_rows(self, Py_ssize_t k) noexcept nogil


@cython.final
cdef class BatchSteps(DualAscent):
    cdef Py_ssize_t size, count
    cdef readonly double safe_beta, beta
    cdef bint naive, adaptive
    cdef object found, marks
    cdef double* score
    cdef double* first
    cdef double* second
    cdef double* sum
    cdef double* other
    cdef long long* touched
    cdef unsigned char* mark
    cdef void take_batch(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef void safe_batch(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef void best_duals(
        self, const int* picks, Py_ssize_t b, double beta, double* dual
    ) noexcept nogil
    cdef double row_coefficient(self, Py_ssize_t i, double dual) noexcept nogil
    cdef void list_columns(self, const int* picks, Py_ssize_t b) noexcept nogil
    cdef double joint_square(
        self, const int* picks, Py_ssize_t b, const double* dual, double* total
    ) noexcept nogil
    cdef double separate_squares(
        self, const int* picks, Py_ssize_t b, const double* dual
    ) noexcept nogil
    cdef double dual_gain(
        self, const int* picks, Py_ssize_t b, const double* dual, double square
    ) noexcept nogil
    cdef void apply_steps(
        self, const int* picks, Py_ssize_t b, const double* dual, double share
    ) noexcept nogil
