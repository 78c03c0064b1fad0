"""The columns of a table as rows, without building an event per row."""

from libc.math cimport NAN, isfinite, isnan
from libc.stdlib cimport free, malloc

from streamlearn.engine.events cimport UNLABELED, Events, Tags
from streamlearn.features.reader cimport Reader
from streamlearn.core.row cimport Row, squared

import numpy as np

from streamlearn.errors import InvalidEventError

cdef struct Column:
    const double* number  # values, NaN for missing; NULL for a column of texts
    const Py_ssize_t* text  # index of each row's text, -1 for missing
    const int* slot  # slot of the column or of each text, -1 for unknown


def rows_from_columns(Reader reader, columns, Py_ssize_t n, bint grow):
    """Return the rows of a table as Events.

    A column is (name, numbers, None), with NaN for missing, or (name, indices, texts), with each
    row's index into `texts` and -1 for missing. With `grow`, new names get slots in the same order
    as when reading row by row.

    >>> from streamlearn.features import Names
    >>> columns = [("age", np.array([31.0, np.nan]), None), ("city", np.array([0, 0]), ["Bern"])]
    >>> rows, reader = rows_from_columns(reader := Names(), columns, 2, True), reader
    >>> reader.names(), rows.row_of(0), rows.row_of(1)
    (['age', 'city=Bern'], [(0, 31.0), (1, 1.0)], [(1, 1.0)])
    """
    cdef Py_ssize_t k, count = len(columns)
    cdef Column* column
    rows, keep = Events(), []
    reader.slots_of([name for name, _, _ in columns], False)  # raises for invalid names
    slots, known = slots_by_column(reader, columns, n, grow)
    column = <Column*>malloc(max(count, 1) * sizeof(Column))
    if column == NULL:
        raise MemoryError
    try:
        for k in range(count):
            cells, found = np.ascontiguousarray(columns[k][1]), slots[k]
            keep.append(cells)
            is_text = columns[k][2] is not None
            column[k].number = NULL if is_text else <const double*><size_t>cells.ctypes.data
            column[k].text = <const Py_ssize_t*><size_t>cells.ctypes.data if is_text else NULL
            column[k].slot = <const int*><size_t>found.ctypes.data
        fill(rows, column, count, n, known, slots_overlap(slots))
    finally:
        free(column)
    return rows


cdef slots_by_column(Reader reader, columns, Py_ssize_t n, bint grow):
    """Return the slots of each column or its texts, and the slots used after each row."""
    cdef Py_ssize_t k, before = reader.size
    firsts = []  # (row, column, index of the text, name) of the first occurrence of each name
    slots = [np.full(1 if texts is None else len(texts), -1, np.int32) for _, _, texts in columns]
    for k, (name, cells, texts) in enumerate(columns):
        if texts is None:
            here = np.flatnonzero(cells == cells)[:1]
            firsts += [(row, k, 0, name) for row in here.tolist()]
        else:
            first = np.full(len(texts) + 1, n)  # the last entry is for missing texts
            first[cells[::-1]] = np.arange(n)[::-1]
            rows = first.tolist()
            firsts += [
                (rows[at], k, at, f"{name}={text}") for at, text in enumerate(texts) if rows[at] < n
            ]
    firsts.sort(key=lambda one: one[:3])
    known = np.full(n, before, dtype=np.int64)
    found = reader.slots_of([name for _, _, _, name in firsts], grow).tolist()
    for (row, k, at, _), slot in zip(firsts, found):
        slots[k][at] = slot
        known[row] = max(known[row], slot + 1)
    return slots, np.minimum(np.maximum.accumulate(known), reader.size)


cdef bint slots_overlap(slots) except -1:
    """Return whether two columns may share a slot."""
    each = [np.unique(found[found >= 0]) for found in slots]
    every = np.concatenate(each) if each else np.zeros(0)
    return len(np.unique(every)) < len(every)


cdef int fill(
    Events rows, const Column* columns, Py_ssize_t count, Py_ssize_t n, known_slots, bint merge
) except -1:
    """Append the rows; with `merge`, values in the same slot are summed."""
    cdef Py_ssize_t i, j, k
    cdef const long long* known
    cdef const Column* column
    cdef int slot
    cdef double x
    cdef Row row
    cdef Tags tags
    cdef int* to
    cdef double* value
    known_slots = np.ascontiguousarray(known_slots, dtype=np.int64)
    known = <const long long*><size_t>known_slots.ctypes.data
    rows.widen(n, n * count, 0)
    tags.kind, tags.label, tags.weight, tags.time = UNLABELED, NAN, 1.0, NAN
    tags.id, tags.id_length = NULL, 0
    for i in range(n):
        rows.offer(&row, count, 0)
        to, value = <int*>row.slot, <double*>row.value
        row.n = 0
        for k in range(count):
            column = columns + k
            if column.number != NULL:
                x, slot = column.number[i], column.slot[0]
                if isnan(x):
                    continue
            elif column.text[i] < 0:
                continue
            else:
                x, slot = 1.0, column.slot[column.text[i]]
            if slot < 0 or x == 0.0:
                continue
            j = 0 if merge else row.n
            while j < row.n and to[j] != slot:
                j += 1
            if j < row.n:
                value[j] += x
                continue
            to[row.n], value[row.n] = slot, x
            row.n += 1
        if merge:
            row.n = drop_zeros(to, value, row.n, i)
        row.square = squared(value, row.n)
        rows.append(&row, &tags, <Py_ssize_t>known[i])
        rows.records += 1
    return 0


cdef Py_ssize_t drop_zeros(int* slot, double* value, Py_ssize_t n, Py_ssize_t row) except -1:
    """Remove sums that are 0, and reject those that are not finite."""
    cdef Py_ssize_t i, kept = 0
    for i in range(n):
        if not isfinite(value[i]):
            raise InvalidEventError(
                f"row {row}: columns with the same name or hash sum to {value[i]}; scale them down")
        slot[kept], value[kept] = slot[i], value[i]
        kept += value[i] != 0.0
    return kept
