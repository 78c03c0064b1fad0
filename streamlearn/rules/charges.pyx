"""The penalties of a mixture's members, with which it charges them.

Psi_k sums l1 |w| + l2/2 w^2 over the slots, each as of the event that touched it last: that keeps
an event at O(its features).
"""

from libc.math cimport fabs

from streamlearn.core.row cimport Row
from streamlearn.rules.rule cimport Rule
from streamlearn.rules.slot_state cimport SlotState
from streamlearn.rules.table cimport SlotTable, copy_from_array, to_array

from streamlearn.rules.slot_state import PerSlot


cdef class Charges(SlotState):
    """The penalties of each slot, one for each member, and their sums."""

    def __init__(self, rules, l1, l2):
        self.l1, self.half_l2 = l1, 0.5 * l2
        self.rules = tuple(rules)
        self.fields = tuple([PerSlot("penalty") for _ in self.rules])
        for k in range(len(self.rules)):
            self.each[k] = <void*>self.rules[k]
            self.sums[k] = 0.0
        self.attach(SlotTable(len(self.fields)), 0)

    cdef void update(self, Row* row, Py_ssize_t free) noexcept nogil:
        """Replace the penalties of the slots of a row that all members have learned."""
        cdef double* cell
        cdef double m, psi
        cdef Py_ssize_t i
        cdef int k
        for i in range(row.n):
            if row.slot[i] >= free and row.value[i] != 0.0:
                cell = self.cell(row.slot[i])
                for k in range(self.width):
                    m = fabs((<Rule>self.each[k]).weight(row.slot[i]))
                    psi = m * (self.l1 + self.half_l2 * m)
                    self.sums[k] += psi - cell[k]
                    cell[k] = psi

    def state(self):
        return {"cells": self.slots(), "sums": to_array(self.sums, self.width)}

    def restore(self, state):
        self.restore_slots(state["cells"])
        copy_from_array(self.sums, state["sums"])
