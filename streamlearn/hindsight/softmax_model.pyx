"""The quadratic model of Softmax, whose outputs are coupled by the probabilities of the classes.

For a row with probabilities p the Hessian in the scores is diag(p) - p p'. With the scores s of the
step and their mean m = <p, s>, a coordinate of class c has the slope sum_i x_i p_ic (s_ic - m_i):
it is read and moved without looking at the other classes.
"""

cimport cython
from libc.math cimport fabs

from streamlearn.core.row cimport soft
from streamlearn.hindsight.quadratic_model cimport Compressed, QuadraticModel, at

import numpy as np

cdef double FLAT = 1e-12  # relative curvature that counts as none


@cython.final
cdef class SoftmaxModel(QuadraticModel):
    """The model by columns; coordinate k is the weight of column places[k] for class classes[k].

    Rows are multiplied by the root of their weight. `state` holds s, class by class, and then m.
    """
    cdef Py_ssize_t outputs
    cdef object places, classes, roots, p, couplings

    def __init__(
        self, Compressed rows, places, classes, Py_ssize_t outputs, weights,
        double l1, double l2, bint intercept
    ):
        QuadraticModel.__init__(self, rows.by_columns(), l1, l2, intercept)
        self.outputs, self.size, self.roots = outputs, len(places), np.sqrt(weights)
        self.places = np.ascontiguousarray(places, dtype=np.int64)
        self.classes = np.ascontiguousarray(classes, dtype=np.int64)
        cdef Compressed x = self.x
        cdef const double* root = at(self.roots)
        cdef long long e
        for e in range(x.start[len(x.features)]):
            x.data[e] *= root[x.index[e]]

    def bend(self, p):
        """Set the probabilities of the rows, m x K."""
        cdef Py_ssize_t k, c, other, outputs = self.outputs, rows = self.rows
        cdef long long e, i, column
        cdef Compressed x = self.x
        self.p = np.ascontiguousarray(p.T)
        self.curvatures = np.zeros(self.size)
        self.couplings = np.zeros((self.size, outputs))
        cdef const long long* place = <const long long*><size_t>self.places.ctypes.data
        cdef const long long* cls = <const long long*><size_t>self.classes.ctypes.data
        cdef const double* share = at(self.p)
        cdef const double* mine
        cdef const double* root = at(self.roots)
        cdef double* out = at(self.curvatures)
        cdef double* coupling = at(self.couplings)
        cdef double part, total
        with nogil:
            for k in range(self.size):
                column, c, total = place[k], <Py_ssize_t>cls[k], self.l2
                mine = share + c * rows
                for e in range(x.start[column], x.start[column + 1]):
                    i = x.index[e]
                    total += x.data[e] * x.data[e] * mine[i] * (1.0 - mine[i])
                out[k] = total
                if not self.intercept:
                    continue
                for e in range(x.start[column], x.start[column + 1]):
                    i = x.index[e]
                    part = root[i] * x.data[e] * mine[i]
                    coupling[k * outputs + c] += part
                    for other in range(outputs):
                        coupling[k * outputs + other] -= part * share[other * rows + i]
        if self.intercept:
            weighted = self.p * self.roots
            among = np.diag(np.einsum("ki,i->k", weighted, self.roots))
            among -= np.einsum("ki,li->kl", weighted, weighted)
            # equal steps of all intercepts change nothing
            self.inverse = np.linalg.pinv(among, rcond=FLAT, hermitian=True)
            self.means = np.einsum("jk,kl->jl", self.couplings, self.inverse, order="C")
            self.curvatures -= np.einsum("jk,jk->j", self.couplings, self.means)

    def initial_state(self):
        """Return the state of d = 0."""
        return np.zeros((self.outputs + 1) * self.rows)

    def descend(self, coordinates):
        """Minimize along each coordinate in turn; return the largest slope that was removed."""
        cdef Py_ssize_t k, j, c, n = len(coordinates), outputs = self.outputs, rows = self.rows
        cdef long long e, i, column
        cdef const long long* coordinate = <const long long*><size_t>coordinates.ctypes.data
        cdef const long long* place = <const long long*><size_t>self.places.ctypes.data
        cdef const long long* cls = <const long long*><size_t>self.classes.ctypes.data
        cdef const double* curvature = at(self.curvatures)
        cdef const double* slope = at(self.g)
        cdef const double* weight = at(self.w)
        cdef const double* share = at(self.p)
        cdef const double* coupling = at(self.couplings)
        cdef double* step = at(self.d)
        cdef double* scores = at(self.state)
        cdef double* mean = scores + outputs * rows
        cdef const double* p
        cdef double* score
        cdef double here, rise, change, largest = 0.0
        cdef Compressed x = self.x
        # how far the intercepts have moved to balance the slopes
        free = np.einsum("jk,j->k", self.means, self.d) if self.intercept else np.zeros(outputs)
        means = self.means if self.intercept else self.couplings
        cdef double* moved = at(free)
        cdef const double* moves = at(means)
        with nogil:
            for k in range(n):
                j = <Py_ssize_t>coordinate[k]
                if not curvature[j] > 0.0:
                    continue
                column = place[j]
                p, score = share + cls[j] * rows, scores + cls[j] * rows
                rise = slope[j] + self.l2 * step[j]
                if self.intercept:
                    for c in range(outputs):
                        rise -= coupling[j * outputs + c] * moved[c]
                for e in range(x.start[column], x.start[column + 1]):
                    i = x.index[e]
                    rise += x.data[e] * p[i] * (score[i] - mean[i])
                here = weight[j] + step[j]
                change = soft(here - rise / curvature[j], self.l1 / curvature[j]) - here
                if change == 0.0:
                    continue
                largest = max(largest, curvature[j] * fabs(change))
                step[j] += change
                if self.intercept:
                    for c in range(outputs):
                        moved[c] += change * moves[j * outputs + c]
                for e in range(x.start[column], x.start[column + 1]):
                    i = x.index[e]
                    score[i] += change * x.data[e]
                    mean[i] += change * x.data[e] * p[i]
        return largest

    def form(self, d, state):
        """Return the quadratic form of d."""
        scores = state[: self.outputs * self.rows].reshape(self.outputs, self.rows)
        mean = state[self.outputs * self.rows :]
        curved = np.einsum("ki,ki,ki->", self.p, scores, scores) - np.einsum("i,i->", mean, mean)
        if self.intercept:
            total = np.einsum("jk,j->k", self.couplings, d)
            curved -= np.einsum("k,kl,l->", total, self.inverse, total)
        return curved + self.l2 * np.einsum("i,i->", d, d)

    def scores(self, d):
        """Return the scores of every row for d, m x K."""
        cdef Py_ssize_t k, outputs = self.outputs
        cdef long long e, column
        result = np.zeros((self.rows, outputs))
        cdef double* out = at(result)
        cdef const double* step = at(d)
        cdef const long long* place = <const long long*><size_t>self.places.ctypes.data
        cdef const long long* cls = <const long long*><size_t>self.classes.ctypes.data
        cdef Compressed x = self.x
        with nogil:
            for k in range(self.size):
                if step[k] != 0.0:
                    column = place[k]
                    for e in range(x.start[column], x.start[column + 1]):
                        out[x.index[e] * outputs + cls[k]] += step[k] * x.data[e]
        used = self.roots > 0.0
        result[used] /= self.roots[used, None]
        return result + d[self.size :] if self.intercept else result
