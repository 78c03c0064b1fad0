"""Changes of a state of plain data and arrays: of each array the changed rows, if they are smaller.

A state is exact to the bit: `applied(before, difference(before, after))` is `after`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.core.arrays import Array

PLACE_BYTES = 4


@dataclass(frozen=True)
class ChangedRows:
    """The rows of an array that differ from those of another one."""

    places: Array
    rows: Array

    def applied(self, before: Array) -> Array:
        """Return the array with these rows."""
        after = before.copy()
        after[self.places] = self.rows
        return after


def difference(before: Any, after: Any) -> Any:
    """Return what `applied` needs to make `after` of `before`.

    >>> before = {"t": 1.0, "cells": np.zeros((100, 2))}
    >>> after = {"t": 2.0, "cells": before["cells"].copy()}
    >>> after["cells"][7] = 1.0
    >>> change = difference(before, after)
    >>> change["t"], change["cells"].places
    (2.0, array([7], dtype=int32))
    >>> bool((applied(before, change)["cells"] == after["cells"]).all())
    True
    """
    if isinstance(after, dict):
        known = before if isinstance(before, dict) else {}
        return {name: difference(known.get(name), value) for name, value in after.items()}
    if isinstance(after, list) and isinstance(before, list) and len(after) == len(before):
        return [difference(old, new) for old, new in zip(before, after, strict=True)]
    if isinstance(after, np.ndarray) and isinstance(before, np.ndarray):
        return array_difference(before, after)
    return after


def array_difference(before: Array, after: Array) -> Array | ChangedRows:
    """Return the changed rows, or the whole array if it is not larger."""
    if before.shape != after.shape or before.dtype != after.dtype or not after.size:
        return after
    rows = len(after)
    # compared as bytes, so that signs of zeros and NaN count
    old, new = (
        np.ascontiguousarray(one)
        .reshape(rows, -1)
        .view(np.uint8 if one.itemsize < 8 else np.uint64)
        for one in (before, after)
    )
    places = np.flatnonzero((old != new).any(axis=1)).astype(np.int32)
    if len(places) * (after.nbytes // rows + PLACE_BYTES) >= after.nbytes:
        return after
    return ChangedRows(places, after[places])


def applied(before: Any, change: Any) -> Any:
    """Return the state that `difference` was taken of."""
    if isinstance(change, ChangedRows):
        return change.applied(before)
    if isinstance(change, dict):
        known = before if isinstance(before, dict) else {}
        return {name: applied(known.get(name), value) for name, value in change.items()}
    if isinstance(change, list) and isinstance(before, list) and len(change) == len(before):
        return [applied(old, new) for old, new in zip(before, change, strict=True)]
    return change


def arrays(change: Any) -> Iterator[Array]:
    """Yield all arrays of a state or a change, without places."""
    if isinstance(change, ChangedRows):
        yield change.rows
    elif isinstance(change, np.ndarray):
        yield change
    elif isinstance(change, dict | list):
        for value in change.values() if isinstance(change, dict) else change:
            yield from arrays(value)


def size_of(change: Any) -> int:
    """Return the bytes of a change's arrays."""
    return sum(one.nbytes for one in arrays(change))


def has_nan(change: Any) -> bool:
    """Return whether any number of a change is not a number."""
    return any(one.dtype.kind == "f" and bool(np.isnan(one).any()) for one in arrays(change))
