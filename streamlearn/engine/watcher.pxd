from streamlearn.row cimport Row


cdef class Watcher:
    """Told of every event that is learnt, with the scores before it was."""
    cdef double* scores
    cdef int make_room(self, Py_ssize_t outputs) except -1
    cdef void see(
        self, Row* row, const double* y, double weight, Py_ssize_t outputs, double penalty
    ) noexcept nogil
