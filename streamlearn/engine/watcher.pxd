from streamlearn.row cimport Row


cdef class Watcher:
    """Told of every event that is learnt, with the scores before it was."""
    cdef double* scores
    cdef Py_ssize_t score_room
    cdef int make_room(self, Py_ssize_t outputs) except -1
    cdef void see(
        self, Row* row, const double* y, double weight, Py_ssize_t outputs, double penalty,
        double slope
    ) noexcept nogil
