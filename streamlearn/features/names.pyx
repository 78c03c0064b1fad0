"""Exact features: every name has a slot of its own, in a table that grows."""

import sys

import numpy as np

from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from streamlearn.errors import ModelFileError

from streamlearn.features.pieces cimport SLOT, TEXT, Piece, Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.text cimport bytes_of, hash_text, is_ascii, kept_bytes_of
from streamlearn.core.row cimport prefetch

from streamlearn.features.pieces import canonical_name

cdef extern from "Python.h":
    PyObject* item_of "PyList_GET_ITEM"(PyObject* items, Py_ssize_t i) noexcept nogil

# Different in every process, so that nobody can construct a stream of colliding names.
cdef uint64_t SEED = <uint64_t> <long long> hash("streamlearn")
cdef Py_ssize_t MAX_SLOTS = 0x7FFFFFFF
cdef tuple BOUNDS = ("max_names", "max_bytes")
cdef tuple LIMITS = (*BOUNDS, "on_full")
cdef enum:
    MAX_NAME_BYTES = 1024  # bytes of a name; of a longer one its beginning is kept, and a hash
    STORED_BYTES = MAX_NAME_BYTES - 17  # bytes of that beginning: before a # and 16 digits
    NAME_OVERHEAD = 100  # bytes that a name takes besides its text: object, list and table entries
    MIN_TABLE_BYTES = 10_000  # of a table


cdef inline Py_ssize_t find(
        Names self, const char* text, Py_ssize_t length, PyObject* name,
        uint32_t hash) noexcept nogil:
    """The slot of a text, -1 if it has none; name: the str it came as, if any."""
    cdef Py_ssize_t mask = self.cells - 1, k = hash & mask, n
    cdef Cell cell = self.cell[k]
    cdef PyObject* there
    cdef const char* own
    while cell.slot:
        if cell.hash == hash:
            there = item_of(<PyObject*> self.known, cell.slot - 1 - self.column_count)
            if there == name:
                return cell.slot - 1
            own = kept_bytes_of(there, &n)
            if n == length and memcmp(own, text, n) == 0:
                return cell.slot - 1
        k = (k + 1) & mask
        cell = self.cell[k]
    return -1


cdef class Names(Reader):
    """Features with exact names; a name gets the next slot when it is first learned.

    An event is a mapping of field names (str, int or tuple) to values:

    - a number or bool: the feature `field`; 0 counts as absent, but adds the name;
    - a string: the feature `field=value` with value 1;
    - a list, tuple or set of strings: such a feature for each distinct string;
    - a mapping: its fields with dotted names, `field.inner`;
    - None: absent.

    `fields` declares what fields are, by name; inner fields have dotted names. An interaction of
    fields adds their products:

    >>> reader = Names({"user^ad": "interaction"})
    >>> reader.read_event({"user": "ann", "ad": {"id": "7", "price": 2.5}})
    [(0, 1.0), (1, 1.0), (2, 2.5), (3, 1.0), (4, 2.5)]
    >>> reader.names()
    ['user=ann', 'ad.id=7', 'ad.price', 'user=ann^ad.id=7', 'user=ann^ad.price']

    Predictions skip unknown names:

    >>> reader.read_event({"user": "bob", "ad": {"price": 2.0}}, grow=False)
    [(2, 2.0)]

    With `max_names` the table stops growing there. Later names are hashed into a quarter as many
    further slots, called `#0`, `#1`, ..., or ignored (`on_full="ignore"`); `rejected_features`
    counts their occurrences.

    >>> small = Names(max_names=2, on_full="ignore")
    >>> small.read_event({"a": 1, "b": 2, "c": 3}), small.rejected_features
    ([(0, 1.0), (1, 2.0)], 1)

    With `max_bytes` it stops growing when the next name would exceed that memory. A name counts as
    100 bytes plus its UTF-8, which counts twice if it is not ASCII. A full table stays full.
    `bytes_used` is the memory of the names so far.

    A name of more than 1,024 bytes, such as that of a long text, is stored as its beginning and a
    hash of the whole name, so long texts do not fill the table.

    >>> long = Names()
    >>> row = long.read_event({"comment": "a long story " * 1000})
    >>> long.names()[0][:20], long.names()[0][-17:], long.bytes_used
    ('comment=a long story', '#e63538122b5085e1', 1124)

    Invalid events are rejected before anything changes:

    >>> reader.read_event({"new": 1, "age": float("nan")})
    Traceback (most recent call last):
    ...
    streamlearn.errors.InvalidEventError: field 'age' is nan: values must be finite; for a missing \
one leave the field out or give None
    >>> reader.size
    5
    """

    def __cinit__(self, *args, **kwargs):
        self.known = []
        self.other_slots = {}
        self.rebuild(64, 0)

    def __dealloc__(self):
        PyMem_Free(self.cell)

    def __init__(self, fields=None, max_names=None, on_full="hash", max_bytes=None):
        self._set_fields(fields)
        self.max_names, self.max_bytes, self.on_full = max_names, max_bytes, on_full
        if on_full not in ("hash", "ignore"):
            raise ValueError(f"on_full={on_full!r}: 'hash' or 'ignore'")
        self.max_slots = bound("max_names", max_names, 1, MAX_SLOTS // 2, MAX_SLOTS)
        self.byte_limit = bound("max_bytes", max_bytes, MIN_TABLE_BYTES, sys.maxsize, sys.maxsize)
        self.limit = self.max_slots

    def mark(self):
        """Return what `take_back` needs to forget the names read from now on."""
        return *Reader.mark(self), self.rejected_features

    def take_back(self, mark):
        """Forget the names, and the values of warm-ups, that were read since the mark."""
        Reader.take_back(self, mark)
        self.rejected_features = mark[3]

    # Looking up

    cdef int resolve(self, bint grow) except -1 nogil:
        cdef Py_ssize_t i, slot
        cdef Piece* p
        for i in range(self.n):  # first all hashes, so that the cells are under way together
            p = self.piece + i
            if p.kind == TEXT:
                p.hash = hash_text(self.bytes_at(&p.text), p.text.length, SEED)
                prefetch(self.cell + (p.hash & (self.cells - 1)))
        for i in range(self.n):
            p = self.piece + i
            if p.kind == TEXT:
                slot = find(
                    self, self.bytes_at(&p.text), p.text.length, p.name, <uint32_t> p.hash)
                if slot < 0 and (
                        grow or self.size >= self.limit or p.text.length > MAX_NAME_BYTES):
                    slot = self.slot_of_new_text(i, grow)
            elif p.kind == SLOT:
                slot = (<int*> <size_t> p.hash)[0]
                if slot < 0:
                    slot = self.find_kept(i, grow)
            elif p.name == NULL and p.hash < <uint64_t> self.column_count:
                slot = <Py_ssize_t> p.hash
            else:
                slot = self.slot_of_other(i, grow)
            self.slot[i] = <int> slot
        return 0

    cdef Py_ssize_t find_kept(self, Py_ssize_t i, bint grow) except -2 nogil:
        """Return the slot of a text, or -1, and keep it if it is the text's own."""
        cdef Piece* p = self.piece + i
        cdef int* kept = <int*> <size_t> p.hash
        cdef Py_ssize_t slot
        p.kind = TEXT
        p.hash = hash_text(self.bytes_at(&p.text), p.text.length, SEED)
        slot = find(self, self.bytes_at(&p.text), p.text.length, NULL, <uint32_t> p.hash)
        if slot < 0 and (grow or self.size >= self.limit or p.text.length > MAX_NAME_BYTES):
            slot = self.slot_of_new_text(i, grow)
        if slot < self.limit:  # those of full tables are counted
            kept[0] = <int> slot
        return slot

    cdef Py_ssize_t slot_of_long_name(self, Piece* p) except -2:
        """Return the slot of a long name by its stored form, or -1."""
        cdef bytes text = shortened(self.bytes_at(&p.text), p.text.length)
        cdef Py_ssize_t length = len(text)
        if length > self.arena_room - self.used:
            self.reserve_text(length)
        memcpy(self.arena + self.used, <const char*> text, length)
        p.text = Text(NULL, self.used, length)
        p.name = NULL
        p.kind = TEXT
        self.used += length
        self.repeats = True  # perhaps
        p.hash = hash_text(self.arena + p.text.start, length, SEED)
        return find(self, self.arena + p.text.start, length, NULL, <uint32_t> p.hash)

    cdef Py_ssize_t slot_of_new_text(self, Py_ssize_t i, bint grow) except -2 with gil:
        """Return the slot for an unknown text, or -1 to skip it."""
        cdef Piece* p = self.piece + i
        cdef Py_ssize_t slot
        if p.text.length > MAX_NAME_BYTES:
            slot = self.slot_of_long_name(p)
            if slot >= 0:
                return slot
        if self.size < self.limit:
            if not grow:
                return -1
            name = self.name_of_piece(i)
            if self.has_capacity(cost_of_text(name)):
                return self.add_text(name, <uint32_t> p.hash)
        return self.overflow_slot(i, grow)

    cdef bint has_capacity(self, Py_ssize_t cost) noexcept:
        """Return whether a name of this cost fits; if not, the table is full from now on."""
        if cost <= self.byte_limit - self.bytes_used:
            return True
        self.limit = self.size
        return False

    cdef Py_ssize_t slot_of_other(self, Py_ssize_t i, bint grow) except -2 with gil:
        """Return the slot of an int or tuple name, or -1 to skip it."""
        cdef Py_ssize_t slot
        if self.piece[i].text.length > MAX_NAME_BYTES:
            return self.slot_of_new_text(i, grow)
        name = self.name_of_piece(i)
        slot = self.find_other(name)
        if slot >= 0:
            return slot
        if self.size < self.limit:
            if not grow:
                return -1
            if self.is_next_column(name) or self.has_capacity(cost_of_other(name)):
                return self.add_other(name)
        return self.overflow_slot(i, grow)

    cdef Py_ssize_t overflow_slot(self, Py_ssize_t i, bint grow) except -2:
        """Return the slot of a name without its own slot, or -1 to skip it."""
        cdef bytes text
        if grow:
            self.rejected_features += 1
        if self.on_full == "ignore" or self.limit > MAX_SLOTS // 2:
            return -1
        if not (grow or self.has_buckets):
            return -1
        if not self.has_buckets:
            self.add_buckets()
        text = str(self.name_of_piece(i)).encode()
        self.repeats = True
        # the same hash in every process, unlike that of the cells, because models move
        return self.limit + <Py_ssize_t> (
            hash_text(text, len(text), 0) & <uint64_t> (self.buckets - 1))

    cdef int add_buckets(self) except -1:
        """Add the slots for hashed names."""
        self.buckets = 1
        while 4 * self.buckets < self.limit:
            self.buckets *= 2
        self.has_buckets = True
        self.size = self.limit + self.buckets
        return 0

    cdef bint is_next_column(self, object name) except -1:
        """Return whether it is the next column of a table of columns, which needs no memory."""
        return not self.known and PyLong_CheckExact(name) and name == self.size

    cdef Py_ssize_t find_other(self, object name) except -2:
        cdef long long column
        if PyLong_CheckExact(name):
            column = name
            if 0 <= column < self.column_count:
                return column
        found = self.other_slots.get(name)
        return -1 if found is None else found

    cdef Py_ssize_t add_text(self, object name, uint32_t hash) except -1:
        cdef Py_ssize_t k
        bytes_of(<PyObject*> name, &k)  # from now on it keeps them, for `find`
        if 2 * self.text_count >= self.cells:
            self.rebuild(4 * self.cells, self.size)
        k = hash & (self.cells - 1)
        while self.cell[k].slot:
            k = (k + 1) & (self.cells - 1)
        self.cell[k] = Cell(hash, <uint32_t> self.add(name) + 1)
        self.text_count += 1
        self.bytes_used += cost_of_text(name)
        return self.size - 1

    cdef Py_ssize_t add_other(self, object name) except -1:
        if self.is_next_column(name):
            self.column_count += 1
            self.size += 1
        else:
            self.other_slots[name] = self.add(name)
            self.bytes_used += cost_of_other(name)
        return self.size - 1

    cdef Py_ssize_t add(self, object name) except -1:
        if self.size >= MAX_SLOTS:
            raise MemoryError(f"a table holds at most {MAX_SLOTS} names")
        self.known.append(name)
        self.size += 1
        return self.size - 1

    cdef int forget(self, Py_ssize_t size, Py_ssize_t columns) except -1:
        cdef Py_ssize_t first = max(0, size - self.column_count)
        for name in self.known[first:]:
            if PyUnicode_CheckExact(name):
                self.bytes_used -= cost_of_text(name)
            else:
                self.bytes_used -= cost_of_other(name)
                del self.other_slots[name]
        del self.known[first:]
        self.rebuild(self.cells, size)
        self.column_count = columns
        self.size = size
        self.revision += 1
        self.has_buckets = size > self.limit
        if size < self.limit:  # a rejected event does not fill the table
            self.limit = self.max_slots
        return 0

    cdef int rebuild(self, Py_ssize_t cells, Py_ssize_t size) except -1:
        """Build a new table of cells for the slots below `size`."""
        cdef Cell* old = self.cell
        cdef Cell* new = <Cell*> PyMem_Calloc(cells, sizeof(Cell))
        cdef Py_ssize_t i, k
        if new == NULL:
            raise MemoryError(f"a table of {cells} cells")
        self.text_count = 0
        for i in range(self.cells):
            if old[i].slot and old[i].slot <= size:
                k = old[i].hash & (cells - 1)
                while new[k].slot:
                    k = (k + 1) & (cells - 1)
                new[k] = old[i]
                self.text_count += 1
        PyMem_Free(old)
        self.cell = new
        self.cells = cells
        return 0

    cdef Py_ssize_t own_columns(self) noexcept nogil:
        return self.column_count

    # Columns of a matrix

    def reserve_columns(self, m):
        """Add columns 0 .. m-1, without memory as long as the table contains only columns.

        >>> reader = Names()
        >>> reader.reserve_columns(10_000_000)
        >>> reader.slot_of(1234567), reader.size
        (1234567, 10000000)
        """
        if m > MAX_SLOTS:
            raise ValueError(f"{m} columns: a table holds at most {MAX_SLOTS} names")
        if not self.known and m > self.column_count:
            if m > self.limit:
                raise ValueError(
                    f"{m} columns are more than max_names={self.max_names}: allow more, or use"
                    " Hashing")
            self.column_count = self.size = m

    def columns(self, m, grow=True):
        """Return the slots of columns 0 .. m-1 as an int32 array; None if column j is slot j.

        With grow=False nothing changes, and unknown columns have slot -1.

        >>> reader = Names()
        >>> reader.columns(2) is None
        True
        >>> row = reader.read_event({"age": 30.0})
        >>> reader.columns(4)
        array([0, 1, 3, 4], dtype=int32)
        """
        if grow:
            self.reserve_columns(m)
        if m <= self.column_count:
            return None
        if self.mapping is not None and m <= len(self.mapping):
            return self.mapping[:m]
        found = np.full(m, -1, dtype=np.int32)
        found[:self.column_count] = np.arange(self.column_count)
        for name, slot in self.other_slots.items():
            if isinstance(name, int) and 0 <= name < m:
                found[name] = slot
        if grow:
            new = np.flatnonzero(found < 0).tolist()
            if self.size + len(new) > self.limit or (
                    len(new) * cost_of_other(m) > self.byte_limit - self.bytes_used):
                raise ValueError(
                    f"{m} columns are more than max_names={self.max_names} and"
                    f" max_bytes={self.max_bytes} leave room for: allow more, or use Hashing")
            for column in new:
                found[column] = self.add_other(column)
            found.flags.writeable = False
            self.mapping = found
        return found

    # Names

    def slot_of(self, name):
        """Return the slot of a name, or None.

        >>> reader = Names()
        >>> row = reader.read_event({"user": "ann", "age": 30})
        >>> reader.slot_of("user=ann"), reader.slot_of("age"), reader.slot_of("user")
        (0, 1, None)
        """
        cdef Py_ssize_t slot
        name = canonical_name(name)
        if name is None:
            return None
        name = stored_name(name)
        text = str(name).encode()
        if isinstance(name, str):
            slot = find(
                self, text, len(text), NULL, <uint32_t> hash_text(text, len(text), SEED))
        else:
            slot = self.find_other(name)
        if slot < 0 and self.has_buckets:
            return self.limit + (
                hash_text(text, len(text), 0) & <uint64_t> (self.buckets - 1))
        return None if slot < 0 else slot

    def name_of(self, slot):
        """Return the name of a slot."""
        if not 0 <= slot < self.size:
            raise IndexError(f"slot must be below {self.size}, got {slot}")
        if slot >= self.limit:
            return f"#{slot - self.limit}"
        return slot if slot < self.column_count else self.known[slot - self.column_count]

    def names(self):
        """Return all names, in slot order."""
        beyond = [f"#{k}" for k in range(self.buckets)] if self.has_buckets else []
        return [*range(self.column_count), *self.known, *beyond]

    def saved_names(self, start=0):
        """Return the names after the columns, from the `start`-th on, ready for JSON."""
        return [list_of(name) if isinstance(name, tuple) else name for name in self.known[start:]]

    @property
    def name_count(self):
        """The number of names that `saved_names` returns."""
        return len(self.known)

    def extend(self, names):
        """Add names that `saved_names` returned."""
        for name in names:
            self.add_stored(name)

    # State

    def state(self, *, names=True):
        """Return parameters and names as plain dict, list, str and int, ready for JSON."""
        saved = self.saved_names() if names else []
        state = {**Reader.state(self), "columns": self.column_count, "names": saved}
        if self.is_bounded():
            state["full"] = self.full
            state["has_buckets"] = bool(self.has_buckets)
            state["rejected_features"] = self.rejected_features
        return state

    cdef bint is_bounded(self) noexcept:
        return self.max_names is not None or self.max_bytes is not None

    @property
    def full(self):
        """Whether the table is full: new names get no slot of their own."""
        return self.size >= self.limit

    @property
    def params(self):
        """The constructor's parameters, by name."""
        params = Reader.params.__get__(self)
        for name in BOUNDS:
            if getattr(self, name) is not None:
                params[name] = getattr(self, name)
        if self.is_bounded():
            params["on_full"] = self.on_full
        return params

    @classmethod
    def params_of(cls, state):
        """Return the constructor's parameters from a state."""
        params = super().params_of(state)
        bounds = {name: state[name] for name in BOUNDS if state.get(name) is not None}
        return {**params, **bounds, "on_full": state.get("on_full")} if bounds else params

    def reads_like(self, other):
        return isinstance(other, Names) and self.fields == other.fields

    def adopt(self, Names other):
        """Take the names of another reader that reads alike, within the own limits.

        A table that is full stays full.
        """
        if other.full and not self.is_bounded() or other.has_buckets and self.on_full == "ignore":
            raise ValueError(
                f"the table of names is full: share {other!r}, or a reader with its `on_full` and"
                " other limits")
        self.restore({**other.state(), **{name: getattr(self, name) for name in LIMITS}})

    def restore(self, state):
        """Restore what state() returned; ModelFileError, without changes, if it is invalid."""
        Reader.restore(self, state)
        for bound_name in BOUNDS:
            if state.get(bound_name) != getattr(self, bound_name):
                raise ModelFileError(
                    f"the state of Names differs in {bound_name} from {self!r}: build the reader"
                    " with the parameters it was saved with")
        cdef Names new = Names()
        columns, names = state.get("columns"), state.get("names")
        if type(columns) is not int or not 0 <= columns <= MAX_SLOTS or type(names) is not list:
            raise ModelFileError("the table of names is damaged: no columns or no names")
        new.reserve_columns(columns)
        if columns + len(names) > self.max_slots:
            raise ModelFileError("the table of names is damaged: more names than max_names")
        for name in names:
            new.add_stored(name)
        full, has_buckets = state.get("full", False), state.get("has_buckets", False)
        rejected = state.get("rejected_features", 0)
        if type(has_buckets) is not bool or type(full) is not bool or type(rejected) is not int or (
                full and not self.is_bounded() or has_buckets and not full
                or has_buckets and self.on_full == "ignore"):
            raise ModelFileError("the table of names is damaged: its capacity is inconsistent")
        self.known, new.known = new.known, self.known
        self.other_slots = new.other_slots
        self.cell, new.cell = new.cell, self.cell
        self.cells, self.text_count = new.cells, new.text_count
        self.column_count, self.size = new.column_count, new.size
        self.mapping = None
        self.revision += 1
        self.bytes_used, self.rejected_features = new.bytes_used, rejected
        self.limit = self.size if full or self.bytes_used > self.byte_limit else self.max_slots
        self.has_buckets = False
        if has_buckets:
            self.add_buckets()

    cdef int add_stored(self, object saved) except -1:
        name = tuple_of(saved)
        if canonical_name(name) != name or isinstance(name, bool) or stored_name(name) != name:
            raise ModelFileError(f"the table of names is damaged: {saved!r} is no name")
        if self.slot_of(name) is not None:
            raise ModelFileError(f"the table of names is damaged: {saved!r} is there twice")
        if isinstance(name, str):
            text = name.encode()
            self.add_text(name, <uint32_t> hash_text(text, len(text), SEED))
        else:
            self.other_slots[name] = self.add(name)
            self.bytes_used += cost_of_other(name)
        return 0

    def __deepcopy__(self, memo):
        cdef Names copy = self.fresh()
        cdef Cell* cell = <Cell*> PyMem_Calloc(self.cells, sizeof(Cell))
        if cell == NULL:
            raise MemoryError(f"a table of {self.cells} cells")
        memcpy(cell, self.cell, self.cells * sizeof(Cell))
        PyMem_Free(copy.cell)
        copy.cell, copy.cells, copy.text_count = cell, self.cells, self.text_count
        copy.known = self.known.copy()
        copy.other_slots = self.other_slots.copy()
        copy.column_count, copy.size, copy.mapping = self.column_count, self.size, self.mapping
        copy.has_buckets, copy.rejected_features = self.has_buckets, self.rejected_features
        copy.limit, copy.buckets, copy.bytes_used = self.limit, self.buckets, self.bytes_used
        return copy

    def __sizeof__(self):
        return Reader.__sizeof__(self) + self.cells * sizeof(Cell)


cdef bytes shortened(const char* text, Py_ssize_t length):
    """Return the stored form of a long name."""
    cdef Py_ssize_t n = STORED_BYTES
    while <unsigned char> text[n] & 0xC0 == 0x80:  # in the middle of a character
        n -= 1
    return text[:n] + b"#%016x" % hash_text(text, length, 0)


def stored_name(name):
    """Return the name as the table stores it."""
    cdef bytes text
    if isinstance(name, int):
        return name
    text = str(name).encode()
    return name if len(text) <= MAX_NAME_BYTES else shortened(text, len(text)).decode()


cdef Py_ssize_t cost_of_text(object name) except -1:
    """Return the bytes of a name; one that is not ASCII also caches its UTF-8."""
    cdef Py_ssize_t length
    bytes_of(<PyObject*> name, &length)
    return NAME_OVERHEAD + (length if is_ascii(<PyObject*> name) else 2 * length)


cdef Py_ssize_t cost_of_other(object name) except -1:
    """Return an upper bound on the bytes of an int or a tuple, which are rare."""
    return 2 * NAME_OVERHEAD + 16 * len(str(name))


def bound(name, value, least, most, otherwise):
    """Check a bound of the table; return `otherwise` for None."""
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name}={value!r}: an integer from {least} to {most}")
    return value


def list_of(name):
    """Convert nested tuples to lists, for JSON."""
    return [list_of(part) for part in name] if isinstance(name, tuple) else name


def tuple_of(saved):
    """Invert list_of."""
    return tuple([tuple_of(part) for part in saved]) if isinstance(saved, list) else saved
