"""What a rule has learned since some moment, as the slots that changed and the scalars.

An event changes the slots of its features alone, for most rules. So what is learned within a few
seconds is small beside a large table, and is copied, sent and merged as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.rules.rule import Rule
    from streamlearn.rules.table import SlotTable

NUMBER_BYTES, SLOT_BYTES = 8, 4


@dataclass(frozen=True)
class Move:
    """The state of a rule after it has learned: of its slots, those that changed."""

    size: int  # of the whole table
    slots: Array | None  # in order; None: all
    rows: tuple[Array, ...]  # their numbers, in each table
    scalars: dict[str, Any]

    def places(self) -> Array:
        """Return the slots as an array."""
        return np.arange(self.size, dtype=np.int32) if self.slots is None else self.slots

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        slots = 0 if self.slots is None else self.slots.nbytes
        return slots + sum(rows.nbytes for rows in self.rows)

    @property
    def has_nan(self) -> bool:
        """Whether any number of a slot, or a scalar, is not a number."""
        # squares cannot cancel, so their sum is NaN only where a number is; and needs no memory
        slots = any(bool(np.isnan(np.dot(rows.ravel(), rows.ravel()))) for rows in self.rows)
        return slots or has_nan(self.scalars)


def has_nan(state: Any) -> bool:
    """Return whether any number of plain data is not a number."""
    if isinstance(state, dict | list):
        return any(has_nan(one) for one in (state.values() if isinstance(state, dict) else state))
    if isinstance(state, np.ndarray):
        return bool(np.isnan(state).any())
    return isinstance(state, float) and math.isnan(state)


def tables(rule: Rule) -> list[tuple[SlotTable, int]]:
    """Return the tables of a rule and of its parts, with the numbers that they use of each slot."""
    found: dict[int, tuple[SlotTable, int]] = {}
    for part in rule.parts():
        if part.width:
            _, used = found.get(id(part.table), (None, 0))
            found[id(part.table)] = part.table, max(used, part.offset + part.width)
    return list(found.values())


def take(rule: Rule, slots: Array | None) -> Move:
    """Copy the state of a rule, of these slots or of all."""
    rows = tuple(
        table.copy_columns(0, width, rule.n) if slots is None else table.take(slots, width)
        for table, width in tables(rule)
    )
    return Move(rule.n, slots, rows, rule.scalar_state())


def put(rule: Rule, move: Move) -> None:
    """Give a rule at the start of a move the state at its end."""
    rule.extend(move.size)
    for (table, _), rows in zip(tables(rule), move.rows, strict=True):
        if move.slots is None:
            table.restore_columns(0, rows)
        else:
            table.put(move.slots, rows)
    rule.restore_scalars(move.scalars)


class Snapshot:
    """A copy of a rule's state, from which it learns, and to which it returns.

    >>> from streamlearn import losses, penalties, rules
    >>> rule = rules.DualAveraging().bind(penalties.L1(0.1), losses.Logistic())
    >>> rule.extend(100)
    >>> before = Snapshot(rule)
    >>> put(rule, Move(100, np.array([7], dtype=np.int32), (np.ones((1, 1)),), rule.scalar_state()))
    >>> before.moved().slots, int(np.count_nonzero(rule.slots()))
    (array([7], dtype=int32), 1)
    >>> before.restore()
    >>> before.moved().slots, int(np.count_nonzero(rule.slots()))
    (array([], dtype=int32), 0)
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._take_all()

    def _take_all(self) -> None:
        whole = take(self.rule, None)
        self._size, self._cells, self._scalars = whole.size, whole.rows, whole.scalars

    def moved(self) -> Move:
        """Return what the rule has learned, as all slots if that is smaller."""
        slots = self._changed()
        width = sum(cells.shape[1] for cells in self._cells)
        row = NUMBER_BYTES * width
        if slots is not None and len(slots) * (row + SLOT_BYTES) >= self.rule.n * row:
            slots = None
        return take(self.rule, slots)

    def _changed(self) -> Array | None:
        """Return the slots that changed; None: all."""
        rule = self.rule
        if not rule.slots_are_independent:
            return None
        changed = np.zeros(rule.n, dtype=np.uint8)
        changed[self._size :] = 1
        for (table, _), cells in zip(tables(rule), self._cells, strict=True):
            table.mark_changes(cells, changed)
        return np.flatnonzero(changed).astype(np.int32)

    def restore(self, move: Move | None = None) -> None:
        """Let the rule forget what it has learned: `move`, if that is known."""
        rule = self.rule
        if rule.n > self._size:  # new slots have numbers to start with
            fresh = rule.fresh()
            put(fresh, Move(self._size, None, self._cells, self._scalars))
            fresh.extend(rule.n)
            put(rule, take(fresh, None))
            self._take_all()
            return
        slots = self._changed() if move is None else move.slots
        for (table, _), cells in zip(tables(rule), self._cells, strict=True):
            if slots is None:
                table.restore_columns(0, cells)
            else:
                table.put_from(slots, cells)
        rule.restore_scalars(self._scalars)

    def advance(self, move: Move) -> None:
        """Move with the rule, which has learned nothing since."""
        put(self.rule, move)
        if move.size > self._size:
            self._take_all()
            return
        for cells, rows in zip(self._cells, move.rows, strict=True):
            cells[slice(None) if move.slots is None else move.slots] = rows
        self._scalars = move.scalars
