cdef double* at(array)


cdef class Compressed:
    """A CSR or CSC matrix of float64."""
    cdef readonly object first, features
    cdef readonly Py_ssize_t rows
    cdef object values, indices
    cdef double* data
    cdef int* index
    cdef long long* start


cdef class QuadraticModel:
    """A model on a working set of coordinates; see quadratic_model.pyx."""
    cdef readonly Py_ssize_t rows, size
    cdef readonly double l1, l2
    cdef readonly bint intercept
    cdef public object w, d, state
    cdef object g, curvatures, free_slopes, means, inverse
    cdef Compressed x
