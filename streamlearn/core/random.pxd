"""The mixing function of SplitMix64 ([Steele14]): every bit of the result depends on all of z."""


cdef inline unsigned long long mix64(unsigned long long z) noexcept nogil:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)
