"""A diagonal second-order rule with an implicit step.

With u = x / s (s_j is the size of feature j, the largest |x_j| so far), q_j starting at `prior`,
and B = sum u_j^2 / q_j, the slope h at the end of the step solves h = slope(p - h B), and

    w_j <- w_j - h u_j / (q_j s_j),   then   q_j += u_j^2 times the loss's curvature at p.

With `size="typical"`, outliers hardly change the sizes (rules/feature_sizes.pyx). Under l1 or l2,
the steps are in FTRL-proximal form (rules/ftrl_forms.pyx).
"""

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair, first, firsts, subtract, load, partner, divide, add, second, seconds, store, multiply,
    make_pair,
)
from streamlearn.core.row cimport Row
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.rules.self_tuning cimport Normalized

from streamlearn.rules.ftrl_forms import FTRLNewton
from streamlearn.rules.self_tuning import checked_size
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF CURVATURE = 1


cdef class DiagonalNewton(Normalized):
    """Implicit Newton steps along each slot; `prior` is the curvature each starts with."""

    _names = ("prior", "size")
    _examples = ((), (0.7,), (3.0, "typical"))
    fields = (
        PerSlot("weight", merge="slotwise", flips_sign=True),
        PerSlot("curvature", merge="seen"),
    )
    evidence = "curvature"
    cdef readonly double prior

    def __init__(self, prior=3.0, size="largest"):
        self.prior = number("DiagonalNewton", "prior", prior, above=0.0)
        self.size = checked_size("DiagonalNewton", size)

    def implementation(self, Penalty penalty):
        """Use the form that takes l1 and l2, if there is such a penalty."""
        return (FTRLNewton if penalty.l1 + penalty.l2 > 0.0 else type(self))(**self.params)

    cdef void init_slot(self, Py_ssize_t j) noexcept nogil:
        self.cell(j)[CURVATURE] = self.prior

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double h, bend = weight * loss.curvature_at(p, y)
        cdef Pair u, w, q, reach = make_pair(0.0, 0.0)
        # local copies, because stores would force these to be reloaded
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef double* moves = self.scratch_for(row.n + 1)
        cdef const double* unit = self.sizes.unit
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        # for each feature, two at a time (core/pairs.pxd): move = u / q,  B += u move
        for i in range(0, n, 2):
            j = partner(i, n)
            u = load(unit + i)
            w = divide(u, seconds(load(cells + stride * slot[i]), load(cells + stride * slot[j])))
            store(moves + i, w)
            reach = add(reach, multiply(u, w))
        h = weight * loss.implicit_at(p, y, weight * (first(reach) + second(reach)), slope)
        self.t += 1.0
        self.watch_label(loss, y)
        if bend == 0.0:
            # a piecewise linear loss: use the squared slope, as in online Newton steps
            bend = weight * slope * slope
        if h == 0.0:
            # at a kink the implicit step is 0; the papers' choice of slope moves on
            h = weight * slope
        # and then: w -= h move,  q += bend u^2
        for i in range(0, n, 2):
            j = partner(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            u = load(unit + i)
            w = subtract(firsts(load(a), load(b)), multiply(make_pair(h, h), load(moves + i)))
            q = add(seconds(load(a), load(b)), multiply(multiply(u, u), make_pair(bend, bend)))
            store(b, seconds(w, q))
            store(a, firsts(w, q))
