"""AdaGrad in its dual averaging form ([Duchi11]; [Xiao10] section 5).

    w_j = argmin  s_j w + t Psi_j(w) + (delta + sqrt(H_j)) / (2 step) w^2,   H_j = sum g_j^2
"""

from libc.math cimport ceil, fabs, log1p, sqrt

from streamlearn.core.row cimport Row
from streamlearn.rules.paid_penalty cimport with_penalty
from streamlearn.rules.rule cimport Rule

from streamlearn.rules.requirements import coordinatewise
from streamlearn.rules.slot_state import PerSlot
from streamlearn.core.parameters import number

DEF SUM = 0
DEF SQUARES = 1


cdef class AdaGradDualAveraging(Rule):
    """Dual averaging with a step size per slot: exact zeros with l1; O(d) per event."""

    _names = ("step", "delta")
    _examples = ((0.3,), (0.5, 0.2))
    fields = (
        PerSlot("gradients", merge="slotwise", flips_sign=True),
        PerSlot("squares", merge="seen"),
    )
    evidence = "squares"
    sums_gradients = True
    needs = (coordinatewise,)
    cdef readonly double step, delta
    cdef bint berhu

    def __init__(self, step, delta=1.0):
        self.step = number("AdaGradDualAveraging", "step", step, above=0.0)
        self.delta = number("AdaGradDualAveraging", "delta", delta, above=0.0)

    def start(self):
        self.berhu = not self.penalty.simple

    @property
    def merges_by_slot(self):
        """Not with penalties whose gradients have no closed form."""
        return not self.berhu

    def charge(self, events):
        self.t += events  # which counts nothing else

    def penalize(self, double[::1] events):
        cdef Py_ssize_t j
        cdef double* cell
        cdef double h
        for j in range(len(events)):
            cell = self.cell(j)
            h = (self.delta + sqrt(cell[SQUARES])) / self.step
            cell[SUM] = with_penalty(
                cell[SUM], self.t, events[j], self.penalty.l1, self.penalty.l2, h, 0.0
            )

    cdef double after(self, Py_ssize_t j, double t) noexcept nogil:
        cdef double s = self.cell(j)[SUM]
        if s == 0.0:
            return 0.0
        return self.penalty.coordinate_minimizer(
            s, t, (self.delta + sqrt(self.cell(j)[SQUARES])) / self.step
        )

    cdef double weight(self, Py_ssize_t j) noexcept nogil:
        return self.after(j, self.t)

    cdef void update(self, Row* row, double slope) noexcept nogil:
        cdef double g
        cdef double* cell
        cdef Py_ssize_t i
        for i in range(row.n):
            cell = self.cell(row.slot[i])
            g = slope * row.value[i]
            cell[SUM] += g
            cell[SQUARES] += g * g
        self.t += 1.0

    cdef double weight_sum(self, Py_ssize_t j, double a, double b) noexcept nogil:
        """Sum (|s| - t l1)_+ / (h + t l2) over t = a .. b - 1."""
        cdef double s = fabs(self.cell(j)[SUM]), total = 0.0, w, h, t, last, l1, l2, steps
        if b <= a or s == 0.0:
            return 0.0
        if self.berhu:
            t = a
            while t < b:
                w = self.after(j, t)
                if w == 0.0:
                    break
                total += w
                t += 1.0
            return total
        l1 = self.penalty.l1
        l2 = self.penalty.l2
        h = (self.delta + sqrt(self.cell(j)[SQUARES])) / self.step
        last = b - 1.0
        if l1 > 0.0 and last >= s / l1:
            last = ceil(s / l1) - 1.0
        if last < a:
            return 0.0
        steps = last - a + 1.0
        if l2 == 0.0:
            total = steps * (s - 0.5 * (a + last) * l1) / h
        else:
            # (s - t l1) / (h + t l2) = (s + l1 h / l2) / (h + t l2) - l1 / l2
            total = (s + l1 * h / l2) * reciprocals(h / l2 + a, steps) / l2 - steps * l1 / l2
        return total if self.cell(j)[SUM] < 0.0 else -total


cdef double reciprocals(double x, double count) noexcept nogil:
    """Sum `count` terms 1/x + 1/(x+1) + ..: the first few directly, the rest by Euler-Maclaurin."""
    cdef double total = 0.0, y, u, v
    while count > 0.0 and (x < 24.0 or count < 4.0):
        total += 1.0 / x
        x += 1.0
        count -= 1.0
    if count == 0.0:
        return total
    y = x + count - 1.0
    u = 1.0 / (x * x)
    v = 1.0 / (y * y)
    total += log1p((y - x) / x) + 0.5 * (1.0 / x + 1.0 / y)
    total += (u - v) / 12.0 - (u * u - v * v) / 120.0 + (u * u * u - v * v * v) / 252.0
    return total
