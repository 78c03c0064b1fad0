"""SplitMix64 ([Steele14]): random numbers whose state is one integer."""

cdef extern from *:
    """
    #define STREAMLEARN_GOLDEN_GAMMA 0x9E3779B97F4A7C15ULL
    """
    const unsigned long long GOLDEN_GAMMA "STREAMLEARN_GOLDEN_GAMMA"


cdef inline unsigned long long mix64(unsigned long long z) noexcept nogil:
    """Return z mixed, so that every bit depends on all of z."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline unsigned long long next64(unsigned long long* state) noexcept nogil:
    """Return the next 64 random bits."""
    state[0] += GOLDEN_GAMMA
    return mix64(state[0])
