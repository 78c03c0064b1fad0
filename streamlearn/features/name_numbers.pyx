"""The numbers of names, looked up by their bytes without Python objects."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from streamlearn.core.memory cimport reallocate
from streamlearn.features.text cimport hash_text


cdef class NameNumbers:
    """A table with open addressing, built from a dict of bytes to numbers."""

    def __dealloc__(self):
        free(self.hash)
        free(self.number)
        free(self.text)
        free(self.length)

    def __init__(self, numbers):
        cdef Py_ssize_t k
        cdef uint64_t hash
        self.names = list(numbers)  # `text` points into them
        self.cells = 8
        while self.cells < 4 * len(numbers):
            self.cells *= 2
        self.hash = <uint64_t*> reallocate(self.hash, self.cells * sizeof(uint64_t))
        self.number = <int*> reallocate(self.number, self.cells * sizeof(int))
        self.text = <const char**> reallocate(self.text, self.cells * sizeof(void*))
        self.length = <Py_ssize_t*> reallocate(self.length, self.cells * sizeof(Py_ssize_t))
        memset(self.text, 0, self.cells * sizeof(void*))
        for name, number in numbers.items():
            hash = hash_text(name, len(name), 0)
            k = hash & (self.cells - 1)
            while self.text[k] != NULL:
                k = (k + 1) & (self.cells - 1)
            self.hash[k] = hash
            self.number[k] = number
            self.text[k] = PyBytes_AS_STRING(name)
            self.length[k] = PyBytes_GET_SIZE(name)

    cdef int find(self, const char* name, Py_ssize_t length, int otherwise) noexcept nogil:
        """Return the number of a name, `otherwise` if it has none."""
        cdef uint64_t hash = hash_text(name, length, 0)
        cdef Py_ssize_t k = hash & (self.cells - 1)
        while self.text[k] != NULL:
            if self.hash[k] == hash and self.length[k] == length and memcmp(
                    self.text[k], name, length) == 0:
                return self.number[k]
            k = (k + 1) & (self.cells - 1)
        return otherwise
