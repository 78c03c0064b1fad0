"""Matrices as rows: scipy CSR, usually without a copy, and dense arrays."""

from libc.float cimport DBL_MAX
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from streamlearn.core.memory cimport reallocate
from streamlearn.core.row cimport Row, squared

import numpy as np
import scipy.sparse

from streamlearn.errors import InvalidEventError


cdef class Rows:
    """The rows of a CSR matrix or a dense array, checked to be finite.

    CSR with 64-bit floats and 32-bit indices is read in place; other types are converted.
    """

    def __init__(self, X):
        self.sparse = scipy.sparse.issparse(X)
        X = X if self.sparse else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}")
        if X.shape[1] > INT_MAX:
            raise ValueError(f"X must have at most {INT_MAX} columns, got {X.shape[1]}")
        if self.sparse:
            X = canonical(X.tocsr())
            index = np.ascontiguousarray(X.indices, dtype=np.int32)
            start = np.ascontiguousarray(X.indptr, dtype=np.int64)
            self.slot_at = <int*><size_t>index.ctypes.data
            self.start = <int64_t*><size_t>start.ctypes.data
            self.longest = longest_row(start, len(index))
            self.keep = [X, index, start]
        else:
            self.longest, self.keep = X.shape[1], []
        self.n, self.columns = X.shape
        data = np.ascontiguousarray(as_floats(X.data if self.sparse else X), dtype=np.float64)
        self.value_at = <double*><size_t>data.ctypes.data
        self.keep.append(data)
        # if |x|^2 is finite, so are all numbers
        if not (self.sparse and self.sum_squares()):
            reject_nonfinite(X, data)
        self.slot = <int*>reallocate(NULL, (self.longest + 1) * sizeof(int))
        self.value = <double*>reallocate(NULL, (self.longest + 1) * sizeof(double))

    def __dealloc__(self):
        free(self.slot)
        free(self.value)

    cdef bint sum_squares(self) except -1:
        """Compute |x|^2 of every row of a CSR matrix, and return whether all are finite."""
        cdef Py_ssize_t i, a
        cdef bint finite = True
        squares = np.empty(self.n)
        self.square = <double*><size_t>squares.ctypes.data
        self.keep.append(squares)
        with nogil:
            for i in range(self.n):
                a = <Py_ssize_t>self.start[i]
                self.square[i] = squared(self.value_at + a, <Py_ssize_t>self.start[i + 1] - a)
                finite &= self.square[i] <= DBL_MAX
        return finite

    def map_columns(self, slots):
        """Map columns to these slots, -1 to omit one; columns in the same slot are summed."""
        if slots is not None:
            self.keep.append(slots)
            self.slots = <const int*><size_t>slots.ctypes.data
            self.square = NULL
            known = slots[slots >= 0]
            self.merges_slots = len(np.unique(known)) < len(known)

    cdef void build_row(self, Py_ssize_t i, Row* row) noexcept nogil:
        """Copy row i to the row buffer."""
        cdef Py_ssize_t k
        row.slot = self.slot
        row.value = self.value
        row.n = 0
        if self.sparse:
            for k in range(<Py_ssize_t>self.start[i], <Py_ssize_t>self.start[i + 1]):
                self.add_value(row, self.slot_at[k], self.value_at[k])
        else:
            for k in range(self.columns):
                if self.value_at[i * self.columns + k] != 0.0:
                    self.add_value(row, k, self.value_at[i * self.columns + k])
        row.square = squared(self.value, row.n)

    cdef inline void add_value(self, Row* row, Py_ssize_t column, double x) noexcept nogil:
        cdef int slot = <int>column if self.slots == NULL else self.slots[column]
        cdef Py_ssize_t k
        if slot < 0:
            return
        if self.merges_slots:
            for k in range(row.n):
                if self.slot[k] == slot:
                    self.value[k] += x
                    return
        self.slot[row.n] = slot
        self.value[row.n] = x
        row.n += 1


def canonical(X):
    """Return X with sorted, distinct columns; ValueError if an index is out of range."""
    start, index = X.indptr, X.indices
    if len(start) != X.shape[0] + 1 or longest_row(start, min(len(index), len(X.data))) < 0:
        raise ValueError("X is not a valid CSR matrix: its indptr does not match its indices")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    used = X.indices[: X.indptr[-1]]
    if len(used) and not (used.min() >= 0 and used.max() < X.shape[1]):
        raise ValueError(f"X is not a valid CSR matrix: indices must be below {X.shape[1]} columns")
    return X


cdef inline long long item(const void* numbers, bint short, Py_ssize_t i) noexcept nogil:
    return (<const int*>numbers)[i] if short else (<const long long*>numbers)[i]


def as_integers(array):
    """Return integers as a contiguous int32 or int64 array."""
    return np.ascontiguousarray(array, dtype=None if array.dtype == np.int32 else np.int64)


cdef const void* integers(array, bint* short) except? NULL:
    """Return the data pointer of an array from `as_integers`."""
    short[0] = array.dtype == np.int32
    return <const void*><size_t>array.ctypes.data


def longest_row(start, long long filled):
    """Return the length of the longest row, or -1 if the starts do not fit `filled` items."""
    start = as_integers(start)
    cdef bint short
    cdef const void* starts = integers(start, &short)
    cdef Py_ssize_t i, n = len(start) - 1
    cdef long long longest = 0, length, least = 0
    with nogil:
        for i in range(n):
            length = item(starts, short, i + 1) - item(starts, short, i)
            longest = max(longest, length)
            least = min(least, length)
        if item(starts, short, 0) != 0 or item(starts, short, n) > filled:
            least = -1
    return -1 if least < 0 else longest


def as_floats(data):
    """Return float64 or float32 unchanged, other numbers as float64."""
    if data.dtype == np.float64 or data.dtype == np.float32:
        return data
    if data.dtype.kind not in "fiub":
        raise InvalidEventError(f"X must hold numbers, got {data.dtype}")
    return data.astype(np.float64)


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__)
    __attribute__((optimize("O3")))  /* vectorised */
    #endif
    /* Whether all numbers are finite. The exponent of NaN and infinity is all ones, so adding one
       to the exponent of the absolute value reaches the sign bit; compilers vectorize this. */
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


def reject_nonfinite(X, data):
    """Raise InvalidEventError for the first NaN or infinity, with its row and column."""
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
    raise InvalidEventError(
        f"row {row}, column {column}: {flat[at]} is not a finite number", field=column
    )
