"""What a field without a declaration becomes."""

from streamlearn.features.pieces cimport TEXT, Piece, Text
from streamlearn.features.reader cimport Reader
from streamlearn.features.text cimport copy_text


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
