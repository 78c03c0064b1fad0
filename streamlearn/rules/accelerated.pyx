"""Accelerated regularized dual averaging: [Xiao10] Algorithm 3 with (37) and (38).

    alpha_t = t / 2,  A_t = t (t + 1) / 4,  theta_t = 2 / (t + 1),  beta_t = gamma (t+1)^1.5 / 2
    u_t = (1 - theta_t) w_{t-1} + theta_t v_{t-1}        the slope is evaluated here
    v_t = argmin <s, v> + A_t Psi(v) + (L + beta_t) h(v)   with s = sum alpha_tau g_tau
    w_t = (1 - theta_t) w_{t-1} + theta_t v_t              which is sum alpha_tau v_tau / A_t

A slot's sum of alpha_tau v_tau is updated when an event touches the slot.
"""

from libc.math cimport fabs, fmax, pow

from streamlearn.penalties.penalty cimport slot_weight
from streamlearn.core.row cimport Row
from streamlearn.rules.dual cimport Dual
from streamlearn.rules.recorded_steps cimport StepSums
from streamlearn.rules.rule cimport Rule

from streamlearn.rules.requirements import euclidean, one_output_on_simplex, smooth
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF SUMS = 0
DEF TOTAL = 1
DEF SEEN = 2


cdef class AcceleratedDualAveraging(Dual):
    """Accelerated RDA ([Xiao10] Algorithm 3), for smooth losses, best with batches.

    `smoothness` is L, the Lipschitz constant of the gradients; None means the largest |x|^2 seen
    times the loss's curvature bound. An event costs O(d) with Zero, L1, L2, ElasticNet and Ball,
    and O(n) with thresholds over all slots or when the weights are averaged.
    """

    _names = ("gamma", "smoothness")
    _examples = ((), (0.5, 2.0))
    fields = (
        PerSlot("gradients", flips_sign=True),
        PerSlot("total", flips_sign=True),
        PerSlot("seen"),
    )
    scalars = (*Dual.scalars, "longest", "coming")
    needs = (one_output_on_simplex, euclidean, smooth)
    scalar_merges = {}
    cdef readonly double gamma
    cdef readonly object smoothness
    cdef public double longest, coming
    cdef double bend
    cdef StepSums history

    @property
    def why_no_merge(self):
        return "it extrapolates along one sequence of steps; use DualAveraging"

    def __init__(self, gamma=1.0, smoothness=None):
        self.gamma = number("AcceleratedDualAveraging", "gamma", gamma, low=0.0)
        self.smoothness = smoothness
        if smoothness is not None:
            self.smoothness = number("AcceleratedDualAveraging", "smoothness", smoothness, low=0.0)

    def start(self):
        Dual.start(self)
        self.observes_events = self.smoothness is None
        self.query_is_not_score = True
        self.longest = 0.0 if self.observes_events else self.smoothness
        self.coming = self.longest
        self.bend = self.loss.curvature_bound
        if self.averages_lazily:
            self.history = StepSums()
        # w is an average, and an average of averages has no closed form
        self.averages_lazily = False

    cdef int grow(self, Py_ssize_t n) except -1:
        Dual.grow(self, n)
        if self.history is not None:
            self.history.reserve(self.n)
        return 0

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        self.cell(j)[SEEN] = self.t

    cdef void coefficients(self, double* a, double* b) noexcept nogil:
        a[0] = 0.25 * self.t * (self.t + 1.0)
        b[0] = self.longest + 0.5 * self.gamma * pow(self.t + 1.0, 1.5)

    cdef void observe(self, Row* row, double loss_at_zero, double weight) noexcept nogil:
        # takes effect at the step that learns the event
        self.coming = fmax(self.coming, weight * row.square * self.bend)

    cdef double total(self, Py_ssize_t j, double t) noexcept nogil:
        """Return sum alpha_tau v_tau of slot j through step t."""
        cdef double* cell = self.cell(j)
        cdef double more
        if self.history is None:
            return cell[TOTAL]
        more = self.history.sum_between(fabs(cell[SUMS]), cell[SEEN], t)
        return cell[TOTAL] + (-more if cell[SUMS] > 0.0 else more)

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        if self.t == 0.0:
            return 0.0
        return self.total(j, self.t) / (0.25 * self.t * (self.t + 1.0))

    cdef double score(self, Row* row) noexcept nogil:
        return Rule.score(self, row)

    def scoring(self):
        """Return how `predict` computes a score."""
        return Rule.scoring(self)

    cdef double query(self, Row* row) noexcept nogil:
        cdef double shown
        return self.query_and_predict(row, &shown)

    cdef double query_and_predict(self, Row* row, double* shown) noexcept nogil:
        cdef double theta = 2.0 / (self.t + 2.0), p = 0.0, w, v
        cdef Py_ssize_t i, j
        shown[0] = 0.0
        for i in range(row.n):
            j = row.slot[i]
            w = self.weight(j)
            v = slot_weight(&self.shape, self.cell(j)[0], j)
            shown[0] += w * row.value[i]
            p += ((1.0 - theta) * w + theta * v) * row.value[i]
        return p

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double alpha = 0.5 * (self.t + 1.0)
        cdef Py_ssize_t i, j
        if self.history is not None:
            for i in range(row.n):
                j = row.slot[i]
                self.cell(j)[TOTAL] = self.total(j, self.t)
                self.cell(j)[SEEN] = self.t
        self.add(row, alpha * slope)
        self.t += 1.0
        self.longest = self.coming
        self.reshape()
        if self.history is None:
            for j in range(self.n):
                self.cell(j)[TOTAL] += alpha * slot_weight(
                    &self.shape, self.cell(j)[0], j
                )
            return
        self.history.append(-alpha * self.shape.scale, self.shape.threshold)
        self.needs_rebase = self.history.full()

    cdef void rebase(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n):
            self.cell(j)[TOTAL] = self.total(j, self.t)
            self.cell(j)[SEEN] = self.t
        self.history.restart(self.t)
        self.needs_rebase = False

    def bound(self, u):
        return None, "its bound holds only in expectation ([Xiao10] Theorem 6)"

    def state(self):
        state = Dual.state(self)
        if self.history is not None:
            state["history"] = self.history.state()
        return state

    def restore(self, state):
        if self.history is not None:
            self.history.restore(state["history"])
        Dual.restore(self, state)
