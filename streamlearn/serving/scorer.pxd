from streamlearn.core.row cimport Row

cdef struct Form:  # how a score is computed from the numbers of an event's slots
    int kind
    int weight, largest, inverse, absolute, wealth, kept, ridge  # columns of the table
    double factor, low, high, beta, least, most
    Py_ssize_t first, count  # members of a mixture


cdef class Scorer:
    cdef readonly Py_ssize_t slots, outputs
    cdef tuple arrays  # the owners of the memory below
    cdef const double* table
    cdef const double* intercept  # numbers of an intercept that is a feature; NULL for none
    cdef const double* free_intercept  # added to each output; NULL for none
    cdef double* nothing  # the numbers of a slot that is not stored
    cdef const int* stored  # the slot of each row of the table; NULL if it has all
    cdef const unsigned int* index
    cdef unsigned int mask
    cdef int width, shift
    cdef Form* form
    cdef double* share
    cdef Py_ssize_t forms

    cdef int read_form(self, Py_ssize_t i, object form) except -1
    cdef const double* numbers_of(self, int slot) noexcept nogil
    cdef int score_row(self, Row* row, double* out) except -1 nogil
    cdef double evaluate(
        self, Py_ssize_t i, const double** cell, const double* value, Py_ssize_t n
    ) noexcept nogil
    cdef double weight_in(self, Py_ssize_t i, const double* cell) noexcept
