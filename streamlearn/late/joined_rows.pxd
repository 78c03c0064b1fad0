cimport cython
from libc.stdint cimport int32_t, uint8_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.core.row cimport Row

cdef enum:  # the role of a row; Python has PREDICTED, LEARNED, TIMED_OUT and CORRECTED
    TO_PREDICT, TO_LEARN, TO_TIME_OUT, TO_CORRECT


@cython.final
cdef class JoinedRows(Events):
    cdef object role_array, ticket_array
    cdef Py_ssize_t row_capacity
    cdef uint8_t* role
    cdef int32_t* ticket
    cdef int add_row(self, Row* row, Tags* tags, Py_ssize_t known, int role, int ticket) except -1
