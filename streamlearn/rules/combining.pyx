"""Combine the numbers per slot of several workers: see rules/merging.py."""

from libc.math cimport fabs
from libc.stdint cimport uintptr_t

from streamlearn.rules.slot_state cimport SlotState

import numpy as np

cdef enum How:
    KEPT = 0
    SUM = 1
    LARGEST = 2
    SMALLEST = 3
    MEAN = 4
    AVERAGE = 5
    BY_SLOT = 6
    SEEN = 7

HOW = {
    None: KEPT, "derived": KEPT, "sum": SUM, "max": LARGEST, "min": SMALLEST, "mean": MEAN,
    "average": AVERAGE, "slotwise": BY_SLOT, "seen": SEEN,
}


def combine(
    SlotState result, SlotState base, workers, Py_ssize_t n, events, evidence, double farther=0.0
):
    """Set the first n slots of `result` to those of `base`, as several workers have moved them.

    `events` are how many each has learned; `evidence` is the name of the field by which "slotwise"
    and "seen" merge, without which they are "mean". Where workers agree on the direction,
    "slotwise" goes `farther`, by up to this share. Returns by what that was divided in each slot,
    if there is evidence.
    """
    names = [field.name for field in result.fields]
    cdef int[::1] hows = np.array([HOW[field.merge] for field in result.fields], dtype=np.intc)
    cdef uintptr_t[::1] tables = np.array([address(one) for one in workers], dtype=np.uintp)
    cdef double[::1] weights = np.array(events, dtype=float)
    cdef Py_ssize_t seen = -1 if evidence is None else names.index(evidence)
    # the field whose moves say whether workers agree
    cdef Py_ssize_t signed = next((f for f, one in enumerate(result.fields) if one.flips_sign), -1)
    cdef Py_ssize_t j, f, k, at, count = len(workers), width = len(names)
    cdef Py_ssize_t stride = result.stride  # of all: they are copies of one rule
    cdef double share, whole, total, growth, squares, value, start, mass = sum(events)
    cdef double* to
    cdef const double* before
    cdef double[::1] shares = np.empty(n if seen >= 0 else 0)
    with nogil:
        for j in range(n):
            at = j * stride
            to = result.cells + at
            before = base.cells + at
            share = whole = count
            if seen >= 0:
                shares[j] = 1.0  # of slots that nobody saw
                total = squares = 0.0
                for k in range(count):
                    growth = fabs((<const double*>tables[k])[at + seen] - before[seen])
                    total += growth
                    squares += growth * growth
                if squares > 0.0:
                    share = whole = total * total / squares
                    if farther > 0.0 and signed >= 0:
                        total = squares = 0.0
                        for k in range(count):
                            growth = (<const double*>tables[k])[at + signed] - before[signed]
                            total += growth
                            squares += growth * growth
                        share = larger(share / (1.0 + farther * agreement(total, squares)), 1.0)
                    shares[j] = share
            for f in range(width):
                start = value = before[f]
                if hows[f] == LARGEST:
                    for k in range(count):
                        value = larger(value, (<const double*>tables[k])[at + f])
                elif hows[f] == SMALLEST:
                    for k in range(count):
                        value = -larger(-value, -(<const double*>tables[k])[at + f])
                elif hows[f] == AVERAGE:
                    total = 0.0
                    for k in range(count):
                        total += weights[k] * (<const double*>tables[k])[at + f]
                    value = total / mass
                elif hows[f] != KEPT:
                    total = 0.0
                    for k in range(count):
                        total += (<const double*>tables[k])[at + f] - start
                    if hows[f] == MEAN:
                        total /= count
                    elif hows[f] == BY_SLOT:
                        total /= share
                    elif hows[f] == SEEN:
                        total /= whole
                    value = start + total
                to[f] = value
    return None if seen < 0 else np.asarray(shares)


cdef uintptr_t address(SlotState part) except 0:
    """Return where the numbers of slot 0 are."""
    return <uintptr_t>part.cells


cdef inline double agreement(double total, double squares) noexcept nogil:
    """Return 1 - 1/M, where M of K moves agree: (sum)^2 / sum of squares, at most K.

    It is 0 if their sum is no larger than that of moves in random directions.
    """
    return 1.0 - squares / (total * total) if total * total > squares else 0.0


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a >= b else b
