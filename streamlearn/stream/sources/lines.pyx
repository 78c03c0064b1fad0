"""Split a stream of bytes into lines with their offsets, for files and standard input."""

from collections.abc import Sequence

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

from streamlearn.stream.sources.rows cimport RowEnds

from streamlearn.errors import SourceError
from streamlearn.stream.column_rows import ColumnRows
from streamlearn.stream.packed_rows import PackedRows

cdef enum:
    LONGEST = 1 << 26  # bytes of one line
    MARK = 3  # bytes of the byte order mark of UTF-8


cdef inline bint is_blank(const char* p, const char* end) noexcept nogil:
    while p < end and (p[0] == b" " or p[0] == b"\t" or p[0] == b"\r"):
        p += 1
    return p == end


cdef class ByteBlock:
    """A block of bytes, which begins with the rest of the previous one, and its lines."""

    def __cinit__(self, Py_ssize_t size):
        self.text = PyByteArray_FromStringAndSize(NULL, PADDING + size + PADDING)
        self.at = PyByteArray_AS_STRING(self.text) + PADDING

    def __dealloc__(self):
        free(self.line)

    cdef int cut(self, Py_ssize_t at) except -1 nogil:
        """Find the lines that end after `at`, and replace their breaks by zero bytes."""
        cdef char* q
        while True:
            q = <char*>memchr(self.at + at, b"\n", self.filled - at)
            if q == NULL:
                return 0
            at = q - self.at
            self.add(self.whole, at)
            at += 1

    cdef int find_rows(self, RowEnds ends, bint ended) except -1 nogil:
        """Find the rows of CSV, where a quoted line break does not end a row."""
        cdef const char* end = self.at + self.filled
        cdef const char* stop
        while True:
            stop = ends.find(self.at + self.whole, end, ended)
            if stop == NULL:
                return 0
            self.add(self.whole, stop - self.at)

    cdef int begin(self, ByteBlock old, Py_ssize_t first, Py_ssize_t at) except -1:
        """Copy another block from `at` on; `first` is the first line there."""
        cdef Py_ssize_t i, n = old.lines - first
        self.filled = old.filled - at
        self.whole = old.whole - at
        memcpy(self.at, old.at + at, self.filled)
        if n == 0:
            return 0
        self.line = <Line*>realloc(self.line, n * sizeof(Line))
        if self.line == NULL:
            raise MemoryError("the lines of a block")
        self.lines = self.room = n
        for i in range(n):
            self.line[i] = Line(old.line[first + i].start - at, old.line[first + i].length)
        return 0

    cdef int add(self, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
        """Add a line, unless it is blank."""
        cdef void* to
        self.whole = stop + 1
        self.at[stop] = 0
        if is_blank(self.at + start, self.at + stop):
            return 0
        if self.lines == self.room:
            to = realloc(self.line, (2 * self.room + 256) * sizeof(Line))
            if to == NULL:
                with gil:
                    raise MemoryError("the lines of a block")
            self.line = <Line*>to
            self.room = 2 * self.room + 256
        self.line[self.lines] = Line(start, stop - start)
        self.lines += 1
        return 0


cdef class LineSlice:
    """A sequence of a block's lines, each copied to bytes on access.

    Text formats read them in place, without a copy (`TextDecoder`).
    """

    def __cinit__(self, ByteBlock block not None, Py_ssize_t first, Py_ssize_t n):
        if not 0 <= first <= first + n <= block.lines:
            raise IndexError(f"lines {first} to {first + n} of {block.lines}")
        self.block, self.first, self.n = block, first, n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        cdef Py_ssize_t i
        cdef const char* p
        cdef const char* end
        if isinstance(index, slice):
            start, stop, step = index.indices(self.n)
            if step == 1:
                return LineSlice(self.block, self.first + start, max(stop - start, 0))
            return [self[k] for k in range(start, stop, step)]
        i = index
        if i < 0:
            i += self.n
        if not 0 <= i < self.n:
            raise IndexError(f"line {index} of {self.n}")
        p = self.line(i, &end)
        return PyBytes_FromStringAndSize(p, end - p)

    def __eq__(self, other):
        return list(self) == list(other) if isinstance(other, (list, LineSlice)) else NotImplemented

    def __repr__(self):
        return repr(list(self))

    @property
    def byte_count(self):
        """Total bytes of the lines."""
        cdef Py_ssize_t i, total = 0
        for i in range(self.n):
            total += self.block.line[self.first + i].length
        return total


Sequence.register(LineSlice)


cdef class Lines:
    r"""Lines of a stream that is read block by block; positions count its bytes.

    A byte order mark of UTF-8 is skipped. The first `take` waits for `first` lines. With a
    `delimiter` lines are rows of CSV, in which quoted values may contain line breaks.

    >>> import io
    >>> lines = Lines("clicks.txt", 100)
    >>> lines.fill(io.BytesIO(b"one\n\ntw").readinto, 64), lines.take(10)
    (7, ([100], [b'one'], 105))
    >>> lines.fill(io.BytesIO(b"o\nthree").readinto, 64), lines.take(10)
    (7, ([105], [b'two'], 109))
    >>> lines.finish()
    >>> lines.take(10)
    ([109], [b'three'], 114)
    """

    cdef readonly str name
    cdef readonly long long position  # of the next line
    cdef readonly Py_ssize_t first  # lines to wait for
    cdef RowEnds ends  # None: every line is a row
    cdef bint released
    cdef ByteBlock block
    cdef Py_ssize_t at  # its place in the block
    cdef Py_ssize_t taken  # lines of the block that were taken

    def __init__(self, name, position=0, *, first=0, delimiter=None):
        self.name = name
        self.position = position
        self.first = first
        self.ends = None if delimiter is None else RowEnds(delimiter)
        self.block = ByteBlock(0)

    @property
    def held(self):
        """Number of lines that can be taken."""
        return self.block.lines - self.taken

    @property
    def waiting(self):
        """Whether there is a complete line to take, perhaps a blank one."""
        return self.at < self.block.whole and (self.released or self.held >= self.first)

    @property
    def read(self):
        """The position after the last byte that was read."""
        return self.position + self.block.filled - self.at

    def fill(self, read, Py_ssize_t size):
        """Read about this many bytes, and return how many were read.

        `read` fills a buffer, as the `readinto` of files does.
        """
        cdef ByteBlock block = self.block
        cdef Py_ssize_t rest
        if block.filled - block.whole > LONGEST:
            raise SourceError(
                f"{self.name}: the line at byte {self.position + block.whole - self.at} is longer"
                f" than {LONGEST} bytes: check that this is a text file"
            )
        # a block whose lines were taken must not change: they may still be read
        if self.taken or block.filled + 2 * PADDING == len(block.text):
            rest = block.filled - self.at
            # twice the rest, or a long line would be copied once for each block
            block = ByteBlock(rest + max(rest, size))
            block.begin(self.block, self.taken, self.at)
            self.block, self.at, self.taken = block, 0, 0
        rest = block.filled
        with memoryview(block.text) as text, text[PADDING + rest:len(text) - PADDING] as room:
            count = read(room) or 0
        if count:
            block.filled += count
            if self.position == 0 and block.whole == 0 and block.filled >= MARK and memcmp(
                    block.at, b"\xef\xbb\xbf", MARK) == 0:
                self.position = self.at = block.whole = MARK
                if self.ends is not None:
                    self.ends.leave(block.at, MARK - 1)
            elif self.position == 0 and block.whole == 0 and block.filled >= MARK:
                refuse_encoding(self.name, block.at[:MARK])
            self.cut(max(rest, self.at), False)
        return count

    cdef int cut(self, Py_ssize_t at, bint ended) except -1:
        cdef bint rows = self.ends is not None
        with nogil:
            if rows:
                self.block.find_rows(self.ends, ended)
            else:
                self.block.cut(at)
        return 0

    def release(self):
        """Stop waiting for lines, and for the end of a row."""
        self.released = True
        self.cut(self.block.filled, True)

    def finish(self):
        """End the stream: the rest is a line."""
        cdef ByteBlock block = self.block
        self.release()
        if block.whole < block.filled:
            if self.ends is not None:
                self.ends.leave(block.at, block.filled - block.whole)
            block.add(block.whole, block.filled)
            block.whole = block.filled

    def take(self, Py_ssize_t most):
        """Return offsets, non-blank lines (at most this many), and the position after them."""
        cdef ByteBlock block = self.block
        cdef const Line* line
        cdef long long zero = self.position - self.at  # where the block begins
        cdef Py_ssize_t i, first = self.taken, n = min(
            max(most, self.first), block.lines - self.taken)
        offsets = [zero + block.line[i].start for i in range(first, first + n)]
        self.taken += n
        self.first = max(self.first - n, 0)
        self.at = block.whole
        if self.taken < block.lines:
            line = block.line + self.taken - 1
            self.at = line.start + line.length + 1
        self.position = zero + self.at
        return offsets, LineSlice(block, first, n), self.position


def refuse_encoding(name, start):
    """Raise SourceError if these first bytes are not of text in UTF-8."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(
            f"{name} is UTF-16, but must be UTF-8: convert it, such as with"
            " iconv -f UTF-16 -t UTF-8"
        )
    if start == b"\x1f\x8b\x08":
        raise SourceError(
            f"{name} is compressed by gzip: decompress it, or use a file name that ends in .gz"
        )
    for first, program in ((b"BZh", "bzip2"), (b"\xfd7z", "xz"), (b"PK\x03", "zip")):
        if start == first:
            raise SourceError(
                f"{name} is compressed by {program}, which is not read: decompress it, or compress"
                " it by gzip (.gz) or Zstandard (.zst)"
            )


def size_and_nulls(values):
    """Return the total bytes of values, and how many are null.

    >>> size_and_nulls([b"ab", None, b"c"])
    (3, 1)
    """
    cdef Py_ssize_t size = 0, nulls = 0
    if isinstance(values, (LineSlice, ColumnRows)):
        return values.byte_count, 0
    if isinstance(values, PackedRows):
        return values.byte_count, values.tombstones
    for value in values:
        if value is None:
            nulls += 1
        else:
            size += PyBytes_GET_SIZE(<bytes>value)
    return size, nulls
