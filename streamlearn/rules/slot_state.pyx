"""State per slot, declared once: growth, memory, files and copies follow from `fields`.

Objects that see the same rows may store the numbers of a slot side by side in one table.
"""

from streamlearn.core.parameters cimport Parameterized
from streamlearn.rules.table cimport SlotTable

from typing import NamedTuple

import numpy as np

from streamlearn.errors import ModelFileError


class PerSlot(NamedTuple):
    """A number that is kept for every slot."""

    name: str
    start: float = 0.0
    merge: str | None = None  # how the numbers of several workers combine: see rules/merging.py
    flips_sign: bool = False  # when the two classes are swapped


cdef class SlotState(Parameterized):
    """The numbers of all slots, `fields` for each, in a table of its own or a shared one."""

    fields = ()

    def attach(self, SlotTable table, offset):
        """Store the numbers of each slot in this table, starting at `offset`."""
        self.width = len(self.fields)
        self.table = table
        self.offset = offset
        self.stride = table.width

    cdef int grow(self, Py_ssize_t n) except -1:
        """Add slots up to n - 1."""
        cdef Py_ssize_t old = self.n, j
        cdef int f
        if n <= old:
            return 0
        self.table.reserve(n)
        self.cells = self.table.cells + self.offset
        starts = [field.start for field in self.fields]
        for f in range(self.width):
            start_value(self.cells + f, self.stride, old, n, starts[f])
        for j in range(old, n):
            self.init_slot(j)
        self.n = n
        return 0

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        """Initialize slot j where constant start values are not enough."""

    def extend(self, n):
        """Add slots up to n - 1."""
        self.grow(n)

    def parts(self):
        """Return all that has numbers per slot or scalars, in the order of `derive`."""
        return [self]

    def settle(self):
        """Bring the numbers of all slots to the current step, so that those of workers compare."""

    def derive(self):
        """Compute the numbers whose merge is "derived" from the others."""

    def slots(self):
        """Return a copy of the numbers of all slots."""
        return self.table.copy_columns(self.offset, self.width, self.n)

    def restore_slots(self, cells):
        """Restore what `slots` returned."""
        if cells.shape != (len(cells), self.width) or len(cells) < self.n:
            raise ModelFileError(
                f"the saved state of shape {cells.shape} does not fit {type(self).__name__}: load "
                "it into the rule that wrote it"
            )
        self.grow(len(cells))
        self.table.restore_columns(self.offset, cells)

    def swap_classes(self):
        """Swap the two classes."""
        cdef Py_ssize_t j
        cdef int f
        for f in range(self.width):
            if self.fields[f].flips_sign:
                for j in range(self.n):
                    self.cell(j)[f] = -self.cell(j)[f]

    def widen_outputs(self, Py_ssize_t old, Py_ssize_t new):
        """Give every feature `new` slots instead of `old`, one per class."""
        cdef Py_ssize_t features = self.n // old, j, k
        cells = self.slots()
        wide = np.empty((features, new, self.width))
        for k, field in enumerate(self.fields):
            wide[:, :, k] = field.start
        wide[:, :old] = cells.reshape(features, old, self.width)
        self.grow(features * new)
        self.table.restore_columns(self.offset, wide.reshape(features * new, self.width))
        for j in range(features):
            for k in range(old, new):
                self.init_slot(j * new + k)


cdef void start_value(
    double* field, Py_ssize_t stride, Py_ssize_t old, Py_ssize_t n, double start
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(old, n):
        field[j * stride] = start
