"""Values that have a type in the record: what binary formats and columns hand to a reader."""

from libc.stdint cimport int64_t, uint64_t

from streamlearn.features.transforms cimport A_NUMBER, Value

cdef enum:
    DIGITS = 24  # bytes that the digits of an integer need

cdef struct Scalar:  # a value of a field
    Value value
    bint is_whole
    int64_t whole  # an integer, exactly
    bint is_unsigned  # it is `<uint64_t>whole`
    double seconds  # of a time: the length of its unit; 0: it is none


cdef inline int clear(Scalar* scalar) noexcept nogil:
    """Begin a new value: a number."""
    scalar.value.kind = A_NUMBER
    scalar.value.text = NULL
    scalar.value.length = 0
    scalar.value.number = 0.0
    scalar.is_whole = scalar.is_unsigned = False
    scalar.seconds = 0.0
    return 0


cdef inline int write_digits(Scalar* scalar, char* digits) noexcept nogil:
    """Write an integer as text, which a category is, to a buffer of DIGITS bytes."""
    cdef uint64_t left = <uint64_t>scalar.whole
    cdef bint negative = scalar.whole < 0 and not scalar.is_unsigned
    cdef char* to = digits + DIGITS
    if negative:
        left = 0 - left
    while True:
        to -= 1
        to[0] = <char>(48 + left % 10)
        left //= 10
        if left == 0:
            break
    if negative:
        to -= 1
        to[0] = b"-"
    scalar.value.text = to
    scalar.value.length = digits + DIGITS - to
    return 0
