"""Columns: rows of batches in the layout of Apache Arrow, such as those of Parquet files.

A null and a NaN are missing. The label may have any plain type.
"""

from libc.stdint cimport int64_t

import numpy as np

from streamlearn.columns.batch cimport LISTS, ColumnBatch
from streamlearn.columns.reader cimport ColumnReader
from streamlearn.core.numbers cimport invalid_utf8_at
from streamlearn.engine.events cimport Events
from streamlearn.features.reader cimport Reader
from streamlearn.features.scalars cimport Scalar
from streamlearn.features.transforms cimport A_TEXT
from streamlearn.stream.formats.keys cimport ID, LABEL, TIME, WEIGHT, Role
from streamlearn.stream.formats.typed cimport TypedDecoder

from streamlearn.errors import InvalidEventError, TableMismatchError
from streamlearn.features.fields import Ignore, Interaction, spec
from streamlearn.stream.column_rows import ColumnRows

cdef dict ROLES = {"label": LABEL, "weight": WEIGHT, "id": ID, "time": TIME}
cdef enum:
    MOST_ROLES = 4

cdef struct RoleColumn:
    Role role
    int node


cdef class ArrowDecoder(TypedDecoder):
    """Rows of columns.

    >>> import polars as pl
    >>> from streamlearn import Names
    >>> from streamlearn.columns.batch import batches
    >>> from streamlearn.stream import Events, Fields
    >>> (batch,) = batches(pl.DataFrame({"ad": ["shoes", None], "clicked": [True, None]}))
    >>> decoder, events = ArrowDecoder(Names(), Fields(label="clicked")), Events()
    >>> decoder.decode(ColumnRows(batch, 0, 2), events)
    >>> decoder.reader.names(), events.label_of(0), events.label_of(1)
    (['ad=shoes'], True, None)
    """

    cdef ColumnReader columns
    cdef object schema
    cdef RoleColumn[MOST_ROLES] role
    cdef int roles

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        TypedDecoder.__init__(self, reader, fields, learners, grow_always)
        self.columns = ColumnReader(self.reader, self.fields.aside)

    def decode(self, values, Events events, order=None, headers=None):
        """Append the events of these rows, in this order."""
        cdef Py_ssize_t k, first, n = len(values)
        cdef const int64_t[:] place = None
        if not isinstance(values, ColumnRows):
            raise TypeError(f"expected ColumnRows, got {type(values).__name__}")
        self.own(events)
        self.use(values.batch)
        first = values.start
        if order is not None:
            place = np.asarray(order, dtype=np.int64)
            n = len(place)
        for k in range(n):
            try:
                self.begin()
                self.row(first + (k if place is None else place[k]), events)
            except InvalidEventError as error:
                events.refuse(error)
            events.records += 1
        events.byte_count += values.byte_count

    cdef int use(self, ColumnBatch batch) except -1:
        """Read the rows of this batch from now on."""
        cdef int node
        self.columns.use(batch)
        if batch.schema is self.schema:
            return 0
        self.schema = None
        self.check_columns()
        self.roles = 0
        for name, role in self.fields.roles.items():
            node = self.columns.nodes[name]
            if batch.node[node].type >= LISTS:
                raise TableMismatchError(
                    f"column {name!r} ({role}) has lists, mappings or"
                    f" {self.columns.batch.schema.kinds[node]}: it must have numbers or text")
            self.role[self.roles] = RoleColumn(ROLES[role], node)
            self.roles += 1
        self.schema = batch.schema
        return 0

    def check_columns(self):
        """Raise TableMismatchError unless there are the columns of roles and declared fields."""
        fields, found = self.fields, set(self.columns.names)
        declared = [name for name, field in self.reader.fields.items() if (
            name != spec.OTHERS and not isinstance(field, (Ignore, Interaction)))]
        for name in (*fields.roles, *declared):
            parts = name.split(".")
            above = {".".join(parts[:k]) for k in range(1, len(parts) + 1)}
            if name not in fields.ignored and not (
                    name in found if name in fields.roles else above & found):
                raise TableMismatchError(
                    f"no column {name!r} among {', '.join(self.columns.names)[:200]!r}")

    def unread(self):
        """Return the names of the columns of the last batch that are not read: ignored ones."""
        cdef ColumnBatch batch = self.columns.batch
        cdef int k, node
        if batch is None:
            return frozenset()
        used = {self.role[k].node for k in range(self.roles)}
        used.update([self.columns.column[k].node for k in range(self.columns.columns)])
        top = set()
        for node in used:
            while batch.node[node].parent:
                node = batch.node[node].parent
            top.add(batch.schema.names[node])
        return frozenset(batch.schema.columns) - top

    cdef int row(self, int64_t i, Events events) except -1:
        """Append the event of a row."""
        cdef Reader reader = self.reader
        cdef ColumnBatch batch = self.columns.batch
        cdef Scalar scalar
        cdef int k
        reader.enter()
        try:
            for k in range(self.roles):
                if batch.scalar(batch.node + self.role[k].node, i, &scalar):
                    self.take(self.role[k].role, &scalar)
            reader.begin()
            self.columns.put(reader, i)
            reader.complete()
            self.set_label()
            reader.look_up(self.grows())
        finally:
            reader.leave()
        return self.push(events)

    cdef int take(self, Role role, Scalar* scalar) except -1:
        """Take the value of a column with a role."""
        if scalar.seconds and role != TIME:
            raise self.refusal(name_of(role), "is a time: it must be a number or text")
        if scalar.value.kind == A_TEXT and invalid_utf8_at(
                scalar.value.text, scalar.value.length) >= 0:
            raise self.refusal(name_of(role), "is text that is not UTF-8")
        return self.take_role(role, scalar)

    def field_names(self):
        """Return the columns, with dots for those inside others."""
        return list(self.columns.names)


cdef str name_of(Role role):
    return next(name for name, one in ROLES.items() if one == role)
