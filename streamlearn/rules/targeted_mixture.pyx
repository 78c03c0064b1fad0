"""The default learner with a number of weights in place of a strength of l1.

For every slot, the strength from which its weight is 0 has a closed form: that at which the
threshold T = l1 t + min(sqrt G, 30 l1 t) is |z| (rules/sparse_slot.pxd). The strength in use is
between the k-th largest of them and the next, so k weights remain. It is set again after twice as
many features as there are slots, so that an event costs O(its features), and sooner when a member
of the mixture falls silent or speaks again.

Members are not charged their penalties: the number of weights is given, and what is left to
minimize is the loss.
"""

from libc.math cimport fabs
from libc.stdlib cimport free

from streamlearn.core.memory cimport reallocate
from streamlearn.core.row cimport Row
from streamlearn.losses.loss cimport Loss
from streamlearn.rules.sparse_mixture cimport BASE, MEMBERS, SparseMixture
from streamlearn.rules.sparse_slot cimport (
    AVERAGE, FOLLOWER, MARGIN, NEWTON, Slot, larger, smaller,
)

DEF APART = 2.0  # features between two settings, for each slot
DEF SOONER = 0.125  # and when other members speak
DEF ABOVE = 1.0 + 1e-9  # so that a tie is not decided by rounding


cdef inline double limit(double z, double norm) noexcept nogil:
    """Return the l1 t from which |z| is within the threshold."""
    cdef double m = fabs(z)
    return m / (1.0 + MARGIN) if MARGIN * m <= (1.0 + MARGIN) * norm else m - norm


cdef inline void replace_least(double* heap, Py_ssize_t n, double x) noexcept nogil:
    """Replace the first, the least number of a binary heap, by x."""
    cdef Py_ssize_t i = 0, child = 1
    while child < n:
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= x:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = x


cdef class TargetedMixture(SparseMixture):
    """`Mixture()` for `TargetNonzero`."""

    scalars = (*SparseMixture.scalars, "strength", "set_at", "speakers")
    cdef public double strength  # of l1, now
    cdef public double set_at  # the number of features when it was set
    cdef public int speakers  # the members that spoke then, a bit for each
    cdef Py_ssize_t k
    cdef int* seen  # the slots that were ever touched, in any order
    cdef Py_ssize_t seen_count, seen_room

    def __dealloc__(self):
        free(self.seen)

    def start(self):
        self.k = min(self.penalty.k, 2**62)
        SparseMixture.start(self)

    def restored(self):
        cdef Py_ssize_t j
        self.seen_count = 0
        for j in range(self.free_slots, self.n):
            if (<Slot*>self.cell(j)).count > 0.0:
                self.see(j)
        self.set_l1(self.strength)
        SparseMixture.restored(self)

    cdef int grow(self, Py_ssize_t n) except -1:
        SparseMixture.grow(self, n)
        if n > self.seen_room:
            self.seen_room = max(n, 2 * self.seen_room)
            self.seen = <int*>reallocate(self.seen, self.seen_room * sizeof(int))
        return 0

    cdef inline void see(self, Py_ssize_t j) noexcept nogil:
        self.seen[self.seen_count] = <int>j
        self.seen_count += 1

    cdef void share_out(self) noexcept nogil:
        """Let a member with weights speak, even where the base rate is better than all of them."""
        cdef int k, best = 0
        SparseMixture.share_out(self)
        if self.audible[BASE] < 1.0:
            return
        for k in range(BASE):
            best = k if self.pi[k] > self.pi[best] else best
        self.audible[best] = self.pi[best] / (self.pi[best] + self.pi[BASE])
        self.audible[BASE] = 1.0 - self.audible[best]

    cdef void charge(self, double slope, double p) noexcept nogil:
        cdef int k
        for k in range(MEMBERS):
            self.penalty_sum[k] = 0.0
        SparseMixture.charge(self, slope, p)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef const Slot* slot
        cdef Py_ssize_t i
        cdef double pause
        cdef int speakers = 0, k
        SparseMixture.apply(self, row, loss, y, weight, p, slope)
        for i in range(row.n):
            slot = <const Slot*>self.cell(row.slot[i])
            if slot.count == 1.0 and slot.last == self.t and row.slot[i] >= self.free_slots:
                self.see(row.slot[i])
        for k in range(BASE):
            speakers += (self.audible[k] > 0.0) << k
        speakers += self.voters << BASE
        pause = APART if speakers == self.speakers else SOONER
        if self.features - self.set_at >= pause * self.seen_count:
            self.set_at, self.speakers, self.strength = self.features, speakers, self.steered()
            self.set_l1(self.strength)
            self.set_strengths()

    cdef double limit_of(self, Py_ssize_t j) noexcept nogil:
        """Return the l1 t from which the weight of slot j is 0."""
        cdef const Slot* slot = <const Slot*>self.cell(j)
        cdef double found = 0.0, voted = 0.0, one, idle = self.t - slot.last
        cdef int k
        for k in range(NEWTON + 1):
            one = limit(slot.z[k], slot.norm[0])
            if self.audible[k] > 0.0:
                found = larger(found, one)
            if self.voters >> k & 1:
                voted = larger(voted, one)
        if self.audible[FOLLOWER] + self.audible[AVERAGE] > 0.0:
            if idle > 0.0:
                voted = smaller(voted, fabs(slot.z[FOLLOWER]) * (self.t / idle))
            found = larger(found, voted)
        return found

    cdef double steered(self) noexcept nogil:
        """Return the strength with which k weights remain."""
        cdef Py_ssize_t i, k = self.k
        cdef double one, least
        cdef double* largest
        if self.seen_count <= k:
            return 0.0
        # a heap of the k + 1 largest
        largest = self.scratch_for(k + 1)
        for i in range(k + 1):
            largest[i] = 0.0
        for i in range(self.seen_count):
            one = self.limit_of(self.seen[i])
            if one > largest[0]:
                replace_least(largest, k + 1, one)
        least = largest[1] if k == 1 else smaller(largest[1], largest[2])
        return 0.5 * (largest[0] + least) / self.t * ABOVE

    def bound(self, u):
        return None, "its strength of l1 follows the events, and bounds hold for a fixed one"
