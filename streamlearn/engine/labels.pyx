"""Which labels a column of them holds: each once, in the order of their first appearance."""

import numpy as np

from streamlearn.errors import InvalidEventError

cdef enum:
    MOST = 64  # so many numbers are told apart by looking along the list of those seen


class LabelColumn:
    """A column of labels as indices into the list of the distinct ones.

    `distinct[k]` first appears at row `first[k]`; `index[i]` is the place of row i's label in
    `distinct`, -1 where `wanted` says that it plays no part.

    >>> labels = LabelColumn(np.array(["b", "a", "b"]))
    >>> labels.distinct, labels.first, labels.index
    (['b', 'a'], [0, 1], array([0, 1, 0]))
    """

    def __init__(self, y, wanted=None):
        self.index = np.empty(len(y), dtype=np.intp)
        if not (exact_as_float(y) and self.read_numbers(y, wanted)):
            self.read_any(y, wanted)

    def coded(self, codes, start, stop):
        """What `codes` says of the labels of rows start .. stop - 1; 0 for those left out."""
        known = [float(codes.get(label, 0.0)) for label in self.distinct]
        return np.take(np.array([*known, 0.0]), self.index[start:stop])

    def read_numbers(self, y, wanted):
        """False, nothing done, if there are too many different ones."""
        cdef double seen[MOST + 2]
        cdef Py_ssize_t first[MOST]
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
                # of two labels, which one it is can't be foreseen: no branch
                k = label[i] != seen[0]
                if k >= m or label[i] != seen[k]:
                    k = 0
                    while k < m and label[i] != seen[k]:
                        k += 1
                    if k == m:
                        if m == MOST:
                            break
                        seen[k] = label[i]
                        first[k] = i
                        m += 1
                        if label[i] != label[i]:  # a NaN is not itself: what follows is refused
                            break
                index[i] = k
        if m == MOST and k == MOST:
            return False
        self.first = [first[k] for k in range(m)]
        self.distinct = [y[i].item() for i in self.first]
        return True

    def read_any(self, y, wanted):
        """Labels of any hashable kind."""
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
    """Whether all labels are numbers that a float64 holds to the last digit."""
    if y.dtype.kind in "iu" and y.dtype.itemsize > 4:
        return len(y) == 0 or max(-int(y.min()), int(y.max())) < 1 << 53
    return y.dtype.kind in "biuf" and y.dtype.itemsize <= 8
