"""Quadratic models of a risk on a working set of features, and coordinate descent on them.

At w, with the gradient g including l2 and the curvatures h_i of the rows, the model is

    <g, d> + 1/2 sum_i h_i <x_i, d>^2 + sum_j (l1 (|w_j + d_j| - |w_j|) + l2/2 d_j^2)

without penalties on the intercept, the last coordinate. `ColumnModel` passes over the columns;
`GramModel` first computes the matrix of the quadratic form, after which a coordinate costs as many
operations as there are features, however many rows there are.
"""

cimport cython
from libc.math cimport fabs

from streamlearn.core.row cimport soft
from streamlearn.hindsight.passes cimport RowMatrix

import numpy as np

cdef double LAZY = 0.1  # relative change of a curvature that GramModel ignores


cdef double* at(array):
    return <double*><size_t>array.ctypes.data


cdef class Compressed:
    """A CSR or CSC matrix of float64."""

    def __init__(self, Py_ssize_t rows, features, first):
        """`first`: where each row or column begins, and the end, with space for one entry more."""
        self.rows, self.features, self.first = rows, features, first
        self.start = <long long*><size_t>first.ctypes.data
        self.values, self.indices = np.empty(first[-1] + 1), np.empty(first[-1] + 1, dtype=np.int32)
        self.data, self.index = at(self.values), <int*><size_t>self.indices.ctypes.data

    def by_columns(self):
        """Return rows as columns."""
        cdef Py_ssize_t i
        cdef long long e, k
        first = np.zeros(len(self.features) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.indices[:-1], minlength=len(self.features)), out=first[1:])
        cdef Compressed columns = Compressed(self.rows, self.features, first)
        ends = first[:-1].copy()
        cdef long long* end = <long long*><size_t>ends.ctypes.data
        with nogil:
            for i in range(self.rows):
                for e in range(self.start[i], self.start[i + 1]):
                    k = end[self.index[e]]
                    end[self.index[e]] += 1
                    columns.data[k] = self.data[e]
                    columns.index[k] = <int>i
        return columns


def selected_rows(RowMatrix X, features, Py_ssize_t entries):
    """Return the rows of the columns `features`, in ascending order, with so many entries."""
    cdef Py_ssize_t i
    places = np.full(X.columns, -1, dtype=np.int32)
    places[features] = np.arange(len(features), dtype=np.int32)
    cdef const int* place = <const int*><size_t>places.ctypes.data
    first = np.zeros(X.rows + 1, dtype=np.int64)
    first[-1] = entries
    cdef Compressed rows = Compressed(X.rows, features, first)
    first[-1] = 0
    with nogil:
        for i in range(X.rows):
            rows.start[i + 1] = rows.start[i] + X.pick(
                i, place, rows.data + rows.start[i], rows.index + rows.start[i]
            )
    return rows


cdef class QuadraticModel:
    """A model on a working set of coordinates, and the intercepts if there are any.

    Intercepts are eliminated: they are where the slopes of the model are balanced. d is the step of
    the other coordinates so far. `state` is linear in d: what a slope is computed from.
    """

    def __init__(self, Compressed x, double l1, double l2, bint intercept):
        self.x, self.rows, self.size = x, x.rows, len(x.features)
        self.l1, self.l2, self.intercept = l1, l2, intercept

    def begin(self, g, w):
        """Begin at d = 0, with the gradient g and the weights w; intercepts are last."""
        self.g, self.w, self.free_slopes = g[: self.size], w[: self.size], g[self.size :]
        if self.intercept:
            self.g = self.g - np.einsum("jk,k->j", self.means, self.free_slopes)
        self.d, self.state = np.zeros(self.size), self.initial_state()

    def value(self, d, state):
        """Return the model at d, without a constant."""
        after = np.abs(self.w + d).sum()
        return float(np.einsum("i,i->", self.g, d) + 0.5 * self.form(d, state) + self.l1 * after)

    def step(self):
        """Return d, with the steps of the intercepts."""
        if not self.intercept:
            return self.d
        free = np.einsum("kl,l->k", self.inverse, self.free_slopes)
        return np.append(self.d, -free - np.einsum("jk,j->k", self.means, self.d))


cdef class ScalarModel(QuadraticModel):
    """A model of losses of one output; h are the curvatures of the rows."""
    cdef readonly object h
    cdef double mass

    cdef int eliminate(self, sums, double mass) except -1:
        """Eliminate the intercept; `sums` are those of h_i x_i."""
        self.mass = mass or 1.0
        self.means, self.inverse = sums[:, None] / self.mass, np.array([[1.0 / self.mass]])
        return 0


@cython.final
cdef class ColumnModel(ScalarModel):
    """The model by columns; `state` holds h_i <x_i, d>."""

    def __init__(self, Compressed rows, double l1, double l2, bint intercept):
        QuadraticModel.__init__(self, rows.by_columns(), l1, l2, intercept)

    def bend(self, h):
        """Set the curvatures of the rows."""
        cdef Py_ssize_t k
        cdef long long e
        cdef double part, total, first
        cdef Compressed x = self.x
        self.h = h
        self.curvatures, self.means = np.zeros(self.size), np.zeros(self.size)
        cdef double* out = at(self.curvatures)
        cdef double* mean = at(self.means)
        cdef const double* curvature = at(h)
        with nogil:
            for k in range(self.size):
                total, first = self.l2, 0.0
                for e in range(x.start[k], x.start[k + 1]):
                    part = curvature[x.index[e]] * x.data[e]
                    first += part
                    total += part * x.data[e]
                out[k], mean[k] = total, first
        self.eliminate(self.means, h.sum())
        if self.intercept:
            self.curvatures -= self.mass * self.means[:, 0] ** 2

    def initial_state(self):
        """Return the state of d = 0."""
        return np.zeros(self.rows)

    def descend(self, coordinates):
        """Minimize along each coordinate in turn; return the largest slope that was removed."""
        cdef Py_ssize_t k, j, n = len(coordinates)
        cdef long long e
        cdef const long long* coordinate = <const long long*><size_t>coordinates.ctypes.data
        cdef const double* curvature = at(self.curvatures)
        cdef const double* mean = at(self.means)
        cdef const double* slope = at(self.g)
        cdef const double* row_curvature = at(self.h)
        cdef const double* weight = at(self.w)
        cdef double* step = at(self.d)
        cdef double* score = at(self.state)
        cdef double here, rise, change, largest = 0.0
        cdef double mass = self.mass if self.intercept else 0.0
        cdef double total = mass * np.einsum("i,i->", self.means[:, 0], self.d)  # of the state
        cdef Compressed x = self.x
        with nogil:
            for k in range(n):
                j = <Py_ssize_t>coordinate[k]
                if not curvature[j] > 0.0:
                    continue
                rise = slope[j] + self.l2 * step[j] - mean[j] * total
                for e in range(x.start[j], x.start[j + 1]):
                    rise += x.data[e] * score[x.index[e]]
                here = weight[j] + step[j]
                change = soft(here - rise / curvature[j], self.l1 / curvature[j]) - here
                if change == 0.0:
                    continue
                largest = max(largest, curvature[j] * fabs(change))
                step[j] += change
                total += change * mass * mean[j]
                for e in range(x.start[j], x.start[j + 1]):
                    score[x.index[e]] += change * row_curvature[x.index[e]] * x.data[e]
        return largest

    def form(self, d, state):
        """Return the quadratic form of d."""
        used = self.h > 0.0
        curved = np.einsum("i,i->", state[used] / self.h[used], state[used])
        if self.intercept:
            curved -= self.mass * np.einsum("i,i->", self.means[:, 0], d) ** 2
        return curved + self.l2 * np.einsum("i,i->", d, d)

    def scores(self, d):
        """Return <x_i, d> of every row."""
        result = np.full(self.rows, d[self.size] if self.intercept else 0.0)
        cdef double* out = at(result)
        cdef const double* step = at(d)
        cdef Compressed x = self.x
        cdef Py_ssize_t k
        cdef long long e
        with nogil:
            for k in range(self.size):
                if step[k] != 0.0:
                    for e in range(x.start[k], x.start[k + 1]):
                        out[x.index[e]] += step[k] * x.data[e]
        return result


@cython.final
cdef class GramModel(ScalarModel):
    """The model by the matrix G = sum_i h_i x_i x_i' + l2 I; `state` holds G d."""
    cdef object sums, G

    def __init__(self, Compressed rows, double l1, double l2, bint intercept):
        QuadraticModel.__init__(self, rows, l1, l2, intercept)
        self.h = np.zeros(self.rows)
        self.sums = np.zeros((self.size + 1, self.size))

    def bend(self, h):
        """Set the curvatures of the rows; those that changed little stay as they are."""
        cdef Py_ssize_t i, size = self.size
        cdef long long a, b
        cdef double* total = at(self.sums)
        cdef double* row
        cdef double* mean = total + size * size
        cdef double* held = at(self.h)
        cdef const double* curvature = at(h)
        cdef double change, part
        cdef Compressed x = self.x
        with nogil:
            for i in range(self.rows):
                change = curvature[i] - held[i]
                if fabs(change) <= LAZY * curvature[i]:
                    continue
                held[i] += change
                for a in range(x.start[i], x.start[i + 1]):
                    part = change * x.data[a]
                    row = total + x.index[a] * size
                    mean[x.index[a]] += part
                    for b in range(x.start[i], a + 1):
                        row[x.index[b]] += part * x.data[b]
        sums = self.sums[:size]  # each pair is in one of the two triangles
        self.G = sums + sums.T
        self.G[np.diag_indices(size)] = np.diagonal(sums) + self.l2
        self.eliminate(self.sums[size], self.h.sum())
        if self.intercept:
            self.G -= np.einsum("ik,jk->ij", self.mass * self.means, self.means)
        self.curvatures = np.diagonal(self.G).copy()

    def initial_state(self):
        """Return the state of d = 0."""
        return np.zeros(self.size)

    def descend(self, coordinates):
        """Minimize along each coordinate in turn; return the largest slope that was removed."""
        cdef Py_ssize_t i, k, j, n = len(coordinates), size = self.size
        cdef const long long* coordinate = <const long long*><size_t>coordinates.ctypes.data
        cdef const double* curvature = at(self.curvatures)
        cdef const double* slope = at(self.g)
        cdef const double* weight = at(self.w)
        cdef const double* row
        cdef double* step = at(self.d)
        cdef double* image = at(self.state)
        cdef const double* form = at(self.G)
        cdef double here, change, largest = 0.0
        with nogil:
            for k in range(n):
                j = <Py_ssize_t>coordinate[k]
                if not curvature[j] > 0.0:
                    continue
                here = weight[j] + step[j]
                change = soft(
                    here - (slope[j] + image[j]) / curvature[j], self.l1 / curvature[j]
                ) - here
                if change == 0.0:
                    continue
                largest = max(largest, curvature[j] * fabs(change))
                step[j] += change
                row = form + j * size
                for i in range(size):
                    image[i] += change * row[i]
        return largest

    def form(self, d, state):
        """Return the quadratic form of d."""
        return np.einsum("i,i->", d, state)

    def scores(self, d):
        """Return <x_i, d> of every row."""
        result = np.full(self.rows, d[self.size] if self.intercept else 0.0)
        cdef double* out = at(result)
        cdef const double* step = at(d)
        cdef Compressed x = self.x
        cdef Py_ssize_t i
        cdef long long e
        with nogil:
            for i in range(self.rows):
                for e in range(x.start[i], x.start[i + 1]):
                    out[i] += step[x.index[e]] * x.data[e]
        return result
