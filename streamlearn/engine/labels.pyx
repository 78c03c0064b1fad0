"""Labels as indices into the list of the distinct ones, in order of first appearance."""

import numpy as np

from streamlearn.errors import InvalidEventError

cdef enum:
    MAX_DISTINCT = 64  # up to so many distinct numbers, a linear search is fast


class LabelColumn:
    """A column of labels as indices into the list of distinct labels.

    `distinct[k]` first appears at row `first[k]`; `index[i]` is the index of row i's label in
    `distinct`, or -1 for a row of weight 0. `label_of(i)` is the label of row i; `numbers` are
    equal where labels are, or None.

    >>> labels = column_of_array(np.array(["b", "a", "b"]))
    >>> labels.distinct, labels.first, labels.index
    (['b', 'a'], [0, 1], array([0, 1, 0]))
    """

    def __init__(self, n, numbers, label_of, weights=None):
        self.index = np.empty(n, dtype=np.intp)
        if numbers is None or not self.read_numbers(numbers, label_of, weights):
            self.read_any(label_of, weights)

    def coded(self, codes, otherwise=0.0, start=0, stop=None):
        """Return the codes of the labels of rows start .. stop - 1, 0 for rows of weight 0."""
        known = [float(codes.get(label, otherwise)) for label in self.distinct]
        return np.take(np.array([*known, 0.0]), self.index[start:stop])

    def read_numbers(self, numbers, label_of, weights):
        """Read labels as numbers; False, without effect, if there are too many distinct ones."""
        cdef double seen[MAX_DISTINCT + 2]
        cdef Py_ssize_t first[MAX_DISTINCT]
        cdef Py_ssize_t i, k = 0, n = len(numbers), m = 0
        numbers = np.ascontiguousarray(numbers, dtype=np.float64)
        cdef const double* label = <const double*><size_t>numbers.ctypes.data
        cdef Py_ssize_t* index = <Py_ssize_t*><size_t>self.index.ctypes.data
        cdef const double* weight = NULL
        seen[0] = seen[1] = 0.0
        if weights is not None:
            weight = <const double*><size_t>weights.ctypes.data
        with nogil:
            for i in range(n):
                if weight != NULL and weight[i] == 0.0:
                    index[i] = -1
                    continue
                # no branch, because which of two labels it is cannot be predicted
                k = label[i] != seen[0]
                if k >= m or label[i] != seen[k]:
                    k = 0
                    while k < m and label[i] != seen[k]:
                        k += 1
                    if k == m:
                        if m == MAX_DISTINCT:
                            break
                        seen[k] = label[i]
                        first[k] = i
                        m += 1
                        if label[i] != label[i]:  # NaN, which the caller rejects
                            break
                index[i] = k
        if m == MAX_DISTINCT and k == MAX_DISTINCT:
            return False
        self.first = [first[k] for k in range(m)]
        self.distinct = [label_of(i) for i in self.first]
        return True

    def read_any(self, label_of, weights):
        """Read labels of any hashable type."""
        cdef Py_ssize_t i = 0, n = len(self.index)
        cdef Py_ssize_t* index = <Py_ssize_t*><size_t>self.index.ctypes.data
        cdef const double* weight = NULL
        if weights is not None:
            weight = <const double*><size_t>weights.ctypes.data
        places, self.first = {}, []
        try:
            for i, label in enumerate(map(label_of, range(n))):
                if weight != NULL and weight[i] == 0.0:
                    index[i] = -1
                    continue
                index[i] = places.setdefault(label, len(places))
                if len(places) > len(self.first):
                    self.first.append(i)
        except TypeError:
            raise InvalidEventError(f"row {i}: a label must be hashable, got {label!r}") from None
        self.distinct = list(places)


def column_of_array(y, weights=None):
    """Return the labels of an array as a column."""
    if exact_as_float(y):
        return LabelColumn(len(y), y, y.item, weights)
    return LabelColumn(len(y), None, y.tolist().__getitem__, weights)


def column_of_events(events, weights):
    """Return the labels of decoded events as a column."""
    return LabelColumn(len(events), events.label_numbers(), events.label_of, weights)


def exact_as_float(y):
    """Return whether float64 represents all labels exactly."""
    if y.dtype.kind in "iu" and y.dtype.itemsize > 4:
        return len(y) == 0 or max(-int(y.min()), int(y.max())) < 1 << 53
    return y.dtype.kind in "biuf" and y.dtype.itemsize <= 8
