from streamlearn.engine.learner cimport Learner
from streamlearn.features.reader cimport Reader


cdef class Model:
    cdef readonly Reader reader
    cdef public Learner learner
    # the normaliser of a simplex runs over all slots known, an event's own included
    cdef bint grows_when_scored
    cdef int idle(self) except -1
    cdef int read(self, event) except -1
