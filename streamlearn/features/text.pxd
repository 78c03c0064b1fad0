"""Names as UTF-8 bytes: where they lie, and their hash."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    #include <string.h>
    #if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    #include <intrin.h>
    #endif

    /* The two halves of the 128-bit product, folded: the same on every platform. */
    static inline uint64_t streamlearn_fold(uint64_t a, uint64_t b) {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 r = (unsigned __int128)a * b;
        return (uint64_t)r ^ (uint64_t)(r >> 64);
    #elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
        return (a * b) ^ __umulh(a, b);
    #else
        uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
        uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
        uint64_t mid = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;
        return (a * b) ^ (hh + (lh >> 32) + (hl >> 32) + (mid >> 32));
    #endif
    }

    /* Little-endian whatever the machine; compilers make one load of it. */
    static inline uint64_t streamlearn_four(const unsigned char *p) {
        return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16
            | (uint64_t)p[3] << 24;
    }
    static inline uint64_t streamlearn_eight(const unsigned char *p) {
        return streamlearn_four(p) | streamlearn_four(p + 4) << 32;
    }

    /* Multiply and fold, sixteen bytes a step, the last step overlapping (after wyhash).

       The seed is in both factors: if a text could make one of them 0, the rest of it would not
       matter, and an attacker could construct any number of collisions. */
    static inline uint64_t streamlearn_hash(const char *text, ptrdiff_t length, uint64_t seed) {
        const uint64_t one = 0x9e3779b97f4a7c15u ^ seed, two = 0xd1b54a32d192ed03u ^ seed;
        const unsigned char *p = (const unsigned char *)text;
        ptrdiff_t left = length;
        uint64_t a, b;
        seed ^= streamlearn_fold(seed ^ one, two);
        if (length > 16) {
            for (; left > 16; left -= 16, p += 16)
                seed = streamlearn_fold(
                    streamlearn_eight(p) ^ one, streamlearn_eight(p + 8) ^ seed);
            a = streamlearn_eight(p + left - 16);
            b = streamlearn_eight(p + left - 8);
        } else if (length >= 8) {
            a = streamlearn_eight(p);
            b = streamlearn_eight(p + length - 8);
        } else if (length >= 4) {
            a = streamlearn_four(p);
            b = streamlearn_four(p + length - 4);
        } else {
            a = length ? (uint64_t)p[0] << 16 | (uint64_t)p[length >> 1] << 8 | p[length - 1] : 0;
            b = 0;
        }
        a = streamlearn_fold(a ^ two, b ^ seed);
        return streamlearn_fold(a ^ one ^ (uint64_t)length, seed ^ two);
    }

    /* Names are short: a call of memcpy would cost more than the copy. */
    static inline void streamlearn_copy(char *to, const char *from, ptrdiff_t length) {
        if (length > 16) {
            memcpy(to, from, length);
        } else if (length >= 8) {
            char first[8], last[8];
            memcpy(first, from, 8);
            memcpy(last, from + length - 8, 8);
            memcpy(to, first, 8);
            memcpy(to + length - 8, last, 8);
        } else if (length >= 4) {
            char first[4], last[4];
            memcpy(first, from, 4);
            memcpy(last, from + length - 4, 4);
            memcpy(to, first, 4);
            memcpy(to + length - 4, last, 4);
        } else if (length > 0) {
            to[0] = from[0];
            to[length >> 1] = from[length >> 1];
            to[length - 1] = from[length - 1];
        }
    }
    """
    uint64_t hash_text "streamlearn_hash"(
        const char* text, Py_ssize_t length, uint64_t seed) noexcept nogil
    void copy_text "streamlearn_copy"(
        char* to, const char* text, Py_ssize_t length) noexcept nogil


cdef extern from "Python.h":
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject* text) noexcept nogil
    const char* ascii_of "(const char *)PyUnicode_DATA"(PyObject* text) noexcept nogil
    Py_ssize_t length_of "PyUnicode_GET_LENGTH"(PyObject* text) noexcept nogil
    const char* utf8_of "PyUnicode_AsUTF8AndSize"(PyObject* text, Py_ssize_t* length) except NULL
    const char* kept_utf8_of "PyUnicode_AsUTF8AndSize"(
        PyObject* text, Py_ssize_t* length) noexcept nogil


cdef inline const char* bytes_of(PyObject* text, Py_ssize_t* length) except NULL:
    """The UTF-8 of a str, without a copy; UnicodeEncodeError for a lone surrogate."""
    if is_ascii(text):
        length[0] = length_of(text)
        return ascii_of(text)
    return utf8_of(text, length)


cdef inline const char* kept_bytes_of(PyObject* text, Py_ssize_t* length) noexcept nogil:
    """The same of a str that `bytes_of` was given before: it keeps its UTF-8, so none is made."""
    if is_ascii(text):
        length[0] = length_of(text)
        return ascii_of(text)
    return kept_utf8_of(text, length)


cdef inline uint32_t read_utf8(const char** at) noexcept nogil:
    """The character at p, of valid UTF-8 that is not ASCII; move p behind it."""
    cdef const unsigned char* p = <const unsigned char*> at[0]
    if p[0] < 0xE0:
        at[0] += 2
        return (<uint32_t> p[0] & 0x1F) << 6 | (p[1] & 0x3F)
    if p[0] < 0xF0:
        at[0] += 3
        return (<uint32_t> p[0] & 0x0F) << 12 | (<uint32_t> p[1] & 0x3F) << 6 | (p[2] & 0x3F)
    at[0] += 4
    return ((<uint32_t> p[0] & 0x07) << 18 | (<uint32_t> p[1] & 0x3F) << 12
            | (<uint32_t> p[2] & 0x3F) << 6 | (p[3] & 0x3F))


cdef inline char* put_utf8(char* to, uint32_t code) noexcept nogil:
    """Write a character; return where it ends."""
    if code < 0x80:
        to[0] = <char> code
        return to + 1
    if code < 0x800:
        to[0] = <char> (0xC0 | code >> 6)
        to[1] = <char> (0x80 | code & 0x3F)
        return to + 2
    if code < 0x10000:
        to[0] = <char> (0xE0 | code >> 12)
        to[1] = <char> (0x80 | code >> 6 & 0x3F)
        to[2] = <char> (0x80 | code & 0x3F)
        return to + 3
    to[0] = <char> (0xF0 | code >> 18)
    to[1] = <char> (0x80 | code >> 12 & 0x3F)
    to[2] = <char> (0x80 | code >> 6 & 0x3F)
    to[3] = <char> (0x80 | code & 0x3F)
    return to + 4
