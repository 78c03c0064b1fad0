"""Decoded events: a batch of rows with labels, shared by all learners of a stream.

A format fills it from raw records, and estimators learn from its buffers (`progressive_events`). It
is cleared and reused, so after the largest batch a stream allocates no more memory.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from streamlearn.engine.rows cimport Rows
from streamlearn.core.row cimport Row, squared

import numpy as np

from streamlearn.core.invalid_record import InvalidRecord


cdef inline double masked(double x, bint wanted) noexcept nogil:
    """Return x if wanted, else 0, without a branch, which would be unpredictable."""
    cdef uint64_t bits
    memcpy(&bits, &x, 8)
    bits &= -<uint64_t>wanted
    memcpy(&x, &bits, 8)
    return x


cdef bint is_number(label):
    """Return whether a float64 represents this label exactly."""
    if not isinstance(label, int):  # includes bools
        return isinstance(label, float)
    try:
        return float(label) == label
    except OverflowError:
        return False


# the arrays of a batch, in the order of `Events.arrays`
TYPES = (
    np.int64, np.int32, np.float64, np.float64, np.uint8, np.float64, np.float64, np.int64,
    np.int64, np.uint8, np.int64, np.uint8, np.float64,
)
CLASS_KIND = CLASS
LABEL_KINDS = {type(None): UNLABELED, bool: BOOL, int: INT, float: FLOAT}


cdef class Events(Rows):
    """Rows of slots and values, with the label, weight, time and id of each event.

    - `labels`: NaN for none, else a number (0 and 1 for bools) or an index into `classes`;
      `label_of(i)` is the label as a Python object.
    - `weights`; `times` in seconds since 1970, NaN for none; `ids` as bytes, None for none.
    - `index`: the number of each event's record among those given to the decoder since `clear`;
      `records` is the count of those records, and `byte_count` their bytes.
    - `invalid`: (index, field, reason) of each invalid record; `tombstones`: the count of null
      records; `blank`: the count of lines without an event, such as a header or a comment;
      `outside`: the count of events outside the decoder's window of times.

    Arrays are views of buffers, valid until the next `clear` or the next record.

    >>> events = Events()
    >>> events.add([(0, 1.0), (7, 2.5)], label=True)
    >>> events.add([(3, 1.0)], weight=2.0, key=b"e2")
    >>> len(events), events.labels, events.label_of(0), events.label_of(1)
    (2, array([ 1., nan]), True, None)
    >>> events.row_of(0), events.ids
    ([(0, 1.0), (7, 2.5)], [None, b'e2'])
    >>> events.clear()
    >>> len(events)
    0
    """

    def __init__(self):
        self.sparse = True
        self.classes = []
        self.arrays = ()
        self.widen(256, 4096, 0)
        self.clear()

    def clear(self):
        """Remove the rows and the invalid records, and keep the buffers."""
        self.n = self.records = self.tombstones = self.blank = self.longest = self.columns = 0
        self.byte_count = self.outside = 0
        self.invalid = []
        if self.adopted:
            self.start = NULL
            self.arrays = ()
            self.widen(256, 4096, 0)
        self.start[0] = 0

    cdef int widen(self, Py_ssize_t rows, Py_ssize_t features, Py_ssize_t text) except -1 with gil:
        """Reserve rows, features, and bytes of ids, and keep the contents."""
        cdef Py_ssize_t used = 0 if self.start == NULL else <Py_ssize_t>self.start[self.n]
        cdef Py_ssize_t id_used = 0 if self.n == 0 else <Py_ssize_t>self.id_end[self.n - 1]
        rows, features, text = max(rows, 1), max(features, 1), max(text, 1)
        # in the order of TYPES: capacity and used
        new = []
        wanted = (
            (rows + 1, self.n + 1), (features, used), (features, used), (rows, self.n),
            (rows, self.n), (rows, self.n), (rows, self.n), (rows, self.n), (rows, self.n),
            (text, id_used), (rows, self.n), (rows, self.n), (rows, self.n),
        )
        for k, (size, filled) in enumerate(wanted):
            array = np.empty(size, dtype=TYPES[k])
            if self.arrays:
                array[:filled] = self.arrays[k][:filled]
            new.append(array)
        self.point_to(tuple(new))
        self.adopted = False
        self.row_room, self.feature_room, self.id_room = rows, features, text
        return 0

    cdef int point_to(self, tuple arrays) except -1:
        """Set the pointers to these arrays, in the order of TYPES."""
        self.arrays = arrays
        self.start = <int64_t*><size_t>arrays[0].ctypes.data
        self.slot_at = <int*><size_t>arrays[1].ctypes.data
        self.value_at = <double*><size_t>arrays[2].ctypes.data
        self.label = <double*><size_t>arrays[3].ctypes.data
        self.kind = <uint8_t*><size_t>arrays[4].ctypes.data
        self.weight = <double*><size_t>arrays[5].ctypes.data
        self.time = <double*><size_t>arrays[6].ctypes.data
        self.known = <int64_t*><size_t>arrays[7].ctypes.data
        self.record = <int64_t*><size_t>arrays[8].ctypes.data
        self.id_text = <char*><size_t>arrays[9].ctypes.data
        self.id_end = <int64_t*><size_t>arrays[10].ctypes.data
        self.has_id = <uint8_t*><size_t>arrays[11].ctypes.data
        self.square = <double*><size_t>arrays[12].ctypes.data
        return 0

    def packed(self):
        """Return the arrays of the rows, in the order of TYPES; views, valid until `clear`.

        >>> events = Events()
        >>> events.add([(0, 1.0), (7, 2.5)], label=True)
        >>> other = Events()
        >>> other.adopt(events.packed(), records=1)
        >>> other.row_of(0), other.label_of(0)
        ([(0, 1.0), (7, 2.5)], True)
        """
        cdef Py_ssize_t n = self.n, used = <Py_ssize_t>self.start[n]
        cdef Py_ssize_t text = 0 if n == 0 else <Py_ssize_t>self.id_end[n - 1]
        sizes = [n + 1, used, used, n, n, n, n, n, n, text, n, n, n]
        return tuple([array[:size] for array, size in zip(self.arrays, sizes, strict=True)])

    def adopt(self, arrays, records, invalid=(), tombstones=0, byte_count=0):
        """Replace the contents by the rows of `packed` arrays, without a copy.

        The arrays may be read-only: they are copied before the next event is added.
        """
        cdef Py_ssize_t n = len(arrays[3])
        sizes = [n + 1, len(arrays[1]), len(arrays[1]), *[n] * 6, len(arrays[9]), n, n, n]
        for array, size, kind in zip(arrays, sizes, TYPES, strict=True):
            if len(array) != size or array.dtype != kind or not array.flags.c_contiguous:
                raise ValueError("these arrays are not those of packed rows")
        starts = arrays[0]
        if starts[0] != 0 or starts[n] != len(arrays[1]) or (np.diff(starts) < 0).any():
            raise ValueError("the starts of packed rows do not fit their slots")
        self.point_to(tuple(arrays))
        self.n = self.row_room = n
        self.feature_room, self.id_room = len(arrays[1]), len(arrays[9])
        self.longest = int(np.diff(starts).max(initial=0))
        self.columns = int(arrays[7].max(initial=0))
        self.records, self.tombstones, self.byte_count = records, tombstones, byte_count
        self.blank = self.outside = 0
        self.invalid = list(invalid)
        self.adopted = True

    def add(self, row, label=None, weight=1.0, time=NAN, key=None, known=None):
        """Add an event of (slot, value) pairs, each slot once, and its id as `key`."""
        cdef Row given
        cdef Tags tags
        slots = np.array([slot for slot, _ in row], dtype=np.int32)
        values = np.array([value for _, value in row], dtype=np.float64)
        if len(slots) and slots.min() < 0:
            raise ValueError(f"slots must be >= 0, got {slots.min()}")
        given.n = len(slots)
        given.slot = <const int*><size_t>slots.ctypes.data
        given.value = <const double*><size_t>values.ctypes.data
        given.square = squared(given.value, given.n)
        tags.kind = LABEL_KINDS.get(type(label), CLASS)
        if tags.kind == INT and not is_number(label):
            tags.kind = CLASS
        if tags.kind == CLASS:
            if label not in self.classes:
                self.classes.append(label)
            tags.label = self.classes.index(label)
        else:
            tags.label = NAN if label is None else label
        tags.weight = weight
        tags.time = time
        text = b"" if key is None else key
        tags.id = NULL if key is None else PyBytes_AS_STRING(text)
        tags.id_length = len(text)
        least = int(slots.max(initial=-1)) + 1
        self.append(&given, &tags, least if known is None else max(least, known))
        self.records += 1

    def refuse(self, error):
        """Add the record that is being decoded to `invalid`, with the reason of `error`.

        >>> from streamlearn.errors import InvalidEventError
        >>> events = Events()
        >>> events.refuse(InvalidEventError("field 'age' is nan", "age"))
        >>> events.invalid
        [InvalidRecord(number=0, field='age', code='value', reason="field 'age' is nan")]
        """
        self.invalid.append(InvalidRecord.of(self.records, error))

    # The contents of a batch

    def __len__(self):
        return self.n

    @property
    def labels(self):
        """The labels as numbers, NaN for none."""
        return self.arrays[3][:self.n]

    @property
    def weights(self):
        """The weight of each event."""
        return self.arrays[5][:self.n]

    @property
    def times(self):
        """The time of each event in seconds since 1970, NaN for none."""
        return self.arrays[6][:self.n]

    @property
    def known(self):
        """The number of slots used after each event."""
        return self.arrays[7][:self.n]

    @property
    def index(self):
        """The index of each event's record."""
        return self.arrays[8][:self.n]

    @property
    def starts(self):
        """The start of each row in `slots` and `values`, and the end of the last."""
        return self.arrays[0][:self.n + 1]

    @property
    def slots(self):
        """The slots of all rows."""
        return self.arrays[1][:self.start[self.n]]

    @property
    def values(self):
        """The values of all rows."""
        return self.arrays[2][:self.start[self.n]]

    @property
    def ids(self):
        """The id of each event as bytes, None for none."""
        return [self.id_of(i) for i in range(self.n)]

    def id_texts(self, rows):
        """Return the ids of these events as text, None for none.

        >>> events = Events()
        >>> events.add([], key=b"e1")
        >>> events.add([])
        >>> events.id_texts(np.array([1, 0]))
        [None, 'e1']
        """
        cdef Py_ssize_t i
        found = []
        for i in rows.tolist():
            name = self.id_of(i)
            found.append(None if name is None else name.decode("utf-8", "replace"))
        return found

    def id_of(self, Py_ssize_t i):
        """Return the id of an event as bytes, None for none."""
        cdef Py_ssize_t first = 0 if i == 0 else <Py_ssize_t>self.id_end[i - 1]
        self.inside(i)
        return self.id_text[first:self.id_end[i]] if self.has_id[i] else None

    def row_of(self, Py_ssize_t i):
        """The features of an event as (slot, value) pairs."""
        self.inside(i)
        return [
            (self.slot_at[k], self.value_at[k]) for k in range(self.start[i], self.start[i + 1])]

    def label_of(self, Py_ssize_t i):
        """The label of an event as Python has it; None: none."""
        self.inside(i)
        return self.label_object(i)

    cdef object label_object(self, Py_ssize_t i):
        cdef uint8_t kind = self.kind[i]
        if kind == UNLABELED:
            return None
        if kind == BOOL:
            return self.label[i] != 0.0
        if kind == INT:
            return int(self.label[i])
        return self.label[i] if kind == FLOAT else self.classes[<Py_ssize_t>self.label[i]]

    def inside(self, Py_ssize_t i):
        """Raise IndexError if there is no event i."""
        if not 0 <= i < self.n:
            raise IndexError(f"event index must be below {self.n}, got {i}")

    def learned_weights(self):
        """Return the weight with which each event is learned, 0 for events without a label."""
        out = np.empty(self.n)
        cdef double* to = <double*><size_t>out.ctypes.data
        cdef Py_ssize_t i
        for i in range(self.n):
            to[i] = masked(self.weight[i], self.kind[i] != UNLABELED)
        return out

    def of_class(self, k):
        """Return a mask of the events with the label `classes[k]`."""
        return (self.arrays[4][:self.n] == CLASS) & (self.labels == k)

    def label_numbers(self):
        """Return numbers that are equal where labels are; None if they are classes and numbers."""
        kinds = self.arrays[4][:self.n]
        classes = np.count_nonzero(kinds == CLASS)
        return self.labels if classes in (0, np.count_nonzero(kinds)) else None
