"""One example as every learner sees it: slots and their values."""

cdef struct Row:
    Py_ssize_t n
    const int* slot
    const double* value
