"""The grammar of CSV: the values of a row, and the end of a row in a stream.

This is the grammar of Python's csv with `strict=True`: a quote at the beginning of a value opens
it, two quotes inside are one, and a delimiter or the row's end follows the closing quote. A quote
elsewhere in a value is literal.
"""

from libc.string cimport memcmp

from streamlearn.core.numbers cimport utf8_length

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* Where one of three bytes comes, or one that is not ASCII; `end` if none does before it.
       Eight bytes behind it can be read. */
    static inline const char *streamlearn_scan_value(
        const char *p, const char *end, char a, char b, char c
    ) {
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        const uint64_t ones = 0x0101010101010101u;
        for (; p < end; p += 8) {
            uint64_t x, xa, xb, xc, found;
            memcpy(&x, p, 8);
            xa = x ^ ones * (unsigned char)a;
            xb = x ^ ones * (unsigned char)b;
            xc = x ^ ones * (unsigned char)c;
            /* the lowest bit that is set is right, whatever those above it are */
            found = ((xa - ones) & ~xa) | ((xb - ones) & ~xb) | ((xc - ones) & ~xc) | x;
            found &= ones << 7;
            if (found) {
                p += __builtin_ctzll(found) >> 3;
                return p < end ? p : end;
            }
        }
        return end;
    #else
        while (p < end && *p != a && *p != b && *p != c && (unsigned char)*p < 0x80) p++;
        return p;
    #endif
    }
    """
    const char* scan_value "streamlearn_scan_value"(
        const char* p, const char* end, char a, char b, char c) noexcept nogil

cdef enum Fault:
    OPEN  # no closing quote
    AFTER_QUOTE  # text follows a closing quote
    BREAK  # a line break outside quotes
    NO_UTF8

cdef struct Delimiter:  # the bytes of one character
    const char* text
    Py_ssize_t size

cdef struct Value:
    const char* text  # without its quotes
    Py_ssize_t length
    bint doubled  # contains doubled quotes
    Fault fault  # if there is no value


cdef inline bint begins(const char* p, const char* end, const Delimiter* by) noexcept nogil:
    """Whether a delimiter is at p, which is before `end`."""
    return p[0] == by.text[0] and (
        by.size == 1 or (end - p >= by.size and memcmp(p, by.text, by.size) == 0))


cdef inline const char* read_value(
        const char* p, const char* end, const Delimiter* by, Value* value) noexcept nogil:
    """Read the value at p of the row that ends at `end`; return its end, NULL if it is invalid.

    Eight bytes after the row can be read; no quote is at `end`.
    """
    cdef int more
    value.doubled = False
    if p[0] == b'"':
        p += 1
        value.text = p
        while True:
            p = scan_value(p, end, b'"', b'"', b'"')
            if p >= end:
                value.fault = OPEN
                return NULL
            if p[0] == b'"':
                if p[1] != b'"':
                    break
                value.doubled = True
                p += 2
                continue
            more = utf8_length(p, end)
            if more == 0:
                value.fault = NO_UTF8
                return NULL
            p += more
        value.length = p - value.text
        p += 1
        if p < end and not begins(p, end, by):
            value.fault = BREAK if p[0] == b"\n" or p[0] == b"\r" else AFTER_QUOTE
            return NULL
        return p
    value.text = p
    while True:
        p = scan_value(p, end, by.text[0], b"\r", b"\n")
        if p >= end or begins(p, end, by):
            break
        if p[0] == b"\r" or p[0] == b"\n":
            value.fault = BREAK
            return NULL
        more = utf8_length(p, end)
        if more == 0:
            value.fault = NO_UTF8
            return NULL
        p += more
    value.length = p - value.text
    return p


cdef class RowEnds:
    cdef bytes text
    cdef Delimiter delimiter
    # In the current row, from its beginning:
    cdef Py_ssize_t line  # the first line break, or up to where there is none
    cdef Py_ssize_t at  # up to where it was read
    cdef Py_ssize_t start  # of the value there, or of an unquoted one before it
    cdef Py_ssize_t quote  # the next quote, or up to where there is none
    cdef bint quoted  # whether `at` is inside quotes
    # In the last invalid row, which may continue in its next lines:
    cdef Py_ssize_t last_at
    cdef Py_ssize_t last_start
    cdef bint last_quoted
    cdef bint last_wrong  # the byte there makes a row invalid

    cdef const char* find(self, const char* p, const char* end, bint ended) noexcept nogil
    cdef bint read(self, const char* p, Py_ssize_t n, Py_ssize_t* found) noexcept nogil
    cdef const char* leave(self, const char* p, Py_ssize_t found) noexcept nogil
