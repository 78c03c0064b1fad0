"""Normalized adaptive steps ([Ross13]).

    N += sum x_j^2 / s_j^2,  G_j += g^2 x_j^2
    w_j <- w_j - rate sqrt(t / N) g x_j / (s_j sqrt(G_j))

with s_j the size of feature j, the largest |x_j| so far; when it grows, w_j shrinks with it.
`update` is the kind of step: "explicit", "implicit" (the slope at the place reached) or "invariant"
(the limit of infinitely many infinitesimal steps; [Karampatziakis11]). `size` "typical" is a size
that outliers hardly change (rules/sizes.pyx); N then counts features.
"""

from libc.math cimport sqrt

from streamlearn.losses.loss cimport Loss
from streamlearn.core.pairs cimport (
    Pair,
    first,
    firsts,
    less,
    load,
    mate,
    over,
    plus,
    root,
    second,
    seconds,
    store,
    times,
    two,
    values,
    where_above,
)
from streamlearn.core.row cimport Row
from streamlearn.rules.guarded cimport Sized

from streamlearn.rules.guarded import kind_of_size
from streamlearn.rules.rule import Field
from streamlearn.core.parameters import number

UPDATES = {"explicit": 0, "implicit": 1, "invariant": 2}


cdef class NormalizedAdaptive(Sized):
    """Normalized adaptive gradient steps, indifferent to the scale of each feature."""

    _names = ("rate", "update", "size")
    _examples = ((), (4.0, "implicit"), (16.0, "invariant"), (1.0, "explicit", "typical"))
    fields = (Field("weight", odd=True), Field("squares", merge="sum"))
    scalars = (*Sized.scalars, "norm")

    def __init__(self, rate=1.0, update="explicit", size="largest"):
        self.rate = number("NormalizedAdaptive", "rate", rate, above=0.0)
        if update not in UPDATES:
            raise ValueError(
                f"NormalizedAdaptive: update must be one of {', '.join(UPDATES)}, got {update!r}"
            )
        self.kind = update
        self.update_kind = UPDATES[update]
        self.size = kind_of_size("NormalizedAdaptive", size)

    @property
    def params(self):
        return {"rate": self.rate, "update": self.kind, "size": self.size}

    cdef void learn_met(
        self, Row* row, Loss loss, double y, double weight, double p, double slope
    ) noexcept nogil:
        cdef double pace, g = weight * slope
        cdef bint explicit = self.update_kind == 0
        cdef Pair x, w, squares, step, reach = two(0.0, 0.0), none = reach
        cdef Pair gradient = two(g, g), rate
        cdef double* steps = self.scratch_for(row.n + 1)
        # by names of their own, or they would be read anew after every store
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
        rate = two(pace, pace)
        for i in range(0, n, 2):
            j = mate(i, n)
            a = cells + stride * slot[i]
            b = cells + stride * slot[j]
            x = values(value, i, j)
            w = firsts(load(a), load(b))
            step = times(gradient, x)
            squares = plus(seconds(load(a), load(b)), times(step, step))
            # the rate last: it may be too much for the greatest x
            step = where_above(squares, none, times(rate, over(x, root(squares))))
            if explicit:
                w = less(w, times(gradient, step))
            else:
                store(steps + i, step)
                reach = plus(reach, times(step, load(unit + i)))
            store(b, seconds(w, squares))
            store(a, firsts(w, squares))
        if not explicit:
            g = self.slope_of_step(loss, p, y, slope, weight, first(reach) + second(reach))
            for i in range(n):
                cells[stride * slot[i]] -= g * steps[i]

    cdef inline double slope_of_step(
        self, Loss loss, double p, double y, double slope, double weight, double reach
    ) noexcept nogil:
        """The slope to step along, where a step of slope h moves the score by -h reach."""
        cdef double h
        if self.update_kind == 1:
            h = weight * loss.implicit_at(p, y, weight * reach, slope)
        else:
            h = weight * loss.flow_at(p, y, weight * reach, slope)
        # at a kink such a step stands still; the slope that the papers choose leaves it
        return h if h != 0.0 else weight * slope
