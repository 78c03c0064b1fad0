from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef bint far_decimal(uint64_t digits, long exponent, double* x) noexcept nogil

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    static const double streamlearn_tens[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    /* What a decimal is made of: a sign, at most 19 digits, a power of ten. */
    typedef struct {
        uint64_t digits;
        long exponent;
        int negative, whole;
    } streamlearn_decimal;

    /* Eight digits at once (Lemire 2021, section 3): whether there are eight, and what they say. */
    static inline int streamlearn_eight_digits(const char *p, const char *end, uint64_t *w) {
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t x;
        if (end - p < 8) return 0;
        memcpy(&x, p, 8);
        if (((x + 0x4646464646464646u) | (x - 0x3030303030303030u)) & 0x8080808080808080u)
            return 0;
        x -= 0x3030303030303030u;
        x = x * 10 + (x >> 8);
        x = ((x & 0x000000ff000000ffu) * 0x000f424000000064u
            + ((x >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
        *w = *w * 100000000u + (uint32_t)x;
        return 1;
    #else
        return 0;
    #endif
    }

    /* The decimal at p, as JSON writes them; where it ends, or NULL: none, or more than 19 digits
       of it matter. The byte at `end` can be read and is no digit. With `loose` also .5, 5., +5. */
    static inline const char *streamlearn_scan_decimal(
        const char *p, const char *end, streamlearn_decimal *x, int loose
    ) {
        const char *first, *dot;
        uint64_t w = 0;
        long exponent = 0, power = 0;
        int minus = 0;
        unsigned d;
        x->negative = *p == '-';
        p += x->negative || (loose && *p == '+');
        first = p;
        while ((d = (unsigned char)*p - '0') <= 9) { w = 10 * w + d; p++; }
        if (!loose && (p == first || (*first == '0' && p != first + 1))) return NULL;
        x->whole = 1;
        dot = p;
        if (*p == '.') {
            p++;
            if (streamlearn_eight_digits(p, end, &w)) {
                p += 8;
                if (streamlearn_eight_digits(p, end, &w)) p += 8;
            }
            while ((d = (unsigned char)*p - '0') <= 9) { w = 10 * w + d; p++; }
            if (p == dot + 1 && (!loose || dot == first)) return NULL;
            exponent = (long)(dot + 1 - p);
            x->whole = 0;
        } else if (p == first) return NULL;
        if (p - first > 19) {  /* zeros in front do not count */
            const char *q = first;
            while (*q == '0' || *q == '.') q++;
            if (p - q > 19) return NULL;
        }
        if (*p == 'e' || *p == 'E') {
            p++;
            minus = *p == '-';
            p += minus || *p == '+';
            first = p;
            while ((d = (unsigned char)*p - '0') <= 9) {
                if (power < 100000) power = 10 * power + d;
                p++;
            }
            if (p == first) return NULL;
            exponent += minus ? -power : power;
            x->whole = 0;
        }
        x->digits = w;
        x->exponent = exponent;
        return p;
    }

    /* Exact where digits and power are exact in a double (Clinger 1990). */
    static inline int streamlearn_near_decimal(const streamlearn_decimal *d, double *x) {
        if (d->whole || d->digits == 0) *x = (double)d->digits;
        else if (d->digits >> 53 || d->exponent < -22 || d->exponent > 22) return 0;
        else if (d->exponent < 0) *x = (double)d->digits / streamlearn_tens[-d->exponent];
        else *x = (double)d->digits * streamlearn_tens[d->exponent];
        return 1;
    }

    /* Most decimals are like -0.0472, 12.5 or 3: few digits, a point and at most sixteen more.
       Where one of these ends, NULL: it is another; and the double next to it, but if a double does
       not hold its digits, those. How many digits there are can't be foreseen, so there is no
       branch on it, nor on the sign: the sixteen bytes up to the last one are read as digits, zeros
       where there are none, and the divisor has the sign.
       Sixteen bytes in front of p and behind the number can be read. */
    static inline const char *streamlearn_short_decimal(
        const char *p, double *y, streamlearn_decimal *far
    ) {
    #if defined(__SSE2__)
        static const unsigned char kept[32] = {
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
        static const uint64_t tens[] = {
            1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u,
            10000000000u, 100000000000u, 1000000000000u, 10000000000000u, 100000000000000u,
            1000000000000000u, 10000000000000000u};
        static const double divisor[2][17] = {{
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8,
            1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        }, {
            -1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8,
            -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15, -1e16,
        }};
        uint64_t x, eights;
        unsigned d;
        int n, negative;
        __m128i digit, sum, zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9);
        far->digits = 0;
        negative = *p == '-';
        p += negative;
        x = (unsigned char)*p++ - '0';
        if (x > 9) return NULL;
        while ((d = (unsigned char)*p - '0') <= 9) {
            if (x > 91) return NULL;
            x = 10 * x + d;
            p++;
        }
        if (*p == '.') {
            p++;
            digit = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)p), zero);
            n = __builtin_ctz(~_mm_movemask_epi8(
                _mm_cmpeq_epi8(_mm_min_epu8(digit, nine), digit)));
            if (n == 0) return NULL;
            p += n;
            digit = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(p - 16)), zero);
            digit = _mm_and_si128(digit, _mm_loadu_si128((const __m128i *)(kept + n)));
            sum = _mm_add_epi16(  /* pairs of digits, then fours, then eights */
                _mm_mullo_epi16(_mm_and_si128(digit, _mm_set1_epi16(255)), _mm_set1_epi16(10)),
                _mm_srli_epi16(digit, 8));
            sum = _mm_madd_epi16(sum, _mm_set1_epi32(100 | 1 << 16));
            sum = _mm_madd_epi16(_mm_packs_epi32(sum, sum), _mm_set1_epi32(10000 | 1 << 16));
            memcpy(&eights, &sum, 8);
            x = x * tens[n] + (eights & 0xffffffffu) * 100000000u + (eights >> 32);
            *y = (double)(int64_t)x;
            if ((uint64_t)(int64_t)*y == x) {
                *y /= divisor[negative][n];  /* the nearest, both being exact (Clinger 1990) */
            } else {
                far->digits = x;
                far->exponent = -n;
                far->negative = negative;
            }
        } else {
            *y = negative ? 0.0 - (double)(int64_t)x : (double)(int64_t)x;
        }
        d = (unsigned char)*p;
        return (d | 32) == 'e' || d - '0' <= 9 ? NULL : p;
    #else
        return NULL;
    #endif
    }

    /* The integer of at most seven digits at p, and where it ends; NULL: it is another. */
    static inline const char *streamlearn_short_whole(const char *p, uint64_t *y) {
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t x, other;
        int bits;
        memcpy(&x, p, 8);
        x ^= 0x3030303030303030u;
        other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
        if (other == 0 || (other & 0x80)) return NULL;
        bits = __builtin_ctzll(other) - 7;
        x <<= 64 - bits;  /* zeros in front of the digits */
        x = x * 10 + (x >> 8);
        *y = ((x & 0x000000ff000000ffu) * 0x000f424000000064u
            + ((x >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
        return p + bits / 8;
    #else
        return NULL;
    #endif
    }

    #define STREAMLEARN_ONES 0x0101010101010101u
    #define STREAMLEARN_HIGHS 0x8080808080808080u

    /* Where a JSON string stops being plain ASCII: its quote, an escape, a control character, a
       byte of a longer character. */
    static inline const char *streamlearn_scan_plain(const char *p, const char *end) {
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        while (end - p >= 8) {
            uint64_t x, quote, escape, found;
            memcpy(&x, p, 8);
            quote = x ^ (STREAMLEARN_ONES * '"');
            escape = x ^ (STREAMLEARN_ONES * '\\\\');
            found = ((quote - STREAMLEARN_ONES) & ~quote) | ((escape - STREAMLEARN_ONES) & ~escape)
                | ((x - STREAMLEARN_ONES * 0x20) & ~x) | x;
            found &= STREAMLEARN_HIGHS;
            if (found) return p + (__builtin_ctzll(found) >> 3);
            p += 8;
        }
    #endif
        while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"'
               && *p != '\\\\') p++;
        return p;
    }

    /* How long the character at p is that takes more than one byte; 0: no UTF-8. */
    static inline int streamlearn_utf8(const char *at, const char *end) {
        const unsigned char *p = (const unsigned char *)at;
        ptrdiff_t left = end - at;
        unsigned a = p[0];
        if (a >= 0xc2 && a <= 0xdf && left >= 2 && (p[1] & 0xc0) == 0x80) return 2;
        if (a >= 0xe0 && a <= 0xef && left >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80
            && (a != 0xe0 || p[1] >= 0xa0) && (a != 0xed || p[1] <= 0x9f)) return 3;
        if (a >= 0xf0 && a <= 0xf4 && left >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80
            && (p[3] & 0xc0) == 0x80 && (a != 0xf0 || p[1] >= 0x90)
            && (a != 0xf4 || p[1] <= 0x8f)) return 4;
        return 0;
    }
    """
    ctypedef struct Decimal "streamlearn_decimal":
        uint64_t digits
        long exponent
        bint negative
        bint whole  # written without point and power
    const char* scan_decimal "streamlearn_scan_decimal"(
        const char* p, const char* end, Decimal* x, bint loose) noexcept nogil
    bint near_decimal "streamlearn_near_decimal"(const Decimal* d, double* x) noexcept nogil
    const char* short_decimal "streamlearn_short_decimal"(
        const char* p, double* y, Decimal* far) noexcept nogil
    const char* short_whole "streamlearn_short_whole"(const char* p, uint64_t* x) noexcept nogil
    const char* scan_plain "streamlearn_scan_plain"(
        const char* p, const char* end) noexcept nogil
    int utf8_length "streamlearn_utf8"(const char* p, const char* end) noexcept nogil


cdef inline bint is_exact(const Decimal* d) noexcept nogil:
    """Whether it is an integer that a double represents exactly, up to 2**53."""
    return d.whole and d.digits <= <uint64_t>1 << 53


cdef inline bint double_of(const Decimal* d, double* x) noexcept nogil:
    """Return the double nearest to a decimal, ties to even; False if not decidable here."""
    if not near_decimal(d, x) and not far_decimal(d.digits, d.exponent, x):
        return False
    if d.negative and not (d.whole and d.digits == 0):
        x[0] = -x[0]
    return True


cdef inline const char* value_at(const char* p, const char* end, double* x) except? NULL nogil:
    """Parse the number at p, also `+1`, `.5` and `2.`; return its end, NULL if there is none.

    A number beyond the range of a double is infinite; `nan` and `inf` are not numbers here. The
    byte at `end` is not a digit; sixteen bytes after it and sixteen before p can be read.
    """
    cdef Decimal d
    cdef const char* q = short_decimal(p, x, &d)
    if q != NULL and d.digits:
        if not far_decimal(d.digits, d.exponent, x):
            q = NULL
        elif d.negative:
            x[0] = -x[0]
    return q if q != NULL else number_at(p, end, &d, x)


cdef const char* number_at(
    const char* p, const char* end, Decimal* d, double* x) except? NULL nogil


cdef inline Py_ssize_t invalid_utf8_at(const char* text, Py_ssize_t length) noexcept nogil:
    """Return the place of the first byte that is not UTF-8, -1 if there is none."""
    cdef const char* p = text
    cdef const char* end = text + length
    cdef uint64_t eight
    cdef int more
    while p < end:
        if end - p >= 8:
            memcpy(&eight, p, 8)
            if not eight & 0x8080808080808080u:
                p += 8
                continue
        if <unsigned char>p[0] < 0x80:
            p += 1
            continue
        more = utf8_length(p, end)
        if more == 0:
            return p - text
        p += more
    return -1
