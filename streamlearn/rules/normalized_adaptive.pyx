"""Normalized adaptive steps ([Ross13]).

    N += sum x_j^2 / s_j^2,  G_j += g^2 x_j^2
    w_j <- w_j - rate sqrt(t / N) g x_j / (s_j sqrt(G_j))

where s_j is the size of feature j, the largest |x_j| so far; when it grows, w_j shrinks with it.
`update` is the kind of step: "explicit", "implicit" (the slope at the end of the step) or
"invariant" (the limit of infinitely many infinitesimal steps; [Karampatziakis11]). With
`size="typical"`, outliers hardly change the sizes (rules/feature_sizes.pyx), and N counts features.

Under l1 or l2, the steps are those of FTRL-proximal (rules/ftrl_forms.pyx).
"""

from libc.math cimport sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair, first, firsts, subtract, load, partner, divide, add, square_root, second, seconds,
    store, multiply, make_pair, load_values, select_above,
)
from streamlearn.core.row cimport Row
from streamlearn.penalties.penalty cimport Penalty
from streamlearn.rules.self_tuning cimport Normalized, moving_slope

from streamlearn.rules.ftrl_forms import FTRLAdaptive
from streamlearn.rules.self_tuning import checked_size
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

UPDATES = {"explicit": 0, "implicit": 1, "invariant": 2}


cdef class NormalizedAdaptive(Normalized):
    """Normalized adaptive gradient steps, invariant to the scale of each feature."""

    _names = ("rate", "update", "size")
    _examples = ((), (4.0, "implicit"), (16.0, "invariant"), (1.0, "explicit", "typical"))
    fields = (
        PerSlot("weight", merge="slotwise", flips_sign=True), PerSlot("squares", merge="seen"),
    )
    evidence = "squares"
    scalar_merges = {**Normalized.scalar_merges, "norm": "mean"}
    scalars = (*Normalized.scalars, "norm")

    def __init__(self, rate=1.0, update="explicit", size="largest"):
        self.rate = number("NormalizedAdaptive", "rate", rate, above=0.0)
        if update not in UPDATES:
            raise ValueError(
                f"NormalizedAdaptive: update must be one of {', '.join(UPDATES)}, got {update!r}"
            )
        self.kind = update
        self.update_kind = UPDATES[update]
        self.size = checked_size("NormalizedAdaptive", size)

    @property
    def params(self):
        return {"rate": self.rate, "update": self.kind, "size": self.size}

    def implementation(self, Penalty penalty):
        """Use the form that takes l1 and l2, if there is such a penalty."""
        return (FTRLAdaptive if penalty.l1 + penalty.l2 > 0.0 else type(self))(**self.params)

    cdef void apply(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double pace, g = weight * slope
        cdef bint explicit = self.update_kind == 0
        cdef Pair x, w, squares, step, reach = make_pair(0.0, 0.0), none = reach
        cdef Pair gradient = make_pair(g, g), rate
        cdef double* steps = self.scratch_for(row.n + 1)
        # local copies, because stores would force these to be reloaded
        cdef double* cells = self.cells
        cdef double* a
        cdef double* b
        cdef const double* value = row.value
        cdef const double* unit = self.sizes.unit
        cdef const int* slot = row.slot
        cdef Py_ssize_t i, j, n = row.n, stride = self.stride
        self.norm += self.sizes.length
        self.t += 1.0
        self.watch_label(loss, y)
        if g == 0.0 or self.norm == 0.0:
            return
        pace = self.rate * sqrt(self.t / self.norm)
        rate = make_pair(pace, pace)
        # for each feature, two at a time (core/pairs.pxd):
        #     cell[SQUARES] += (g x)^2
        #     step = pace x / sqrt(cell[SQUARES])
        #     cell[WEIGHT] -= g step    (explicit; else after the loop, with another slope)
        for i in range(0, n, 2):
            j = partner(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            x = load_values(value, i, j)
            w = firsts(load(a), load(b))
            step = multiply(gradient, x)
            squares = add(seconds(load(a), load(b)), multiply(step, step))
            # multiply by the rate last: it could overflow for the largest x
            step = select_above(squares, none, multiply(rate, divide(x, square_root(squares))))
            if explicit:
                w = subtract(w, multiply(gradient, step))
            else:
                store(steps + i, step)
                reach = add(reach, multiply(step, load(unit + i)))
            store(b, seconds(w, squares))
            store(a, firsts(w, squares))
        if not explicit:
            g = moving_slope(
                self.update_kind == 1, loss, p, y, slope, weight, first(reach) + second(reach)
            )
            for i in range(n):
                cells[stride * slot[i]] -= g * steps[i]
