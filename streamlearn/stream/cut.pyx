"""Lines cut from blocks of bytes, and what values weigh."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr


cdef inline bint is_blank(const char* p, const char* end) noexcept:
    while p < end and (p[0] == b" " or p[0] == b"\t" or p[0] == b"\r"):
        p += 1
    return p == end


def cut(bytes block, Py_ssize_t at, Py_ssize_t most, long long position):
    r"""The whole lines of a block from `at` on, at most so many, blank ones left out.

    Gives their positions, where the byte `at` has `position`; the lines; and where to go on.

    >>> cut(b"one\n\ntwo\nthr", 0, 10, 100)
    ([100, 105], [b'one', b'two'], 9)
    """
    cdef const char* first = PyBytes_AS_STRING(block)
    cdef const char* end = first + PyBytes_GET_SIZE(block)
    cdef const char* p = first + at
    cdef const char* q
    cdef list positions = [], lines = []
    while most > 0:
        q = <const char*>memchr(p, b"\n", end - p) if p < end else NULL
        if q == NULL:
            break
        if not is_blank(p, q):
            positions.append(position + (p - first - at))
            lines.append(PyBytes_FromStringAndSize(p, q - p))
            most -= 1
        p = q + 1
    return positions, lines, p - first


def weighed(values):
    """How many bytes values have together, and how many are null.

    >>> weighed([b"ab", None, b"c"])
    (3, 1)
    """
    cdef Py_ssize_t size = 0, nulls = 0
    for value in values:
        if value is None:
            nulls += 1
        else:
            size += PyBytes_GET_SIZE(<bytes>value)
    return size, nulls
