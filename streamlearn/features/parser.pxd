"""An event given as Python objects, taken apart."""

from cpython.object cimport PyObject

from streamlearn.features.pieces cimport Kind, Text
from streamlearn.features.transforms cimport Transforms, Value


cdef class EventParser(Transforms):
    cdef int gather(self, object event) except -1
    cdef int walk(self, dict mapping, Text path, int depth, int parent) except -1
    cdef int walk_items(self, object mapping, Text path, int depth, int parent) except -1
    cdef int field(
        self, object key, object value, Text path, int depth, int parent) except -1
    cdef int field_name(
        self, object key, Text path, int depth,
        Text* text, PyObject** name, Kind* kind) except -1
    cdef int nested(self, object mapping, Text path, int depth, int parent) except -1
    cdef int other_value(
        self, object value, Text text, PyObject* name, Kind kind, int depth) except -1
    cdef double finite(self, object value, Text field) except? -1
    cdef int strings(self, object values, Text field) except -1
    cdef int one_hot(self, PyObject* value, Text field) except -1
    cdef int declared_value(self, int k, object value, Text text, int depth) except -1
    cdef bint read_value(self, object value, Value* to, Text field) except -1
