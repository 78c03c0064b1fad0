"""Coordinate descent on a quadratic model of a risk, column by column.

The model at w is <g, d> + 1/2 sum_i h_i <x_i, d>^2 + sum_j (l1_j |w_j + d_j| + l2_j/2 d_j^2), where
g is the gradient including l2, and h_i is the curvature of row i.
"""

from libc.math cimport fabs

from streamlearn.core.row cimport soft

import numpy as np


cdef double* at(array):
    return <double*><size_t>array.ctypes.data


cdef class ColumnMatrix:
    """The columns of a CSC matrix of float64 with 32-bit indices."""
    cdef object keep
    cdef const double* data
    cdef const int* index
    cdef const long long* first

    def __init__(self, X):
        first = np.ascontiguousarray(X.indptr, dtype=np.int64)
        data, index = np.ascontiguousarray(X.data, float), np.ascontiguousarray(X.indices, np.int32)
        self.keep = (data, index, first)
        self.data = at(data)
        self.index = <const int*><size_t>index.ctypes.data
        self.first = <const long long*><size_t>first.ctypes.data

    def curvatures(self, columns, h, l2):
        """Return the model's curvature along each of these coordinates."""
        cdef Py_ssize_t k, n = len(columns)
        cdef long long e
        cdef const long long* column = <const long long*><size_t>columns.ctypes.data
        cdef const double* row_curvature = at(h)
        cdef const double* ridge = at(l2)
        result = np.empty(n)
        cdef double* out = at(result)
        cdef double total
        with nogil:
            for k in range(n):
                total = ridge[column[k]]
                for e in range(self.first[column[k]], self.first[column[k] + 1]):
                    total += row_curvature[self.index[e]] * self.data[e] * self.data[e]
                out[k] = total
        return result

    def descend(self, columns, curvatures, g, h, l1, l2, w, d, moved):
        """Minimize along each coordinate in turn; return the largest slope that was removed.

        `d` is the step so far; `moved` holds h_i <x_i, d>, curvatures times scores of d.
        """
        cdef Py_ssize_t k, j, n = len(columns)
        cdef long long e
        cdef const long long* column = <const long long*><size_t>columns.ctypes.data
        cdef const double* curvature = at(curvatures)
        cdef const double* slope = at(g)
        cdef const double* row_curvature = at(h)
        cdef const double* strength = at(l1)
        cdef const double* ridge = at(l2)
        cdef const double* weight = at(w)
        cdef double* step = at(d)
        cdef double* score = at(moved)
        cdef double here, rise, change, largest = 0.0
        with nogil:
            for k in range(n):
                j = <Py_ssize_t>column[k]
                if not curvature[k] > 0.0:
                    continue
                rise = slope[j] + ridge[j] * step[j]
                for e in range(self.first[j], self.first[j + 1]):
                    rise += self.data[e] * score[self.index[e]]
                here = weight[j] + step[j]
                change = soft(here - rise / curvature[k], strength[j] / curvature[k]) - here
                if change == 0.0:
                    continue
                largest = max(largest, curvature[k] * fabs(change))
                step[j] += change
                for e in range(self.first[j], self.first[j + 1]):
                    score[self.index[e]] += change * row_curvature[self.index[e]] * self.data[e]
        return largest
