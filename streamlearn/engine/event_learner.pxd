from streamlearn.engine.row_learner cimport RowLearner
from streamlearn.features.reader cimport Reader


cdef class EventLearner:
    cdef public Reader reader
    cdef public RowLearner learner
    # the learner's number for each known label; None if labels are numbers
    cdef public dict codes
    cdef object columns  # reads batches of columns; None before the first
    # a simplex is normalized over all known slots, including those of the scored event
    cdef bint grows_when_scored
    cdef Py_ssize_t score_room
    cdef double* scores
    cdef double* score(self, event) except NULL
    cdef int check_idle(self) except -1
    cdef int read(self, event) except -1
    cdef int add_slots(self, const double* y, double weight) except -1
    cdef int learn_labels(self, event, const double* y, double weight) except -1
