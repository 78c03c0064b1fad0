"""The base class of Names and Hashing, which turns events into rows.

A row contains every slot once and no zeros. If two features of an event have the same slot
(`{"f=x": 1, "f": "x"}`, or a hash collision), their values are summed.
"""

import json

import numpy as np

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.math cimport isfinite
from libc.stdint cimport uint32_t

from streamlearn.errors import InvalidEventError, ModelFileError

from streamlearn.features.fields.spec import FieldSpec

from streamlearn.features.parser cimport EventParser
from streamlearn.features.pieces cimport Piece, Span, Text
from streamlearn.features.transforms cimport AUTO
from streamlearn.core.row cimport squared


cdef class Reader(EventParser):
    """The base of Names and Hashing."""

    def __dealloc__(self):
        PyMem_Free(self.slot)
        PyMem_Free(self.value)
        PyMem_Free(self.seen)

    def __init__(self):
        raise TypeError("Reader is abstract: use Names() or Hashing()")

    # Reading

    cdef int read(self, object event, bint grow) except -1:
        """Fill self.row; with `grow`, new names get slots, else they are skipped."""
        self.enter()
        try:
            self.gather(event)
            self.look_up(grow)
        finally:
            self.leave()
        return 0

    cdef int enter(self) except -1:
        if self.busy:
            raise RuntimeError("the reader is reading another event; finish that one first")
        self.busy = True
        self.row.n = 0
        return 0

    cdef int leave(self) except -1:
        """Finish one event or several, and remove the names that a rejected one added."""
        self.busy = False
        if self.uncommitted:
            self.uncommitted = False
            self.row.n = 0
            if self.size != self.committed_size:
                self.forget(self.committed_size, self.committed_columns)
        if self.kept:
            self.kept.clear()
        return 0

    def mark(self):
        """Return what `take_back` needs to forget the names read from now on."""
        return self.size, self.own_columns(), self.frozen()

    def take_back(self, mark):
        """Forget the names, and the values of warm-ups, that were read since the mark."""
        size, columns, frozen = mark[:3]
        if self.size != size:
            self.forget(size, columns)
        self.restore_frozen(frozen)

    cdef int look_up(self, bint grow) except -1 nogil:
        """Look up the slots of the pieces and build the row."""
        self.committed_size = self.size
        self.committed_columns = self.own_columns()
        self.uncommitted = True
        if self.n > self.row_room or self.row_room > 4 * self.n + (1 << 14):
            self.fit_row()
        self.resolve(grow)
        self.finish()
        self.row.square = squared(self.value, self.row.n)
        self.uncommitted = False
        if self.warm_count and grow:
            self.learn_warmup()
        return 0

    cdef int resolve(self, bint grow) except -1 nogil:
        with gil:
            raise NotImplementedError

    cdef int forget(self, Py_ssize_t size, Py_ssize_t columns) except -1:
        raise NotImplementedError

    cdef Py_ssize_t own_columns(self) noexcept nogil:
        return 0

    cdef int fit_row(self) except -1 with gil:
        cdef Py_ssize_t room = 2 * self.n + 16
        PyMem_Free(self.slot)
        PyMem_Free(self.value)
        self.row_room = 0
        self.slot = <int*> PyMem_Malloc(room * sizeof(int))
        self.value = <double*> PyMem_Malloc(room * sizeof(double))
        self.row.slot = self.slot
        self.row.value = self.value
        if self.slot == NULL or self.value == NULL:
            raise MemoryError(f"a row of {self.n} features")
        self.row_room = room
        return 0

    cdef int finish(self) except -1 nogil:
        """Build the row without unknown names and zeros."""
        cdef Py_ssize_t i, n = 0, count = self.n
        cdef int* slot = self.slot
        cdef double* value = self.value
        cdef const Piece* piece = self.piece
        cdef double x
        if self.repeats:
            return self.finish_merged()
        for i in range(count):
            x = piece[i].value
            slot[n] = slot[i]
            value[n] = x
            n += (slot[i] >= 0) & (x != 0.0)
        self.row.n = n
        return 0

    cdef int finish_merged(self) except -1 nogil:
        """Build the row and sum the values of each slot, found by a small hash table."""
        cdef Py_ssize_t i, k, n = 0, count = self.n, mask
        cdef bint zero = False
        cdef double x
        cdef int one
        cdef uint32_t row
        # local copies, because stores would force these to be reloaded
        cdef int* slot = self.slot
        cdef double* value = self.value
        cdef const Piece* piece = self.piece
        cdef Mark* seen
        if 2 * self.n > self.seen_room or self.rows == <uint32_t> -1:
            self.clear_seen()
        self.rows += 1
        row = self.rows
        seen = self.seen
        mask = self.seen_room - 1
        for i in range(count):
            one = slot[i]
            x = piece[i].value
            if one < 0 or x == 0.0:
                continue
            k = one & mask
            while seen[k].row == row and slot[seen[k].position] != one:
                k = (k + 1) & mask
            if seen[k].row != row:
                seen[k] = Mark(row, <int> n)
                slot[n] = one
                value[n] = x
                n += 1
                continue
            k = seen[k].position
            value[k] += x
            zero |= value[k] == 0.0
            if not isfinite(value[k]):
                self.reject_sum(i, value[k])
        self.row.n = n
        if zero:
            self.row.n = 0
            for i in range(n):
                slot[self.row.n] = slot[i]
                value[self.row.n] = value[i]
                self.row.n += value[i] != 0.0
        return 0

    cdef int reject_sum(self, Py_ssize_t i, double total) except -1 with gil:
        name = str(self.name_of_piece(i))
        raise InvalidEventError(
            f"field {name!r} and others with its name or hash sum to {total}: scale them down",
            name)

    cdef int clear_seen(self) except -1 with gil:
        cdef Py_ssize_t room = 64
        while room < 4 * self.n:
            room *= 2
        PyMem_Free(self.seen)
        self.seen_room = 0
        self.seen = <Mark*> PyMem_Calloc(room, sizeof(Mark))
        if self.seen == NULL:
            raise MemoryError(f"a row of {self.n} features")
        self.seen_room = room
        self.rows = 0
        return 0

    def read_event(self, event, grow=True):
        """Return the row of an event as a list of (slot, value), for inspection."""
        cdef Py_ssize_t i
        self.read(event, grow)
        return [(self.row.slot[i], self.row.value[i]) for i in range(self.row.n)]

    def slots_of(self, names, grow=True):
        """Return the slots of many names as an int32 array, -1 for unknown (grow=False only).

        The names are those of numeric top-level fields, such as the columns of a data frame.
        """
        cdef Text nowhere = Text(NULL, 0, 0)
        cdef Py_ssize_t i, size = self.size, columns = self.own_columns()
        cdef int* to
        self.enter()
        try:
            self.begin()
            names = list(names)
            for name in names:
                self.field(name, 1.0, nowhere, 0, AUTO)
            if self.n > self.row_room:
                self.fit_row()
            found = np.empty(self.n, dtype=np.int32)
            to = <int*> <size_t> found.ctypes.data
            try:
                self.resolve(grow)
            except BaseException:
                self.forget(size, columns)
                raise
            for i in range(self.n):
                to[i] = self.slot[i]
        finally:
            self.leave()
        return found

    # Slots and names, implemented by the subclasses

    @property
    def identity(self):
        """The number of columns j whose slot is j."""
        return self.own_columns()

    def reserve_columns(self, m):
        """Add columns 0 .. m-1 of a matrix."""
        raise NotImplementedError

    def columns(self, m, grow=True):
        """Return the slots of columns 0 .. m-1 as an int32 array; None if column j is slot j."""
        raise NotImplementedError

    def slot_of(self, name):
        """Return the slot of a name, or None."""
        raise NotImplementedError

    def name_of(self, slot):
        """Return the name of a slot."""
        raise NotImplementedError

    def names(self):
        """Return all names, in slot order."""
        raise NotImplementedError

    # Parameters and state

    @property
    def params(self):
        """The constructor's parameters, by name."""
        return {"fields": self.fields}

    @classmethod
    def params_of(cls, state):
        """Return the constructor's parameters from a state."""
        own = cls().params
        try:
            params = {name: state[name] for name in own}
            params["fields"] = FieldSpec(params["fields"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the saved features are damaged: {error!r}") from None
        return params

    def fresh(self):
        """Return an empty reader with the same parameters."""
        return type(self)(**self.params)

    def state(self):
        """Return parameters and names as plain dict, list, str and int, ready for JSON."""
        state = {
            "kind": type(self).__name__,
            **self.params,
            "fields": self.fields.texts,
        }
        frozen = self.frozen()
        return {**state, "buckets": frozen} if frozen else state

    def restore(self, state):
        """Restore what state() returned; ModelFileError, without changes, if it is invalid."""
        try:
            kind, own = state["kind"], self.state()
            differ = [name for name in ("kind", *self.params) if state[name] != own[name]]
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"the saved features are damaged: {error!r}") from None
        if differ:
            raise ModelFileError(
                f"the state of {kind} differs in {', '.join(differ)} from {self!r}: build the"
                " reader with the parameters it was saved with")
        self.restore_frozen(state.get("buckets", {}))

    def __repr__(self):
        given = ", ".join([
            f"{name}={value!r}" for name, value in self.params.items() if value or value is None])
        return f"{type(self).__name__}({given})"

    def __eq__(self, other):
        """Compare the parameters, not the names read since."""
        if not isinstance(other, Reader):
            return NotImplemented
        return type(self) is type(other) and self.params == other.params

    def reads_like(self, other):
        """Whether another reader makes the same features; `Names` may have other limits.

        >>> from streamlearn import Names
        >>> Names(max_names=9).reads_like(Names()), Names().reads_like(Names({"user": "ignore"}))
        (True, False)
        """
        return self == other

    def __hash__(self):
        return hash((type(self).__name__, *self.params.values()))

    def __reduce__(self):
        # As bytes, or the pickle would depend on which strings are shared between objects.
        state = json.dumps(self.state(), separators=(",", ":")).encode()
        return type(self).from_json, (state,)

    @classmethod
    def from_json(cls, state):
        """Build the reader from its state as JSON, for unpickling."""
        state = json.loads(state)
        reader = cls(**cls.params_of(state))
        reader.restore(state)
        return reader

    def __deepcopy__(self, memo):
        copy = self.fresh()
        copy.restore(self.state())
        return copy

    def __copy__(self):
        return self.__deepcopy__({})

    def __sizeof__(self):
        return (
            object.__sizeof__(self)
            + self.room * sizeof(Piece)
            + self.arena_room
            + self.span_room * sizeof(Span)
            + self.row_room * (sizeof(int) + sizeof(double))
            + self.seen_room * sizeof(Mark)
        )
