"""Matrices as rows: scipy CSR without copies, and dense arrays."""

from libc.math cimport NAN
from libc.stdlib cimport free, malloc

from streamlearn.row cimport Row

import numpy as np
import scipy.sparse

from streamlearn.errors import BadEvent


cdef class Rows:
    """The rows of a CSR matrix or a dense array, checked to be finite.

    `slots` maps columns to slots (None: column j is slot j).
    """

    def __cinit__(self):
        self.slot = NULL
        self.value = NULL

    def __init__(self, X):
        if scipy.sparse.issparse(X):
            if X.ndim != 2:
                raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}")
            X = X.tocsr() if X.format != "csr" else X
            X = canonical(X)
            data = np.ascontiguousarray(real(X.data))
            index, start = np.ascontiguousarray(X.indices), np.ascontiguousarray(X.indptr)
            self.sparse = True
            self.keep = [X, data, index, start]
            if index.dtype == np.int32:
                self.short_index = <const int*><size_t>index.ctypes.data
            else:
                index = np.ascontiguousarray(index, dtype=np.int64)
                self.keep.append(index)
                self.long_index = <const long long*><size_t>index.ctypes.data
            if start.dtype == np.int32:
                self.short_start = <const int*><size_t>start.ctypes.data
            else:
                start = np.ascontiguousarray(start, dtype=np.int64)
                self.keep.append(start)
                self.long_start = <const long long*><size_t>start.ctypes.data
            self.longest = int(np.diff(start).max(initial=0))
        else:
            data = real(np.atleast_1d(np.asarray(X)))
            if data.ndim != 2:
                raise ValueError(f"X must have two dimensions, rows and columns, got {data.ndim}")
            data = np.ascontiguousarray(data)
            self.keep = [data]
            self.longest = data.shape[1]
            self.stride = data.shape[1]
        self.n, self.columns = X.shape if self.sparse else data.shape
        refuse_unfinite(X if self.sparse else data, data)
        if data.dtype == np.float64:
            self.doubles = <const double*><size_t>data.ctypes.data
        else:
            self.floats = <const float*><size_t>data.ctypes.data
        self.slot = <int*>malloc((self.longest + 1) * sizeof(int))
        self.value = <double*>malloc((self.longest + 1) * sizeof(double))
        if self.slot == NULL or self.value == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slot)
        free(self.value)

    def map(self, slots):
        """Columns are these slots; -1: not known, left out. Columns that meet add up."""
        if slots is not None:
            self.keep.append(slots)
            self.slots = <const int*><size_t>slots.ctypes.data
            known = slots[slots >= 0]
            self.meeting = len(np.unique(known)) < len(known)

    cdef void row(self, Py_ssize_t i, Row* row) noexcept nogil:
        """Row i; buffers of our own only where the matrix cannot be read as it lies."""
        cdef Py_ssize_t a, b, k
        cdef double x
        row.slot = self.slot
        row.value = self.value
        self.filled = 0
        if not self.sparse:
            a = i * self.stride
            for k in range(self.stride):
                x = self.doubles[a + k] if self.doubles != NULL else <double>self.floats[a + k]
                if x != 0.0:
                    self.put(k, x)
            row.n = self.filled
            return
        if self.short_start != NULL:
            a = self.short_start[i]
            b = self.short_start[i + 1]
        else:
            a = <Py_ssize_t>self.long_start[i]
            b = <Py_ssize_t>self.long_start[i + 1]
        if self.doubles != NULL and self.short_index != NULL and self.slots == NULL:
            row.n = b - a
            row.slot = self.short_index + a
            row.value = self.doubles + a
            return
        for k in range(a, b):
            x = self.doubles[k] if self.doubles != NULL else <double>self.floats[k]
            if self.short_index != NULL:
                self.put(self.short_index[k], x)
            else:
                self.put(<Py_ssize_t>self.long_index[k], x)
        row.n = self.filled

    cdef void put(self, Py_ssize_t column, double x) noexcept nogil:
        cdef int slot = <int>column if self.slots == NULL else self.slots[column]
        cdef Py_ssize_t k
        if slot < 0:
            return
        if self.meeting:
            for k in range(self.filled):
                if self.slot[k] == slot:
                    self.value[k] += x
                    return
        self.slot[self.filled] = slot
        self.value[self.filled] = x
        self.filled += 1


def canonical(X):
    """X with ascending columns and none twice; ValueError where they point outside of it."""
    start = X.indptr
    lengths = np.diff(start)
    if (
        len(start) != X.shape[0] + 1 or start[0] != 0 or (lengths < 0).any()
        or start[-1] > min(len(X.indices), len(X.data))
    ):
        raise ValueError("X is no CSR matrix: its indptr does not fit its indices")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        lengths = np.diff(X.indptr)
    # the columns of a row ascend, so its first and last tell of all
    filled = lengths > 0
    ends = X.indptr[1:][filled]
    outside = (X.indices[ends - lengths[filled]] < 0) | (X.indices[ends - 1] >= X.shape[1])
    if outside.any():
        raise ValueError(f"X is no CSR matrix: an index is not in its {X.shape[1]} columns")
    return X


def real(data):
    """float64 or float32 as they are, other numbers as float64."""
    if data.dtype == np.float64 or data.dtype == np.float32:
        return data
    if data.dtype.kind not in "fiub":
        raise BadEvent(f"X must hold numbers, got {data.dtype}")
    return data.astype(np.float64)


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Whether no number is NaN or infinite. Their exponents are all ones, so adding one to the
       exponent of the absolute value reaches the sign bit; compilers take two or four at a time. */
    static inline int streamlearn_all_finite(const double *x, ptrdiff_t n) {
        const uint64_t size = 0x7fffffffffffffffu, one = 0x0010000000000000u;
        uint64_t seen = 0, bits;
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(&bits, x + i, 8);
            seen |= (bits & size) + one;
        }
        return !(seen >> 63);
    }
    """
    bint all_finite "streamlearn_all_finite"(const double* x, Py_ssize_t n) noexcept nogil


def codes_of_numbers(y, labels, codes):
    """What stands in `codes` at the place of each number in `labels`; NaN for others."""
    y = np.ascontiguousarray(y, dtype=np.float64)
    out = np.empty(len(y))
    table = np.array([labels, codes], dtype=np.float64)
    cdef const double* label = <const double*><size_t>y.ctypes.data
    cdef const double* known = <const double*><size_t>table.ctypes.data
    cdef double* code = <double*><size_t>out.ctypes.data
    cdef Py_ssize_t i, k, n = len(y), m = len(labels)
    with nogil:
        for i in range(n):
            code[i] = NAN
            for k in range(m):
                if label[i] == known[k]:
                    code[i] = known[m + k]
                    break
    return out


def refuse_unfinite(X, data):
    """BadEvent for the first NaN or infinity, with its row and column."""
    flat = data.ravel()
    if flat.dtype == np.float64:
        if all_finite(<const double*><size_t>flat.ctypes.data, flat.size):
            return
    bad = np.flatnonzero(~np.isfinite(flat))
    if len(bad) == 0:
        return
    at = int(bad[0])
    if scipy.sparse.issparse(X):
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = divmod(at, data.shape[1])
    raise BadEvent(f"row {row}, column {column}: {flat[at]} is not a finite number", field=column)
