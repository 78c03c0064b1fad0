"""Decimals to doubles, correctly rounded ([Lemire21]).

The caller handles decimals that are beyond the table of powers, or so close to the middle of two
doubles that 128 bits do not decide.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    LEAST = -64  # powers of ten in the table
    MOST = 64
cdef uint64_t MORE = 0xFFFFFFFFFFFFFFFFULL  # as digits: these, or more than 64 bits hold

cdef uint64_t[MOST - LEAST + 1] HIGH
cdef uint64_t[MOST - LEAST + 1] LOW


def power_of_five(power):
    """Return 128 bits of 5**power, the highest one set: truncated, or rounded up if power < 0.

    >>> hex(power_of_five(0)), hex(power_of_five(-1))
    ('0x80000000000000000000000000000000', '0xcccccccccccccccccccccccccccccccd')
    """
    if power >= 0:
        five = 5 ** power
        shift = 128 - five.bit_length()
        return five << shift if shift >= 0 else five >> -shift
    five = 5 ** -power
    bits = five.bit_length()
    # enough bits that the quotient has 128, and one more where the power is exact in none
    found = (1 << (bits + 127 if power >= -27 else 2 * bits + 128)) // five + 1
    while found.bit_length() > 128:
        found >>= 1
    return found


for _q in range(LEAST, MOST + 1):
    _power = power_of_five(_q)
    HIGH[_q - LEAST] = _power >> 64
    LOW[_q - LEAST] = _power & ((1 << 64) - 1)


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define streamlearn_leading_zeros(x) __builtin_clzll(x)
    #else
    static inline int streamlearn_leading_zeros(uint64_t x) {
        int n = 0;
        while (!(x >> 63)) { x <<= 1; n++; }
        return n;
    }
    #endif
    static inline uint64_t streamlearn_product(uint64_t a, uint64_t b, uint64_t *high) {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 r = (unsigned __int128)a * b;
        *high = (uint64_t)(r >> 64);
        return (uint64_t)r;
    #else
        uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
        uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
        uint64_t mid = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;
        *high = hh + (lh >> 32) + (hl >> 32) + (mid >> 32);
        return a * b;
    #endif
    }
    """
    int leading_zeros "streamlearn_leading_zeros"(uint64_t x) noexcept nogil
    uint64_t product "streamlearn_product"(uint64_t a, uint64_t b, uint64_t* high) noexcept nogil


cdef bint far_decimal(uint64_t digits, long exponent, double* x) noexcept nogil:
    """Compute digits * 10**exponent, digits > 0; False if not decidable here."""
    cdef uint64_t high, low, second, mantissa, bits
    cdef int zeros, upper
    cdef int64_t power
    if exponent < LEAST or exponent > MOST:
        return False
    zeros = leading_zeros(digits)
    digits <<= zeros
    low = product(digits, HIGH[exponent - LEAST], &high)
    if (high & 0x1FF) == 0x1FF:  # the bits below the 55 that count could carry
        product(digits, LOW[exponent - LEAST], &second)
        low += second
        if low < second:
            high += 1
        if low == 0xFFFFFFFFFFFFFFFFULL and not -27 <= exponent <= 55:
            return False
    upper = <int>(high >> 63)
    mantissa = high >> (upper + 9)
    # floor(log2(10**exponent)) by multiplication, and the bias
    power = (<int64_t>217706 * exponent >> 16) + 63 + upper - zeros + 1023
    if power <= 0 or power >= 2046:
        return False
    if low <= 1 and -4 <= exponent <= 23 and (mantissa & 3) == 1:
        if mantissa << (upper + 9) == high:  # just between two: to the even one
            mantissa &= ~<uint64_t>1
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >> 53:
        mantissa = <uint64_t>1 << 52
        power += 1
    bits = (mantissa & ((<uint64_t>1 << 52) - 1)) | <uint64_t>power << 52
    memcpy(x, &bits, 8)
    return True


cdef const char* number_at(
        const char* p, const char* end, Decimal* d, double* x) except? NULL nogil:
    """Parse the number at p as `value_at` does, with its parts."""
    cdef const char* first = p
    cdef const char* q = scan_decimal(p, end, d, True)
    if q != NULL and double_of(d, x):
        return q
    while p < end and (48 <= p[0] <= 57 or p[0] == b"+" or p[0] == b"-" or p[0] == b"."
                       or p[0] == b"e" or p[0] == b"E"):
        p += 1
    if p == first or not (48 <= p[-1] <= 57 or p[-1] == b"."):
        return NULL
    with gil:  # out of reach here
        text = first[:p - first]
        try:
            x[0] = float(text)
        except ValueError:
            return NULL
        digits = text.lstrip(b"+-")
        d.whole = digits.isdigit()
        d.negative = text[:1] == b"-"
        d.digits = min(int(digits), MORE) if d.whole and len(digits) <= 4000 else MORE
    return p
