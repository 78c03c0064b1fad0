"""The columns of tables as rows, without building an event per row."""

from libc.math cimport NAN

from streamlearn.columns.batch cimport ColumnBatch
from streamlearn.columns.reader cimport ColumnReader
from streamlearn.engine.events cimport UNLABELED, Events, Tags
from streamlearn.features.reader cimport Reader

from streamlearn.errors import InvalidEventError


def rows_from_batches(ColumnReader columns, batches, bint grow, weights=None):
    """Return the rows of batches of columns as Events: all of them, or none if one is invalid.

    With `grow`, new names get slots in the same order as when reading event by event, but those of
    rows with weight 0 do not.

    >>> import numpy as np
    >>> from streamlearn.columns.batch import batch_of
    >>> from streamlearn.columns.reader import ColumnReader
    >>> from streamlearn.features import Names
    >>> batch = batch_of(2, [("age", b"g", [None, np.array([31.0, np.nan])], None)])
    >>> rows = rows_from_batches(ColumnReader(reader := Names()), [batch], True)
    >>> reader.names(), rows.row_of(0), rows.row_of(1)
    (['age'], [(0, 31.0)], [])
    """
    cdef Events rows = Events()
    cdef Reader reader = columns.reader
    cdef Tags tags
    cdef ColumnBatch batch
    cdef const double[:] given
    cdef const double* weight = NULL
    if weights is not None and len(weights):
        given = weights
        weight = &given[0]
    mark = reader.mark()
    tags.kind, tags.label, tags.weight, tags.time = UNLABELED, NAN, 1.0, NAN
    tags.id, tags.id_length = NULL, 0
    try:
        for batch in batches:
            columns.use(batch)
            rows.widen(rows.n + batch.rows, rows.start[rows.n] + batch.rows * columns.columns, 0)
            add_rows(columns, rows, &tags, grow, weight)
    except InvalidEventError as error:
        reader.take_back(mark)
        raise InvalidEventError(f"row {rows.n}: {error}", error.field) from None
    except BaseException:
        reader.take_back(mark)
        raise
    finally:
        columns.release()
    return rows


cdef int add_rows(
        ColumnReader columns, Events rows, Tags* tags, bint grow, const double* weight) except -1:
    """Append the rows of the current batch."""
    cdef Reader reader = columns.reader
    cdef Py_ssize_t i, n = columns.batch.rows
    reader.enter()
    try:
        with nogil:
            for i in range(n):
                reader.begin()
                columns.put(reader, i)
                reader.complete()
                reader.look_up(grow and (weight == NULL or weight[rows.n] != 0.0))
                rows.append(&reader.row, tags, reader.size)
                rows.records += 1
    finally:
        reader.leave()
    return 0
