"""The distinct labels of a column, in order of first appearance."""

import numpy as np

from streamlearn.errors import InvalidEventError

cdef enum:
    MAX_DISTINCT = 64  # up to so many distinct numbers, a linear search is fast


class LabelColumn:
    """A column of labels as indices into the list of distinct labels.

    `distinct[k]` first appears at row `first[k]`; `index[i]` is the index of row i's label in
    `distinct`, or -1 where `wanted` is False.

    >>> labels = LabelColumn(np.array(["b", "a", "b"]))
    >>> labels.distinct, labels.first, labels.index
    (['b', 'a'], [0, 1], array([0, 1, 0]))
    """

    def __init__(self, y, wanted=None):
        self.index = np.empty(len(y), dtype=np.intp)
        if not (exact_as_float(y) and self.read_numbers(y, wanted)):
            self.read_any(y, wanted)

    def coded(self, codes, start, stop):
        """Return the codes of the labels of rows start .. stop - 1, 0 for unwanted rows."""
        known = [float(codes.get(label, 0.0)) for label in self.distinct]
        return np.take(np.array([*known, 0.0]), self.index[start:stop])

    def read_numbers(self, y, wanted):
        """Read numeric labels; False, without effect, if there are too many distinct ones."""
        cdef double seen[MAX_DISTINCT + 2]
        cdef Py_ssize_t first[MAX_DISTINCT]
        cdef Py_ssize_t i, k = 0, n = len(y), m = 0
        values = np.ascontiguousarray(y, dtype=np.float64)
        cdef const double* label = <const double*><size_t>values.ctypes.data
        cdef Py_ssize_t* index = <Py_ssize_t*><size_t>self.index.ctypes.data
        cdef const unsigned char* skip = NULL
        seen[0] = seen[1] = 0.0
        if wanted is not None:
            left_out = np.ascontiguousarray(~wanted).view(np.uint8)
            skip = <const unsigned char*><size_t>left_out.ctypes.data
        with nogil:
            for i in range(n):
                if skip != NULL and skip[i]:
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
        self.distinct = [y[i].item() for i in self.first]
        return True

    def read_any(self, y, wanted):
        """Read labels of any hashable type."""
        cdef Py_ssize_t i
        cdef Py_ssize_t* index = <Py_ssize_t*><size_t>self.index.ctypes.data
        places = {}
        self.first = []
        chosen = None if wanted is None else wanted.tolist()
        try:
            for i, label in enumerate(y.tolist()):
                if chosen is not None and not chosen[i]:
                    index[i] = -1
                    continue
                index[i] = places.setdefault(label, len(places))
                if len(places) > len(self.first):
                    self.first.append(i)
        except TypeError:
            raise InvalidEventError(f"row {i}: a label must be hashable, got {label!r}") from None
        self.distinct = list(places)


def exact_as_float(y):
    """Return whether float64 represents all labels exactly."""
    if y.dtype.kind in "iu" and y.dtype.itemsize > 4:
        return len(y) == 0 or max(-int(y.min()), int(y.max())) < 1 << 53
    return y.dtype.kind in "biuf" and y.dtype.itemsize <= 8
