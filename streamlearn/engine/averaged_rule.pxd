cimport cython

from streamlearn.losses.loss cimport Loss
from streamlearn.core.row cimport Row
from streamlearn.rules.average cimport Average
from streamlearn.rules.rule cimport Rule


@cython.final
cdef class AveragedRule:
    cdef readonly Rule rule
    cdef readonly Average average
    # whether the penalty is l1 |w|_1 + l2/2 |w|^2 for all weights that the rule can reach
    cdef bint simple
    cdef bint stays_finite  # the rule's state, whatever the row
    cdef int grow(self, Py_ssize_t n) except -1
    cdef double predict(self, Row* row) noexcept nogil
    cdef void before(self, Row* row) noexcept nogil
    cdef double learn(self, Row* row, Loss loss, double y, double weight) noexcept nogil
    cdef void after(self) noexcept nogil
    cdef inline double query(self, Row* row) noexcept nogil:
        return self.rule.query(row)
    cdef inline double query_and_predict(self, Row* row, double* shown) noexcept nogil:
        if self.average is None:
            return self.rule.query_and_predict(row, shown)
        shown[0] = self.average.score(row)
        return self.rule.query(row)
    cdef inline void update(self, Row* row, double slope) noexcept nogil:
        if self.average is not None:
            self.before(row)
        self.rule.update(row, slope)
        if self.average is not None or self.rule.needs_rebase:
            self.after()
    cdef double weight(self, Py_ssize_t j) noexcept nogil
    cdef double penalty(self, double* work) noexcept nogil


@cython.final
cdef class Minibatch:
    cdef readonly Py_ssize_t size, count
    cdef Py_ssize_t n, capacity, touched
    cdef double* sums
    cdef int* slot
    cdef double* value
    cdef bint* marked
    cdef int grow(self, Py_ssize_t n) except -1
    cdef void add(self, Row* row, double slope) noexcept nogil
    cdef bint complete(self) noexcept nogil
    cdef void take(self, Row* row) noexcept nogil
