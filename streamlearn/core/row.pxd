"""One example as learners see it: distinct slots, their values, and |x|^2."""

cdef struct Row:
    Py_ssize_t n
    const int* slot
    const double* value
    double square  # |x|^2


cdef extern from *:
    """
    #include <stddef.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    /* Sums over the features of a row, in four lanes combined as (0 + 2) + (1 + 3): with one lane
       every addition would wait for the previous one. Two vector registers do the same additions in
       the same order, so the result is bit-identical on every machine. */
    #if defined(__SSE2__)
    #define STREAMLEARN_SUM(n, PAIR, ONE)                                                       \
        ptrdiff_t i = 0;                                                                        \
        double total = 0.0;                                                                     \
        __m128d even = _mm_setzero_pd(), odd = _mm_setzero_pd();                                \
        for (; i + 4 <= n; i += 4) {                                                            \
            even = _mm_add_pd(even, PAIR(i));                                                   \
            odd = _mm_add_pd(odd, PAIR(i + 2));                                                 \
        }                                                                                       \
        even = _mm_add_pd(even, odd);                                                           \
        total = _mm_cvtsd_f64(even) + _mm_cvtsd_f64(_mm_unpackhi_pd(even, even));               \
        for (; i < n; i++)                                                                      \
            total += ONE(i);                                                                    \
        return total;
    #else
    #define STREAMLEARN_SUM(n, PAIR, ONE)                                                       \
        ptrdiff_t i = 0;                                                                        \
        double total, a = 0.0, b = 0.0, c = 0.0, d = 0.0;                                       \
        for (; i + 4 <= n; i += 4) {                                                            \
            a += ONE(i);                                                                        \
            b += ONE(i + 1);                                                                    \
            c += ONE(i + 2);                                                                    \
            d += ONE(i + 3);                                                                    \
        }                                                                                       \
        total = (a + c) + (b + d);                                                              \
        for (; i < n; i++)                                                                      \
            total += ONE(i);                                                                    \
        return total;
    #endif

    /* Soft threshold: s minus its part in [-t, t]. Compilers turn this into min and max; a branch
       would cost more, because which slots are 0 is unpredictable. */
    static inline double streamlearn_soft(double s, double t) {
        double part = s < t ? s : t;
        part = part > -t ? part : -t;
        return s - part;
    }

    static inline double streamlearn_squared(const double *x, ptrdiff_t n) {
    #define ONE(k) (x[k] * x[k])
    #define PAIR(k) _mm_mul_pd(_mm_loadu_pd(x + (k)), _mm_loadu_pd(x + (k)))
        STREAMLEARN_SUM(n, PAIR, ONE)
    #undef ONE
    #undef PAIR
    }

    static inline double streamlearn_products(const double *x, const double *y, ptrdiff_t n) {
    #define ONE(k) (x[k] * y[k])
    #define PAIR(k) _mm_mul_pd(_mm_loadu_pd(x + (k)), _mm_loadu_pd(y + (k)))
        STREAMLEARN_SUM(n, PAIR, ONE)
    #undef ONE
    #undef PAIR
    }

    static inline double streamlearn_dot(
        const double *cell, ptrdiff_t stride, const int *slot, const double *x, ptrdiff_t n
    ) {
    #define ONE(k) (cell[stride * slot[k]] * x[k])
    #define CELLS(k)                                                                            \
        _mm_loadh_pd(_mm_load_sd(cell + stride * slot[k]), cell + stride * slot[(k) + 1])
    #define PAIR(k) _mm_mul_pd(CELLS(k), _mm_loadu_pd(x + (k)))
        STREAMLEARN_SUM(n, PAIR, ONE)
    #undef ONE
    #undef PAIR
    }

    #if defined(__SSE2__)
    static inline __m128d streamlearn_soft_pair(__m128d s, double t) {
        __m128d part = _mm_min_pd(s, _mm_set1_pd(t));
        return _mm_sub_pd(s, _mm_max_pd(part, _mm_set1_pd(-t)));
    }
    #endif

    static inline double streamlearn_soft_dot(
        const double *cell, ptrdiff_t stride, const int *slot, const double *x, ptrdiff_t n,
        double t
    ) {
    #define ONE(k) (streamlearn_soft(cell[stride * slot[k]], t) * x[k])
    #define PAIR(k) _mm_mul_pd(streamlearn_soft_pair(CELLS(k), t), _mm_loadu_pd(x + (k)))
        STREAMLEARN_SUM(n, PAIR, ONE)
    #undef ONE
    #undef PAIR
    #undef CELLS
    }
    #undef STREAMLEARN_SUM

    #if defined(__GNUC__)
    #define streamlearn_prefetch(p) __builtin_prefetch(p)
    #else
    #define streamlearn_prefetch(p) ((void)(p))
    #endif
    """
    # load this memory into the cache
    void prefetch "streamlearn_prefetch"(const void* at) noexcept nogil
    # |x|^2
    double squared "streamlearn_squared"(const double* value, Py_ssize_t n) noexcept nogil
    # <x, y>
    double products "streamlearn_products"(
        const double* x, const double* y, Py_ssize_t n
    ) noexcept nogil
    # s moved toward 0 by a threshold, and 0 within it
    double soft "streamlearn_soft"(double s, double threshold) noexcept nogil
    # <cells, x>
    double dot "streamlearn_dot"(
        const double* cells, Py_ssize_t stride, const int* slot, const double* value, Py_ssize_t n
    ) noexcept nogil
    # <soft(cells), x>
    double soft_dot "streamlearn_soft_dot"(
        const double* cells, Py_ssize_t stride, const int* slot, const double* value, Py_ssize_t n,
        double threshold
    ) noexcept nogil
