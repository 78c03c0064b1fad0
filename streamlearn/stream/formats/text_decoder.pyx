"""The base of text formats: lines are read in place, without the GIL, while others learn."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from libc.string cimport memcpy

from streamlearn.engine.events cimport Events
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.sources.lines cimport PADDING, LineSlice

from streamlearn.errors import InvalidEventError


cdef class TextDecoder(Decoder):
    """The base of text formats."""

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        Decoder.__init__(self, reader, fields, learners, grow_always)
        self.copy = bytearray(2 * PADDING)

    cdef int line(self, const char* p, const char* end, Events events) except -1 nogil:
        """Append the event of a line.

        It ends in a zero byte, and PADDING bytes before and after it can be read.
        """
        with gil:
            raise NotImplementedError

    cdef int record(self, bytes value, Events events) except -1:
        cdef Py_ssize_t n = PyBytes_GET_SIZE(value)
        cdef char* p
        if len(self.copy) < n + 2 * PADDING:
            self.copy = bytearray(2 * n + 2 * PADDING)
        p = PyByteArray_AS_STRING(self.copy) + PADDING
        memcpy(p, PyBytes_AS_STRING(value), n + 1)
        self.reader.enter()
        try:
            self.line(p, p + n, events)
        finally:
            self.reader.leave()
        return 0

    def decode(self, values, Events events, order=None, headers=None):
        """Append the events of these records; null is a tombstone.

        `order`: the places in `values` to decode, in this order. `headers` are not read.
        """
        if order is None and isinstance(values, LineSlice):
            self.own(events)
            self.lines(values, events)
        else:
            Decoder.decode(self, values, events, order, headers)

    cdef int lines(self, LineSlice values, Events events) except -1:
        """Append the events of lines of a block."""
        cdef Py_ssize_t i = 0
        cdef const char* p
        cdef const char* end
        while i < values.n:
            self.reader.enter()
            try:
                with nogil:
                    while i < values.n:
                        p = values.line(i, &end)
                        i += 1
                        events.byte_count += end - p
                        self.begin()
                        self.line(p, end, events)
                        events.records += 1
            except InvalidEventError as error:
                events.refuse(error)
                events.records += 1
            finally:
                self.reader.leave()
        return 0
