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
    """The weight of all events in each cell of scores.

    It also has the cells of the events in a sample, and the slopes of the loss at their scores.
    """

    def __init__(self, loss, reservoir):
        self.reservoir = reservoir
        self.of_residuals = loss.score_is_label
        self.begin()

    def begin(self):
        """Forget all events."""
        none = np.empty(0)
        self.restore(np.zeros(CELLS), none, none, none)

    def restore(self, weights, places, cells, slopes):
        """Resume from the weights of cells, and the cells and slopes of a sample."""
        cdef int i
        for i in range(CELLS):
            self.weights[i] = weights[i]
        self.use_samples(places, cells, slopes)

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

    cdef void sample(self, int64_t place, uint16_t cell, double slope) noexcept nogil:
        """Keep the cell of an event that is in the sample, and the slope there."""
        if self.sampled == self.room:
            with gil:
                try:
                    self.make_room()
                except MemoryError:
                    self.reservoir.failed = True
                    return
        self.places[self.sampled], self.cells[self.sampled] = place, cell
        self.slopes[self.sampled] = <float>slope
        self.sampled += 1

    cdef int make_room(self) except -1:
        """Drop the cells of events that have left the sample, and get more memory if needed."""
        # Not in `sample`, which would need the GIL for its variables at every call.
        places, cells, slopes = self.current_samples()
        self.use_samples(places, cells, slopes)
        return 0

    cdef int use_samples(self, places, cells, slopes) except -1:
        cdef Py_ssize_t n = len(places), more = n // 4 if self.reservoir.full else n
        cdef Py_ssize_t room = max(n + more, 1024)
        # New arrays, because the previous ones may be in use as a snapshot.
        self.place_array, self.cell_array = np.empty(room, np.int64), np.empty(room, np.uint16)
        self.slope_array = np.empty(room, np.float32)
        self.place_array[:n], self.cell_array[:n], self.slope_array[:n] = places, cells, slopes
        self.places = <int64_t*>at(self.place_array)
        self.cells = <uint16_t*>at(self.cell_array)
        self.slopes = <float*>at(self.slope_array)
        self.sampled, self.room = n, room
        return 0

    def current_samples(self):
        """Return the positions in the sample, and the cells and slopes there."""
        samples = self.samples()
        if not self.reservoir.full:
            return samples
        kept = keys_of(samples[0], self.reservoir.seed) <= np.uint64(self.reservoir.threshold)
        return tuple([one[kept] for one in samples])

    def samples(self):
        """Return positions, the cells and slopes there; all of the sample, and maybe others."""
        n = self.sampled
        return self.place_array[:n], self.cell_array[:n], self.slope_array[:n]

    def weight_of_each(self):
        """Return the weight of all events in each cell."""
        return np.array(<double[:CELLS]>self.weights)

    def swap_classes(self):
        """Swap the two classes: scores and labels change their signs."""
        places, cells, slopes = self.samples()
        self.restore(self.weight_of_each()[np.arange(CELLS) ^ 3], places, cells ^ 3, -slopes)

    def join(self, weights, samples):
        """Add the weights of cells, and samples, of other events."""
        cdef int i
        for part in weights:
            for i in range(CELLS):
                self.weights[i] += part[i]
        samples = [self.current_samples(), *samples]
        places, cells, slopes = (np.concatenate(parts) for parts in zip(*samples))
        order = np.argsort(places, kind="stable")
        self.use_samples(places[order], cells[order], slopes[order])
