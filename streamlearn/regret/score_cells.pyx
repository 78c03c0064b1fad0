"""How a learner's scores before learning are distributed: of all events, and of the sampled ones.

A cell is a range of scores and a class of labels. It consists of a label's sign and of the sign,
the exponent and the first three bits of the fraction of a score, so that it needs no scale. If the
score is on the label's scale, residuals (label - score) take the place of scores, and with a vector
of scores the loss does.
"""

cimport cython
from libc.stdint cimport int64_t, uint16_t

from streamlearn.losses.loss cimport PendingEvents
from streamlearn.regret.reservoir cimport at

import numpy as np

from streamlearn.regret.reservoir import keys_of


@cython.final
cdef class ScoreCells:
    """The weight of all events in each cell of scores, and the cells of the events in a sample."""

    def __init__(self, loss, reservoir):
        self.reservoir = reservoir
        self.of_residuals = loss.score_is_label
        self.begin()

    def begin(self):
        """Forget all events."""
        self.restore(np.zeros(CELLS), np.empty(0, np.int64), np.empty(0, np.uint16))

    def restore(self, weights, places, cells):
        """Resume from the weights of cells, and the cells of a sample."""
        cdef int i
        for i in range(CELLS):
            self.weights[i] = weights[i]
        self.use_samples(places, cells)

    cdef uint16_t cell_at(self, const PendingEvents* events, int i) noexcept nogil:
        """Return the cell of an event."""
        if self.of_residuals:
            return cell_of(events.label[i] - events.score[i], False)
        return cell_of(events.score[i], events.label[i] > 0.0)

    cdef void add(self, uint16_t cell, double weight) noexcept nogil:
        """Add the weight of an event to a cell."""
        self.weights[cell] += weight

    cdef void count(self, const PendingEvents* events) noexcept nogil:
        """Add the weights of events to their cells."""
        cdef int i
        for i in range(events.n):
            self.weights[self.cell_at(events, i)] += events.weight[i]

    cdef void sample(self, int64_t place, uint16_t cell) noexcept nogil:
        """Keep the cell of an event that is in the sample."""
        if self.sampled == self.room:
            with gil:
                try:
                    self.make_room()
                except MemoryError:
                    self.reservoir.failed = True
                    return
        self.places[self.sampled], self.cells[self.sampled] = place, cell
        self.sampled += 1

    cdef int make_room(self) except -1:
        """Drop the cells of events that have left the sample, and get more memory if needed."""
        # Not in `sample`, which would need the GIL for its variables at every call.
        places, cells = self.current_samples()
        self.use_samples(places, cells)
        return 0

    cdef int use_samples(self, places, cells) except -1:
        cdef Py_ssize_t n = len(places), more = n // 4 if self.reservoir.full else n
        cdef Py_ssize_t room = max(n + more, 1024)
        # New arrays, because the previous ones may be in use as a snapshot.
        self.place_array, self.cell_array = np.empty(room, np.int64), np.empty(room, np.uint16)
        self.place_array[:n], self.cell_array[:n] = places, cells
        self.places = <int64_t*>at(self.place_array)
        self.cells = <uint16_t*>at(self.cell_array)
        self.sampled, self.room = n, room
        return 0

    def current_samples(self):
        """Return the positions in the sample and the cells there."""
        places, cells = self.samples()
        if not self.reservoir.full:
            return places, cells
        kept = keys_of(places, self.reservoir.seed) <= np.uint64(self.reservoir.threshold)
        return places[kept], cells[kept]

    def samples(self):
        """Return positions and the cells there; all of the sample, and maybe others."""
        return self.place_array[:self.sampled], self.cell_array[:self.sampled]

    def weight_of_each(self):
        """Return the weight of all events in each cell."""
        return np.array(<double[:CELLS]>self.weights)

    def swap_classes(self):
        """Swap the two classes: scores and labels change their signs."""
        places, cells = self.samples()
        self.restore(self.weight_of_each()[np.arange(CELLS) ^ 3], places, cells ^ 3)

    def join(self, weights, samples):
        """Add the weights of cells, and the cells of samples, of other events."""
        cdef int i
        for part in weights:
            for i in range(CELLS):
                self.weights[i] += part[i]
        places, cells = zip(self.current_samples(), *samples)
        new = np.concatenate(places)
        order = np.argsort(new, kind="stable")
        self.use_samples(new[order], np.concatenate(cells)[order])
