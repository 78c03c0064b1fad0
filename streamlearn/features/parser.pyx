"""Parsing of events given as Python objects.

An event is checked completely before any name is looked up, so a rejected one leaves no names
behind.
"""

from collections.abc import Mapping
from datetime import date, datetime, time

import numpy as np

from cpython.dict cimport PyDict_CheckExact, PyDict_Next
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_FromObject
from libc.math cimport NAN, isfinite

from streamlearn.core.times import timestamp
from streamlearn.errors import InvalidEventError

from streamlearn.features.pieces cimport COLUMN, TEXT, TUPLE, Kind, Piece, Text
from streamlearn.features.text cimport ascii_of, is_ascii, length_of
from streamlearn.features.transforms cimport (
    A_BOOL, A_NUMBER, A_TEXT, AUTO, IGNORED, LIST, TIME, TOP, Transforms, Value,
)

from streamlearn.features.pieces import canonical_name, field_error, short_repr

cdef extern from "Python.h":
    bint is_float "PyFloat_CheckExact"(PyObject* value) noexcept
    bint is_str "PyUnicode_CheckExact"(PyObject* value) noexcept
    bint is_int "PyLong_CheckExact"(PyObject* value) noexcept
    bint is_bool "PyBool_Check"(PyObject* value) noexcept
    double double_of "PyFloat_AS_DOUBLE"(PyObject* value) noexcept
    long long int_of "PyLong_AsLongLongAndOverflow"(PyObject* value, int* overflow) noexcept

cdef int MAX_DEPTH = 32
cdef object ALLOWED = (
    "allowed are finite numbers, bools, strings, None, mappings,"
    " and lists, tuples or sets of strings"
)
cdef object SEQUENCES = (list, tuple, set, frozenset)
cdef object NUMBERS = (int, float, np.bool_, np.integer, np.floating)


cdef inline bint read_simple_number(PyObject* value, double* x) noexcept:
    """Read a plain float, int or bool; return False unless it is finite and fits 64 bits."""
    cdef int overflow = 0
    if is_float(value):
        x[0] = double_of(value)
        return isfinite(x[0])
    if is_int(value) or is_bool(value):
        x[0] = <double> int_of(value, &overflow)
        return overflow == 0
    return False


cdef inline bint add_simple_field(EventParser self, PyObject* key, PyObject* value) except -1:
    """Add a field of a common type, faster than field(); return False for other types."""
    cdef Piece* p
    cdef int overflow = 0
    if self.n == self.room:
        self.grow_pieces()
    p = self.piece + self.n
    p.name = key
    if is_str(key) and is_ascii(key):
        p.kind = TEXT
        p.text.at = ascii_of(key)
        p.text.length = length_of(key)
        if not read_simple_number(value, &p.value):
            if not (is_str(value) and is_ascii(value)):
                return False
            self.join(p.text, b"=", Text(ascii_of(value), 0, length_of(value)), &p.text)
            p.name = NULL
            p.value = 1.0
    elif is_int(key):
        int_of(key, &overflow)
        if overflow or not read_simple_number(value, &p.value):
            return False
        p.kind = COLUMN
        p.text.length = 0
    else:
        return False
    self.n += 1
    return True


cdef class EventParser(Transforms):
    """Reads events given as Python objects."""

    cdef int gather(self, object event) except -1:
        cdef Text nowhere = Text(NULL, 0, 0)
        self.begin()
        if PyDict_CheckExact(event):
            self.walk(event, nowhere, 0, TOP)
        elif isinstance(event, Mapping):
            self.walk_items(event, nowhere, 0, TOP)
        else:
            raise InvalidEventError(
                f"an event is a mapping of field names to values; this is of type"
                f" {type(event).__name__}")
        return self.complete()

    cdef int walk(self, dict mapping, Text path, int depth, int parent) except -1:
        cdef PyObject* key
        cdef PyObject* value
        cdef Py_ssize_t at = 0
        cdef bint simple = depth == 0 and not self.groups and not self.has_fields
        while PyDict_Next(mapping, &at, &key, &value):
            if not (simple and add_simple_field(self, key, value)):
                self.field(<object> key, <object> value, path, depth, parent)
        return 0

    cdef int walk_items(self, object mapping, Text path, int depth, int parent) except -1:
        # User code runs here and could release the objects of borrowed pointers: hold them.
        self.settle()
        items = list(mapping.items())
        self.kept.append(items)
        self.repeats = True  # a mapping of another kind may give a key twice
        for key, value in items:
            self.field(key, value, path, depth, parent)
        return 0

    cdef int field(
            self, object key, object value, Text path, int depth, int parent) except -1:
        cdef Py_ssize_t first = self.n
        cdef Text text
        cdef PyObject* name
        cdef Kind kind
        cdef double x
        cdef int declared = AUTO
        held = value  # keeps it alive while user code runs
        self.field_name(key, path, depth, &text, &name, &kind)
        if self.has_fields:
            declared = self.field_of(self.bytes_at(&text), text.length, parent)
        if declared != AUTO:
            self.declared_value(declared, held, text, depth)
        elif read_simple_number(<PyObject*> held, &x):
            self.push(text, name, kind, x)
        elif PyUnicode_CheckExact(held):
            self.one_hot(<PyObject*> held, text)
        elif PyDict_CheckExact(held):
            self.nested(held, text, depth, AUTO)
        elif held is not None:
            self.other_value(held, text, name, kind, depth)
        if self.groups:
            self.record_span(text, first)
        return 0

    cdef int field_name(
            self, object key, Text path, int depth,
            Text* text, PyObject** name, Kind* kind) except -1:
        """Build the name of a field from its key and path."""
        cdef Text own
        kind[0] = TEXT
        name[0] = NULL
        label = key
        if not PyUnicode_CheckExact(key):
            label = canonical_name(key)
            if label is None:
                where = f" inside field {short_repr(self.decode(path))}" if depth else ""
                raise InvalidEventError(
                    f"field name {short_repr(key)}{where} is of type {type(key).__name__}: use str"
                    " of valid Unicode, int of 64 bits, or tuples of these", short_repr(key))
            if not PyUnicode_CheckExact(label):
                self.kept.append(label)
                if depth == 0:
                    kind[0] = TUPLE if isinstance(label, tuple) else COLUMN
                    name[0] = <PyObject*> label
                label = str(label)
            self.kept.append(label)
        self.utf8(<PyObject*> label, &own, NULL)
        if depth:
            self.join(path, b".", own, text)
        else:
            text[0] = own
            if kind[0] == TEXT:
                name[0] = <PyObject*> label
        return 0

    cdef int nested(self, object mapping, Text path, int depth, int parent) except -1:
        if depth == MAX_DEPTH:
            raise field_error(
                self.decode(path),
                f"is nested more than {MAX_DEPTH} levels deep: flatten it or leave it out")
        if PyDict_CheckExact(mapping):
            return self.walk(mapping, path, depth + 1, parent)
        return self.walk_items(mapping, path, depth + 1, parent)

    cdef int other_value(
            self, object value, Text text, PyObject* name, Kind kind, int depth) except -1:
        """Add a value of a rarer type, or a number that may not be finite."""
        if not is_float(<PyObject*> value):
            self.settle()
        if isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64):
            return self.push(text, name, kind, self.finite(value, text))
        if isinstance(value, SEQUENCES):
            return self.strings(value, text)
        if isinstance(value, str):
            return self.one_hot(<PyObject*> value, text)
        if isinstance(value, Mapping):
            return self.nested(value, text, depth, AUTO)
        raise field_error(self.decode(text), f"is of type {type(value).__name__}: {ALLOWED}")

    cdef double finite(self, object value, Text field) except? -1:
        try:
            x = float(value)
        except OverflowError:
            raise field_error(
                self.decode(field), "is an int too large for a float: scale it down") from None
        if not isfinite(x):
            raise field_error(
                self.decode(field),
                f"is {x}: values must be finite; for a missing one leave the field out or give"
                " None")
        return x

    cdef int strings(self, object values, Text field) except -1:
        """Add one-hots of distinct strings, in an order that does not depend on the hash seed."""
        cdef list found = []
        for value in values:
            if isinstance(value, str):
                found.append(PyUnicode_FromObject(value))
            elif value is not None:
                raise field_error(
                    self.decode(field),
                    f"holds {short_repr(value)} of type {type(value).__name__}: lists, tuples and"
                    " sets may hold strings only; give each number a name in a mapping instead")
        if isinstance(values, (set, frozenset)):
            found.sort()
        elif len(found) > 1:
            found = list(dict.fromkeys(found))
        for value in found:
            self.one_hot(<PyObject*> value, field)
        return 0

    cdef int one_hot(self, PyObject* value, Text field) except -1:
        cdef Text tail, text
        if is_ascii(value):
            tail = Text(ascii_of(value), 0, length_of(value))
        else:
            self.utf8(value, &tail, &field)
        self.join(field, b"=", tail, &text)
        return self.push(text, NULL, TEXT, 1.0)

    # Declared fields

    cdef int declared_value(self, int k, object value, Text text, int depth) except -1:
        """Add a field of this transform, or that is ignored."""
        cdef Value one
        cdef Py_ssize_t first = self.n
        if k == IGNORED:
            if isinstance(value, Mapping) and self.has_inner(self.bytes_at(&text), text.length):
                self.nested(value, text, depth, IGNORED)
            return 0
        if value is None:
            return 0
        if self.read_value(value, &one, text):
            return self.put(k, text, &one)
        self.settle()
        if isinstance(value, Mapping) and self.nests(k):
            return self.nested(value, text, depth, self.inside(k))
        if isinstance(value, SEQUENCES) and self.transform[k].kind == LIST:
            for item in sorted_items(value):
                if item is None:
                    continue
                if not self.read_value(item, &one, text):
                    self.invalid(self.transform + k, text, (
                        f"holds {short_repr(item)} of type {type(item).__name__}: a list holds"
                        " text, numbers and bools"))
                else:
                    self.put_category(self.transform + k, text, &one)
            return self.end_list(k, text, first)
        if isinstance(value, date) and self.transform[k].kind == TIME:
            try:
                moment = value if isinstance(value, datetime) else datetime.combine(value, time())
                self.read_value(timestamp(moment) / self.transform[k].unit, &one, text)
            except (OverflowError, ValueError):
                one.kind, one.number, one.text, one.length = A_NUMBER, NAN, NULL, 0
            return self.put(k, text, &one)
        self.invalid(self.transform + k, text, (
            f"is {short_repr(value)} of type {type(value).__name__}, which a"
            f" {self.kind_of(k)} cannot hold: declare it as another kind"))
        return 0

    cdef bint read_value(self, object value, Value* to, Text field) except -1:
        """Whether a value is a number, a bool or text; then set `to`, valid as long as it lives."""
        cdef Text text
        to.text, to.length, to.number = NULL, 0, 0.0
        if isinstance(value, str):
            self.utf8(<PyObject*> value, &text, &field)
            to.kind, to.text, to.length = A_TEXT, text.at, text.length
        elif isinstance(value, (bool, np.bool_)):
            to.kind, to.number = A_BOOL, bool(value)
        elif isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64):
            to.kind = A_NUMBER
            try:
                to.number = float(value)
            except OverflowError:
                to.number = NAN
            if isinstance(value, (int, np.integer)):
                try:
                    digits = str(int(value))
                except ValueError:  # more than Python writes
                    to.number = NAN
                else:
                    self.kept.append(digits)
                    to.text, to.length = ascii_of(<PyObject*> digits), len(digits)
        else:
            return False
        return True


def sorted_items(values):
    """Return the items of a list, or those of a set in an order that depends on nothing else."""
    if isinstance(values, (set, frozenset)):
        return sorted(values, key=lambda item: (type(item).__name__, str(item)))
    return values
