"""The words of a text: runs of letters, digits and underscores, in lowercase."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free

from streamlearn.core.memory cimport reallocate
from streamlearn.features.text cimport put_utf8, read_utf8

cdef extern from "Python.h":
    bint is_alphanumeric "Py_UNICODE_ISALNUM"(uint32_t c) noexcept nogil
    uint32_t lowercase "Py_UNICODE_TOLOWER"(uint32_t c) noexcept nogil


cdef class Tokens:
    """The words of the last text that was split; their memory is used again."""

    def __dealloc__(self):
        free(self.text)
        free(self.token)

    cdef int split(self, const char* p, Py_ssize_t length) except -1 nogil:
        """Write the words of this text, in lowercase with a space around each."""
        cdef Py_ssize_t words = 0, used = 1
        cdef const char* end = p + length
        cdef bint inside = False
        cdef unsigned char c
        cdef uint32_t code
        cdef char* to
        if 2 * (end - p) + 16 > self.room:
            with gil:
                self.room = 3 * (end - p) + 256
                self.text = <char*> reallocate(self.text, self.room)
                self.token_room = self.room // 4 + 8  # a word and its space: two bytes
                self.token = <Token*> reallocate(self.token, self.token_room * sizeof(Token))
        self.text[0] = b" "
        while p < end:
            c = <unsigned char> p[0]
            if c < 0x80:
                p += 1
                if 65 <= c <= 90:
                    c += 32
                if not (97 <= c <= 122 or 48 <= c <= 57 or c == b"_"):
                    if inside:
                        inside = False
                        self.token[words].last = used
                        words += 1
                        self.text[used] = b" "
                        used += 1
                    continue
                if not inside:
                    inside = True
                    self.token[words].first = used
                self.text[used] = <char> c
                used += 1
                continue
            code = read_utf8(&p)
            if is_alphanumeric(code):
                if not inside:
                    inside = True
                    self.token[words].first = used
                to = self.text + used
                used += put_utf8(to, lowercase(code)) - to
            elif inside:
                inside = False
                self.token[words].last = used
                words += 1
                self.text[used] = b" "
                used += 1
        if inside:
            self.token[words].last = used
            words += 1
            self.text[used] = b" "
        self.n = words
        return 0
