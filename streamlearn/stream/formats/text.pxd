"""Helpers of the text formats."""

from streamlearn.features.pieces cimport TEXT, Piece, Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.text cimport copy_text


cdef inline const char* past_spaces(const char* p) noexcept nogil:
    # records end in a zero byte, which is not a space; most bytes are greater
    while <unsigned char>p[0] <= 32 and (
            p[0] == b" " or p[0] == b"\t" or p[0] == b"\r" or p[0] == b"\n"):
        p += 1
    return p


cdef inline object shown_text(const char* p, const char* end):
    """Return the word at p, shortened, for a message."""
    cdef const char* q = p
    while q < end and q[0] != b" " and q[0] != b"\t" and q[0] != b"\n" and q[0] != b"\r":
        q += 1
    word = p[:min(q - p, 40)].decode("utf-8", "replace")
    return repr(word)


cdef inline int put_number(
        Reader reader, const char* name, Py_ssize_t length, double x) except -1 nogil:
    """Add the feature of a number."""
    cdef Piece* piece
    if reader.n == reader.room:
        reader.grow_pieces()
    piece = reader.piece + reader.n
    piece.text.at = name
    piece.text.start = 0
    piece.text.length = length
    piece.name = NULL
    piece.kind = TEXT
    piece.value = x
    reader.n += 1
    return 0


cdef inline int put_text(
        Reader reader, const char* name, Py_ssize_t name_length,
        const char* text, Py_ssize_t length) except -1 nogil:
    """Add the feature field=text; the field's name is already followed by "="."""
    cdef Py_ssize_t whole = name_length + 1 + length
    cdef char* to
    cdef Piece* piece
    if whole > reader.arena_room - reader.used:
        reader.reserve_text(whole)
    if reader.n == reader.room:
        reader.grow_pieces()
    to = reader.arena + reader.used
    copy_text(to, name, name_length + 1)
    copy_text(to + name_length + 1, text, length)
    piece = reader.piece + reader.n
    piece.text = Text(NULL, reader.used, whole)
    piece.name = NULL
    piece.kind = TEXT
    piece.value = 1.0
    reader.used += whole
    reader.n += 1
    return 0
