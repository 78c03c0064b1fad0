"""Find the ends of CSV rows in a stream: a quoted line break does not end a row."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memchr, memcmp

cdef enum:
    LONGEST = 1 << 20  # bytes of a row with line breaks: limits the search for a closing quote

cdef str NUMBER = "+-.0123456789Ee"  # the characters of numbers


cdef class RowEnds:
    """Find the end of each row, independent of the blocks in which the stream is read.

    A row is invalid if its quotes are not closed within 1 MiB or before the stream ends, or are
    closed in the middle of a value. It ends with its first line, and the next line begins a row.
    Each byte is read only a few times, whatever the quotes: if the next row is inside quotes where
    its first line ends, it continues as the invalid row did, so it is not read again.
    """

    def __cinit__(self, delimiter):
        self.text = checked(delimiter).encode()
        self.delimiter = Delimiter(PyBytes_AS_STRING(self.text), PyBytes_GET_SIZE(self.text))

    cdef const char* find(self, const char* p, const char* end, bint ended) noexcept nogil:
        """Return the line break that ends the row at p, NULL if it is after `end`.

        After NULL the next call is for the same row with more bytes, else for the next row.
        `ended`: no bytes follow, so open quotes stay open.
        """
        cdef Py_ssize_t n = end - p, found
        cdef const char* stop = <const char*>memchr(p + self.line, b"\n", n - self.line)
        if stop == NULL:
            self.line = n
            return NULL
        self.line = stop - p
        if self.read(p, min(n, LONGEST), &found):
            return self.leave(p, found)
        if n < LONGEST and (found == n or (found < 0 and not (ended and self.quoted))):
            return NULL
        if self.at > self.last_at:
            self.last_at = self.at
            self.last_start = self.start
            self.last_quoted = self.quoted
            self.last_wrong = 0 <= found < n
        self.quote = 0
        return self.leave(p, self.line)

    cdef bint read(self, const char* p, Py_ssize_t n, Py_ssize_t* found) noexcept nogil:
        """Continue the row in its n bytes; return whether it ends.

        `found` is where it ends or is invalid; n: a quote is closed there; -1: neither.
        """
        cdef const char* end = p + n
        cdef const char* q
        cdef const Delimiter* by = &self.delimiter
        cdef Py_ssize_t line = self.line  # the next line break from `at` on, or n
        while True:
            if line < self.at or line > n:
                line = n
                if self.at < n:
                    q = <const char*>memchr(p + self.at, b"\n", n - self.at)
                    if q != NULL:
                        line = q - p
            if self.quote < self.at:
                self.quote = self.at
            if self.quote < n and (self.quoted or self.quote <= line):
                q = <const char*>memchr(p + self.quote, b'"', n - self.quote)
                self.quote = n if q == NULL else q - p
            if not self.quoted:
                if self.quote >= line:
                    found[0] = line if line < n else -1
                    return line < n
                self.at = self.quote + 1
                self.quoted = self.quote == self.start or (
                    self.quote - by.size >= self.start
                    and memcmp(p + self.quote - by.size, by.text, by.size) == 0)
                continue
            if line < self.quote and line < self.last_at:
                found[0] = line
                if self.last_wrong:
                    return False
                self.at = self.last_at
                self.start = self.last_start
                self.quoted = self.last_quoted
                self.last_at = 0
                continue
            self.at = self.quote
            found[0] = -1
            if self.quote == n:
                return False
            q = p + self.quote + 1
            if q < end and q[0] == b'"':
                self.at += 2
                continue
            while q < end and q[0] == b"\r":
                q += 1
            if q < end and end - q < by.size and memcmp(q, by.text, end - q) == 0:
                return False  # a part of the delimiter
            found[0] = q - p
            if q == end:
                return False
            if q[0] == b"\n":
                return True
            if q[-1] == b"\r" or not begins(q, end, by):
                return False
            self.start = self.at = q - p + by.size
            self.quoted = False

    cdef const char* leave(self, const char* p, Py_ssize_t found) noexcept nogil:
        """Begin the row after the line break that was found."""
        self.line = self.at = self.start = 0
        self.quoted = False
        self.quote = max(self.quote - found - 1, 0)
        self.last_at = max(self.last_at - found - 1, 0)
        self.last_start -= found + 1
        return p + found


def checked(delimiter):
    """Return a delimiter of CSV; ValueError if it cannot be one."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in "\"\r\n\0" + NUMBER:
        raise ValueError(
            f"delimiter {delimiter!r}: expected one character that is not part of numbers, such as"
            " ',' or '\\t'")
    return delimiter
