"""Memory for arrays that grow."""

from libc.stdlib cimport realloc


cdef inline void* reallocate(void* block, size_t size) except NULL:
    """Resize a block, keeping its contents; MemoryError if there is no memory."""
    cdef void* resized = realloc(block, size if size > 0 else 1)
    if resized == NULL:
        raise MemoryError(f"no memory for {size} bytes")
    return resized
