"""Files of Protobuf messages, each behind its length as a varint (`writeDelimitedTo`)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

cdef enum:
    BLOCK = 1 << 19  # bytes read at once
    LONGEST = 1 << 26  # bytes of a message


cdef class DelimitedFile:
    """The messages of an open file.

    >>> import io
    >>> messages = DelimitedFile(io.BytesIO(b"\\x01a\\x00\\x03bcd"))
    >>> messages.skip(1), messages.take(5), messages.take(5)
    (1, [b'', b'bcd'], [])
    """

    cdef readonly tuple headers
    cdef object file
    cdef bytes block
    cdef Py_ssize_t at  # of the next message in the block

    def __init__(self, file):
        self.file = file
        self.headers = ()
        self.block = b""

    def take(self, Py_ssize_t most):
        """Return the next messages, at most so many."""
        cdef const char* first
        cdef Py_ssize_t start, end
        found = []
        while not found:
            while len(found) < most and self.find(&start, &end):
                first = PyBytes_AS_STRING(self.block)
                found.append(PyBytes_FromStringAndSize(first + start, end - start))
            if not found and not self.refill():
                break
        return found

    def skip(self, Py_ssize_t count):
        """Skip messages; return how many there were."""
        cdef Py_ssize_t left = count, start, end
        while left:
            if self.find(&start, &end):
                left -= 1
            elif not self.refill():
                break
        return count - left

    cdef bint find(self, Py_ssize_t* start, Py_ssize_t* end) except -1:
        """Go past the next message; False if the block does not hold all of it."""
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(self.block)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(self.block), i = self.at
        cdef long long length = 0
        cdef int shift = 0
        while True:
            if i == n:
                return False
            length |= <long long>(p[i] & 127) << shift
            i += 1
            if p[i - 1] < 128:
                break
            shift += 7
            if shift > 28:
                raise ValueError("a message is longer than 4 GiB: it has no length in front")
        if length > LONGEST:
            raise ValueError(f"a message has {length} bytes, more than {LONGEST}")
        if length > n - i:
            return False
        start[0] = i
        end[0] = self.at = i + length
        return True

    cdef bint refill(self) except -1:
        """Read more; False at the end of the file."""
        cdef bytes rest = self.block[self.at:]
        cdef bytes more = self.file.read(max(BLOCK, len(rest)))
        if not more and rest:
            raise ValueError(f"the last message is cut: {len(rest)} bytes are left of it")
        self.block = rest + more
        self.at = 0
        return len(more) > 0
