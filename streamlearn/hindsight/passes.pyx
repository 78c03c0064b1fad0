"""The passes over the data ([Teo07] Figure 2): row scores, losses, slopes and the gradient.

The data are not copied: CSR or dense rows, of float64 or float32. With k outputs the weight of
feature j for output c is w[j k + c], as in the engine.
"""

from libc.stdlib cimport free, malloc

from streamlearn.losses.loss cimport MAX_PENDING, Loss, VectorLoss
from streamlearn.losses.loss_sum cimport LossSum, add_pending, add_sum, loss_sum

import numpy as np

ctypedef fused Number:
    double
    float

ctypedef fused Index:
    int
    long long


cdef const void* at(array):
    return <const void*><size_t>array.ctypes.data


cdef double sparse_dot(
    const Number* x, const Index* j, Py_ssize_t n, const double* w
) noexcept nogil:
    cdef double a = 0.0, b = 0.0
    cdef Py_ssize_t k
    for k in range(0, n - 1, 2):
        a += x[k] * w[j[k]]
        b += x[k + 1] * w[j[k + 1]]
    if n % 2 == 1:
        a += x[n - 1] * w[j[n - 1]]
    return a + b


cdef void sparse_add(
    const Number* x, const Index* j, Py_ssize_t n, double scale, double* out
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        out[j[k]] += scale * x[k]


cdef double dense_dot(const Number* x, Py_ssize_t n, const double* w) noexcept nogil:
    """Use four sums, so that no addition waits for the previous one."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k] * w[k]
        b += x[k + 1] * w[k + 1]
        c += x[k + 2] * w[k + 2]
        d += x[k + 3] * w[k + 3]
    for k in range(whole, n):
        a += x[k] * w[k]
    return (a + b) + (c + d)


cdef void dense_add(const Number* x, Py_ssize_t n, double scale, double* out) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += scale * x[k]


cdef double squared(const Number* x, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        total += <double>x[k] * x[k]
    return total


cdef Py_ssize_t sparse_pick(
    const Number* x, const Index* j, Py_ssize_t n, const int* place, double* data, int* index
) noexcept nogil:
    """Copy the entries of columns that have a place; without a branch, which would be random."""
    cdef Py_ssize_t k, kept = 0
    for k in range(n):
        data[kept] = x[k]
        index[kept] = place[j[k]]
        kept += index[kept] >= 0
    return kept


cdef Py_ssize_t dense_pick(
    const Number* x, Py_ssize_t n, const int* place, double* data, int* index
) noexcept nogil:
    cdef Py_ssize_t k, kept = 0
    for k in range(n):
        data[kept] = x[k]
        index[kept] = place[k]
        kept += index[kept] >= 0
    return kept


cdef class RowMatrix:
    """The rows of a CSR matrix or a dense array, without a copy."""

    def __init__(self, X):
        """`X`: a matrix from `streamlearn.hindsight.problem.checked_matrix`."""
        self.rows, self.columns = X.shape
        if hasattr(X, "indptr"):
            first = np.ascontiguousarray(X.indptr, dtype=np.int64)  # one number per row
            data, index = X.data, X.indices
            self.keep = (data, index, first)
            self.first = <const long long*>at(first)
            if index.dtype == np.int32:
                self.short_index = <const int*>at(index)
            else:
                self.long_index = <const long long*>at(index)
        else:
            data = X
            self.keep = data
        if data.dtype == np.float64:
            self.doubles = <const double*>at(data)
        else:
            self.floats = <const float*>at(data)

    cdef double dot(self, Py_ssize_t i, const double* w) noexcept nogil:
        """Return <w, x_i>."""
        cdef Py_ssize_t a, n
        if self.first == NULL:
            a, n = i * self.columns, self.columns
            if self.doubles != NULL:
                return dense_dot(self.doubles + a, n, w)
            return dense_dot(self.floats + a, n, w)
        a = <Py_ssize_t>self.first[i]
        n = <Py_ssize_t>self.first[i + 1] - a
        if self.short_index != NULL:
            if self.doubles != NULL:
                return sparse_dot(self.doubles + a, self.short_index + a, n, w)
            return sparse_dot(self.floats + a, self.short_index + a, n, w)
        if self.doubles != NULL:
            return sparse_dot(self.doubles + a, self.long_index + a, n, w)
        return sparse_dot(self.floats + a, self.long_index + a, n, w)

    cdef void add(self, Py_ssize_t i, double scale, double* out) noexcept nogil:
        """Add scale x_i to out."""
        cdef Py_ssize_t a, n
        if self.first == NULL:
            a, n = i * self.columns, self.columns
            if self.doubles != NULL:
                dense_add(self.doubles + a, n, scale, out)
            else:
                dense_add(self.floats + a, n, scale, out)
            return
        a = <Py_ssize_t>self.first[i]
        n = <Py_ssize_t>self.first[i + 1] - a
        if self.short_index != NULL:
            if self.doubles != NULL:
                sparse_add(self.doubles + a, self.short_index + a, n, scale, out)
            else:
                sparse_add(self.floats + a, self.short_index + a, n, scale, out)
        elif self.doubles != NULL:
            sparse_add(self.doubles + a, self.long_index + a, n, scale, out)
        else:
            sparse_add(self.floats + a, self.long_index + a, n, scale, out)

    cdef Py_ssize_t pick(
        self, Py_ssize_t i, const int* place, double* data, int* index
    ) noexcept nogil:
        """Copy the entries of row i whose column has a place >= 0; return their number.

        `data` and `index` need space for one entry more.
        """
        cdef Py_ssize_t n, a = self.begin(i, &n)
        if self.first == NULL:
            if self.doubles != NULL:
                return dense_pick(self.doubles + a, n, place, data, index)
            return dense_pick(self.floats + a, n, place, data, index)
        if self.short_index != NULL:
            if self.doubles != NULL:
                return sparse_pick(self.doubles + a, self.short_index + a, n, place, data, index)
            return sparse_pick(self.floats + a, self.short_index + a, n, place, data, index)
        if self.doubles != NULL:
            return sparse_pick(self.doubles + a, self.long_index + a, n, place, data, index)
        return sparse_pick(self.floats + a, self.long_index + a, n, place, data, index)

    def column_counts(self):
        """Return the number of entries of every column."""
        counts = np.zeros(self.columns, dtype=np.int64)
        cdef long long* count = <long long*><size_t>counts.ctypes.data
        cdef Py_ssize_t i, e, n, start
        cdef double x
        with nogil:
            for i in range(self.rows):
                start = self.begin(i, &n)
                for e in range(n):
                    count[self.entry(e, start, &x)] += 1
        return counts

    cdef Py_ssize_t entry(self, Py_ssize_t k, Py_ssize_t offset, double* x) noexcept nogil:
        """Return the column of entry k of the row that begins at `offset`; its value goes to x."""
        x[0] = self.doubles[offset + k] if self.doubles != NULL else <double>self.floats[offset + k]
        if self.first == NULL:
            return k
        if self.short_index != NULL:
            return self.short_index[offset + k]
        return <Py_ssize_t>self.long_index[offset + k]

    cdef Py_ssize_t begin(self, Py_ssize_t i, Py_ssize_t* n) noexcept nogil:
        """Return where row i begins; its number of entries goes to n."""
        if self.first == NULL:
            n[0] = self.columns
            return i * self.columns
        n[0] = <Py_ssize_t>(self.first[i + 1] - self.first[i])
        return <Py_ssize_t>self.first[i]

    cdef void dots(self, Py_ssize_t i, const double* w, Py_ssize_t k, double* f) noexcept nogil:
        """Add W x_i to f, with k outputs."""
        cdef Py_ssize_t n, e, c, j, offset = self.begin(i, &n)
        cdef double x
        for e in range(n):
            j = k * self.entry(e, offset, &x)
            for c in range(k):
                f[c] += x * w[j + c]

    cdef void adds(
        self, Py_ssize_t i, const double* scales, Py_ssize_t k, double* out
    ) noexcept nogil:
        """Add scales x_i' to out, with k outputs."""
        cdef Py_ssize_t n, e, c, j, offset = self.begin(i, &n)
        cdef double x
        for e in range(n):
            j = k * self.entry(e, offset, &x)
            for c in range(k):
                out[j + c] += x * scales[c]

    cdef double square(self, Py_ssize_t i) noexcept nogil:
        """Return |x_i|^2."""
        cdef Py_ssize_t n, offset = self.begin(i, &n)
        if self.doubles != NULL:
            return squared(self.doubles + offset, n)
        return squared(self.floats + offset, n)

    def squares(self):
        """Return |x_i|^2 of every row."""
        result = np.empty(self.rows)
        cdef double* out = <double*>at(result)
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.rows):
                out[i] = self.square(i)
        return result

    def add_squares(self, weights, Py_ssize_t start, Py_ssize_t stop, total):
        """Add the weighted squares of rows start .. stop - 1 to `total`, by column."""
        cdef const double* weight = <const double*>at(weights)
        cdef double* out = <double*>at(total)
        cdef Py_ssize_t i, e, n, j, offset
        cdef double x
        with nogil:
            for i in range(start, stop):
                offset = self.begin(i, &n)
                for e in range(n):
                    j = self.entry(e, offset, &x)
                    out[j] += weight[i - start] * x * x

    def scores(self, w, Py_ssize_t k, bint intercept, Py_ssize_t start, Py_ssize_t stop, result):
        """Write the scores of rows start .. stop - 1, k for each, to `result`."""
        cdef const double* weight = <const double*>at(w)
        cdef const double* free_part = weight + self.columns * k
        cdef double* out = <double*>at(result)
        cdef Py_ssize_t i, c
        with nogil:
            for i in range(stop - start):
                if k == 1:
                    out[i] = self.dot(start + i, weight) + (free_part[0] if intercept else 0.0)
                    continue
                for c in range(k):
                    out[i * k + c] = free_part[c] if intercept else 0.0
                self.dots(start + i, weight, k, out + i * k)

    def combine_rows(
        self, slopes, Py_ssize_t k, bint intercept, Py_ssize_t start, Py_ssize_t stop, total
    ):
        """Add the sum of slope_i x_i over rows start .. stop - 1 to `total`."""
        cdef const double* slope = <const double*>at(slopes)
        cdef double* out = <double*>at(total)
        cdef double* free_part = out + self.columns * k
        cdef Py_ssize_t i, c
        with nogil:
            for i in range(stop - start):
                if k == 1:
                    if slope[i] != 0.0:
                        self.add(start + i, slope[i], out)
                else:
                    self.adds(start + i, slope + i * k, k, out)
                if intercept:
                    for c in range(k):
                        free_part[c] += slope[i * k + c]


def value_and_gradient(
    RowMatrix X, loss, y, weights, w, Py_ssize_t k, bint intercept,
    Py_ssize_t start, Py_ssize_t stop, gradient
):
    """Return the weighted sum of losses of rows start .. stop - 1; add its subgradient to gradient.

    `y` and `weights` belong to all rows.
    """
    if isinstance(loss, Loss):
        return _scalar(X, loss, y, weights, w, intercept, start, stop, gradient)
    return _vector(X, loss, y, weights, w, k, intercept, start, stop, gradient)


cdef double _scalar(
    RowMatrix X, Loss loss, y, weights, w, bint intercept,
    Py_ssize_t start, Py_ssize_t stop, gradient
):
    cdef const double* label = <const double*>at(y)
    cdef const double* share = <const double*>at(weights)
    cdef const double* weight = <const double*>at(w)
    cdef double* out = <double*>at(gradient)
    cdef double offset = weight[X.columns] if intercept else 0.0
    cdef LossSum value
    cdef double total = 0.0, p, slope
    cdef Py_ssize_t i
    value.sum = value.rest = 0.0
    value.last.n = 0
    with nogil:
        for i in range(start, stop):
            p = X.dot(i, weight) + offset
            slope = loss.slope_at(p, label[i])
            add_pending(&value, p, label[i], share[i], slope)
            if value.last.n == MAX_PENDING:
                add_sum(&value, loss.sum_pending(&value.last))
            slope *= share[i]
            if slope != 0.0:
                X.add(i, slope, out)
                total += slope
    if intercept:
        out[X.columns] += total
    return loss_sum(&value, loss)


cdef double _vector(
    RowMatrix X, VectorLoss loss, y, weights, w, Py_ssize_t k, bint intercept, Py_ssize_t start,
    Py_ssize_t stop, gradient
) except? -1.0:
    cdef const double* label = <const double*>at(y)
    cdef const double* share = <const double*>at(weights)
    cdef const double* weight = <const double*>at(w)
    cdef double* out = <double*>at(gradient)
    cdef Py_ssize_t width = y.shape[1] if y.ndim == 2 else 1
    cdef const double* free_weight = weight + X.columns * k
    cdef double* free_out = out + X.columns * k
    cdef double value = 0.0
    cdef Py_ssize_t i, c
    cdef double* f = <double*>malloc(2 * k * sizeof(double))
    cdef double* slope = f + k
    if f == NULL:
        raise MemoryError
    with nogil:
        for i in range(start, stop):
            for c in range(k):
                f[c] = free_weight[c] if intercept else 0.0
            X.dots(i, weight, k, f)
            value += share[i] * loss.value_of(f, k, label + i * width)
            loss.slopes_of(f, k, label + i * width, slope)
            for c in range(k):
                slope[c] *= share[i]
                if intercept:
                    free_out[c] += slope[c]
            X.adds(i, slope, k, out)
    free(f)
    return value


def derivatives(Loss loss, scores, y, weights, slopes, curvatures):
    """Return the weighted sum of the losses; write the rows' slopes and curvatures, unweighted."""
    cdef const double* score = <const double*>at(scores)
    cdef const double* label = <const double*>at(y)
    cdef const double* share = <const double*>at(weights)
    cdef double* slope = <double*>at(slopes)
    cdef double* curvature = <double*>at(curvatures)
    cdef LossSum value
    cdef Py_ssize_t i, m = len(scores)
    value.sum = value.rest = 0.0
    value.last.n = 0
    with nogil:
        for i in range(m):
            slope[i] = loss.slope_at(score[i], label[i])
            curvature[i] = loss.curvature_at(score[i], label[i])
            add_pending(&value, score[i], label[i], share[i], slope[i])
            if value.last.n == MAX_PENDING:
                add_sum(&value, loss.sum_pending(&value.last))
    return loss_sum(&value, loss)
