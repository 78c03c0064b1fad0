"""Helpers of the text formats."""


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
