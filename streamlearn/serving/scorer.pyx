"""Scores from the arrays of a snapshot, bit for bit those of the model that it was taken from.

The additions are done in the order in which the rule does them; docs/reference/snapshots.md has the
forms.
"""

cimport cython
from libc.math cimport copysign, fabs
from libc.stdlib cimport calloc, free, malloc

from streamlearn.core.row cimport Row
from streamlearn.engine.events cimport Events
from streamlearn.features.reader cimport Reader

import numpy as np

cdef enum:
    SUM
    LANES
    SIZED
    BETS
    LIMITED
    COINS
    MIXTURE

KINDS = {
    "sum": SUM, "lanes": LANES, "sized": SIZED, "bets": BETS, "limited": LIMITED, "coins": COINS,
    "mixture": MIXTURE,
}
COLUMNS = ("weight", "largest", "inverse", "absolute", "wealth", "kept", "ridge")
SPREAD = 2654435769  # 2**32 / golden ratio: multiplied by it, slots spread over the index
cdef unsigned int SPREAD_C = SPREAD


def count_forms(form):
    """Count a form and the members of a mixture."""
    return 1 + sum([count_forms(member) for member in form.get("members", ())])


@cython.final
cdef class Scorer:
    """The scores of a snapshot.

    `table` has the numbers of a slot in each row: of all slots, or of those in `stored`, which
    `index` finds by their hash. `intercept` has the numbers of an intercept that is a feature of
    every event; `free_intercept` is added to each score. Both may be None.
    """

    def __init__(self, forms, slots, table, stored, index, intercept, free_intercept):
        self.arrays = (table, stored, index, intercept, free_intercept)
        self.slots, self.outputs = slots, len(forms)
        self.width = table.shape[1]
        self.table = <const double*><size_t>table.ctypes.data
        if stored is not None:
            self.stored = <const int*><size_t>stored.ctypes.data
            self.index = <const unsigned int*><size_t>index.ctypes.data
            self.mask = len(index) - 1
            self.shift = 32 - (len(index) - 1).bit_length()
        if intercept is not None:
            self.intercept = <const double*><size_t>intercept.ctypes.data
        if free_intercept is not None:
            self.free_intercept = <const double*><size_t>free_intercept.ctypes.data
        total = sum([count_forms(form) for form in forms])
        self.nothing = <double*>calloc(self.width + 1, sizeof(double))
        self.form = <Form*>calloc(total + 1, sizeof(Form))
        self.share = <double*>calloc(total + 1, sizeof(double))
        if self.nothing == NULL or self.form == NULL or self.share == NULL:
            raise MemoryError
        self.forms = self.outputs
        for i, form in enumerate(forms):
            self.read_form(i, form)

    def __dealloc__(self):
        free(self.nothing)
        free(self.form)
        free(self.share)

    cdef int read_form(self, Py_ssize_t i, object form) except -1:
        """Read a form, and the members of a mixture behind all that are read so far."""
        cdef Form* to = self.form + i
        cdef Py_ssize_t k
        columns = [form.get("columns", {}).get(name, 0) for name in COLUMNS]
        if not all([0 <= column < max(self.width, 1) for column in columns]):
            raise ValueError(f"a form has the columns {columns}, the table {self.width}")
        to.kind = KINDS[form["kind"]]
        to.weight, to.largest, to.inverse, to.absolute, to.wealth, to.kept, to.ridge = (
            columns
        )
        to.factor = form.get("factor", 1.0)
        to.low, to.high = form.get("low", 0.0), form.get("high", 0.0)
        to.beta = form.get("beta", 0.0)
        to.least, to.most = form.get("least", 0.0), form.get("most", 0.0)
        members = form.get("members", ())
        to.first, to.count = self.forms, len(members)
        self.forms += to.count
        for k, (share, member) in enumerate(zip(form.get("shares", ()), members, strict=True)):
            self.share[to.first + k] = share
            self.read_form(to.first + k, member)
        return 0

    cdef const double* numbers_of(self, int slot) noexcept nogil:
        """Return the numbers of a slot."""
        cdef unsigned int k, at
        if self.stored == NULL:
            return self.table + self.width * <Py_ssize_t>slot
        k = (<unsigned int>slot * SPREAD_C) >> self.shift
        at = self.index[k]
        while at != 0:
            if self.stored[at - 1] == slot:
                return self.table + self.width * <Py_ssize_t>(at - 1)
            k = (k + 1) & self.mask
            at = self.index[k]
        return self.nothing

    cdef int score_row(self, Row* row, double* out) except -1 nogil:
        """Write the scores of a row."""
        cdef Py_ssize_t i, k, n = 0, room = row.n + 1
        cdef const double** cell = <const double**>malloc(
            room * (sizeof(double*) + sizeof(double)))
        cdef double* value = <double*>(cell + room)
        if cell == NULL:
            with gil:
                raise MemoryError(f"a row of {row.n} features")
        if self.intercept != NULL:
            cell[0], value[0] = self.intercept, 1.0
            n = 1
        for i in range(row.n):
            if row.slot[i] < self.slots:  # later names are not known to this version
                cell[n] = self.numbers_of(row.slot[i])
                value[n] = row.value[i]
                n += 1
        for k in range(self.outputs):
            out[k] = self.evaluate(k, cell, value, n)
            if self.free_intercept != NULL:
                out[k] += self.free_intercept[k]
        free(cell)
        return 0

    cdef double evaluate(
        self, Py_ssize_t i, const double** cell, const double* value, Py_ssize_t n
    ) noexcept nogil:
        """Return the score of form i."""
        cdef const Form* form = self.form + i
        cdef double p = 0.0
        cdef Py_ssize_t k
        if form.kind == SUM:
            for k in range(n):
                p += cell[k][form.weight] * value[k]
            return p
        if form.kind == LANES:
            return form.factor * four_lanes(form, cell, value, n)
        if form.kind == SIZED:
            return clip(form, four_lanes(form, cell, value, n))
        if form.kind == BETS:
            return clip(form, bets(form, cell, value, n))
        if form.kind == LIMITED or form.kind == COINS:
            for k in range(n):
                p += sparse_product(form, cell[k], value[k])
            return clip(form, p)
        for k in range(form.first, form.first + form.count):
            p += self.share[k] * self.evaluate(k, cell, value, n)
        return p

    def score(self, Events rows):
        """Return the scores of all rows, computed without the GIL."""
        cdef Py_ssize_t i
        scores = np.empty((len(rows), self.outputs))
        cdef double* out = <double*><size_t>scores.ctypes.data
        cdef Row row
        with nogil:
            for i in range(rows.n):
                rows.row(i, &row)
                self.score_row(&row, out + i * self.outputs)
        return scores

    def score_single(self, Events rows):
        """Return the score of each row of a single output.

        An array costs more than scoring a few rows, and a request often has one.
        """
        cdef Py_ssize_t i
        cdef double score
        cdef Row row
        cdef list scores = []
        for i in range(rows.n):
            rows.row(i, &row)
            self.score_row(&row, &score)
            scores.append(score)
        return scores

    def score_event(self, Reader reader, event):
        """Return the scores of one event as a list."""
        cdef double one
        cdef double* out = &one
        reader.read(event, False)
        if self.outputs != 1:
            scores = np.empty(self.outputs)
            out = <double*><size_t>scores.ctypes.data
        self.score_row(&reader.row, out)
        return [one] if self.outputs == 1 else scores.tolist()

    def weight(self, Py_ssize_t output, slot):
        """Return the weight of a slot, 0 for one that is not known; None: of the intercept."""
        if slot is not None:
            known = 0 <= slot < self.slots
            return self.weight_in(output, self.numbers_of(slot) if known else self.nothing)
        if self.intercept != NULL:
            return self.weight_in(output, self.intercept)
        return self.free_intercept[output] if self.free_intercept != NULL else 0.0

    cdef double weight_in(self, Py_ssize_t i, const double* cell) noexcept:
        """Return the weight of form i for a slot with these numbers."""
        cdef const Form* form = self.form + i
        cdef double total = 0.0
        cdef Py_ssize_t k
        if form.kind == MIXTURE:
            for k in range(form.first, form.first + form.count):
                total += self.share[k] * self.weight_in(k, cell)
            return total
        if form.kind == LANES:
            return form.factor * cell[form.weight]
        return cell[form.weight] * (cell[form.inverse] if form.kind == SIZED else 1.0)


cdef inline double clip(const Form* form, double p) noexcept nogil:
    if p > form.high:
        return form.high
    return p if p >= form.low else form.low


cdef inline double product(const Form* form, const double* a, double x) noexcept nogil:
    """Return w x, with x in units of the feature's size if the form is sized."""
    cdef double largest
    if form.kind == SIZED:
        largest = a[form.largest]
        x = x if x < largest else largest
        x = (x if x > 0.0 - largest else 0.0 - largest) * a[form.inverse]
    return a[form.weight] * x


cdef inline double sparse_product(const Form* form, const double* a, double x) noexcept nogil:
    """Return w x of a weight under l1 or l2 (rules/sparse_mixture.pyx, rules/ftrl_forms.pyx)."""
    cdef double m = fabs(x), w = a[form.weight], inverse
    if not form.least < m < form.most:
        return 0.0
    if m > a[form.largest] and form.kind == LIMITED:
        x = copysign(a[form.largest], x)
    elif m > a[form.largest]:
        inverse = a[form.wealth] / (m * (a[form.absolute] + form.beta * m))
        w = a[form.kept] * inverse / (1.0 + a[form.ridge] * inverse)
    return w * x


cdef double four_lanes(
    const Form* form, const double** cell, const double* value, Py_ssize_t n
) noexcept nogil:
    """Return the sum of products in four lanes (core/row.pxd)."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, total
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        a += product(form, cell[i], value[i])
        b += product(form, cell[i + 1], value[i + 1])
        c += product(form, cell[i + 2], value[i + 2])
        d += product(form, cell[i + 3], value[i + 3])
        i += 4
    total = (a + c) + (b + d)
    while i < n:
        total += product(form, cell[i], value[i])
        i += 1
    return total


cdef inline double bet(const Form* form, const double* cell, double x) noexcept nogil:
    """Return the weight of a value that may exceed all earlier ones (rules/coin_betting.pyx)."""
    cdef double m = fabs(x)
    if m <= cell[form.largest]:
        return cell[form.weight]
    if not form.least < m < form.most:
        return 0.0
    return cell[form.wealth] / (m * (cell[form.absolute] + form.beta * m))


cdef double bets(
    const Form* form, const double** cell, const double* value, Py_ssize_t n
) noexcept nogil:
    """Return the score of bets, summed without rounding errors."""
    cdef double p = 0.0, lost = 0.0, x, total, rest
    cdef Py_ssize_t i
    for i in range(n):
        x = bet(form, cell[i], value[i]) * value[i]
        total = p + x
        rest = total - p
        lost += (p - (total - rest)) + (x - rest)
        p = total
    return p + lost
