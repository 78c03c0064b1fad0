"""Merge what several workers have learned from different events, each from the same state.

A rule declares how each of its numbers merges, by `PerSlot.merge` per slot and by `scalar_merges`:

- "sum": facts that add up, such as counts
- "max", "min": the largest or the smallest
- "mean": base + sum of moves / K, where K workers have moved: the state of one learner of 1/K of
  the events
- "average": the workers' values, weighted by their events
- "slotwise": base + sum of moves / m, where m is between 1 (one worker saw the slot) and K (all saw
  as much): with h_k what worker k saw, by the change of the rule's `evidence`,
  m = (sum h_k)^2 / sum h_k^2
- "seen": the same, and no farther (below): squares of gradients and the like, which shorten steps
- "derived": computed from the others afterwards, by `derive`

A penalty that grows with the number of events grows by the events of all, divided by the same m:
`Rule.charge` adds it to every slot, also to those that no worker saw, and `Rule.penalize` takes
back from the others what is more than their share.

The sum of K moves is right only in directions in which one worker hardly moved. Where each moved
most of its way to the optimum, it goes K times too far, and diverges. The mean never does, but goes
no farther than one worker. So a slot that merges "slotwise" goes up to `FARTHER` beyond that, never
beyond the sum, as far as workers agree on its direction: M = (sum d_k)^2 / sum d_k^2 of them do, by
the moves d_k of the field that flips its sign with the classes, and m is divided by
1 + FARTHER (1 - 1/M). Moves that are noise have M about 1. Below 1, `FARTHER` cannot diverge: a
slot whose workers went all the way to the optimum overshoots by at most that share of the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamlearn.errors import IncompatibleError
from streamlearn.rules.combining import combine
from streamlearn.rules.copy_buffer import CopyBuffer, empty
from streamlearn.rules.moves import Move, tables, take
from streamlearn.rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.rules.slot_state import SlotState

FARTHER = 0.5  # where workers agree
CHUNK = 1024  # slots that are merged at once: the numbers of several workers fit in the cache


def merged(rule: Rule, moves: Sequence[Move]) -> Move:
    """Return how workers that learned from the state of this rule move it together.

    Workers without events count for nothing, and one worker's move is returned as it is.

    >>> from streamlearn import losses, penalties, rules
    >>> rule = rules.DualAveraging().bind(penalties.Zero(), losses.Logistic())
    >>> rule.extend(2)
    >>> start = rule.scalar_state()
    >>> one = Move(2, None, (np.array([[2.0], [0.0]]),), {**start, "t": 2.0})
    >>> two = Move(2, None, (np.array([[1.0], [3.0]]),), {**start, "t": 4.0})
    >>> both = merged(rule, [one, two])
    >>> both.scalars["t"], both.rows[0].ravel()  # only the second has seen slot 1
    (3.0, array([2.03703704, 3.        ]))
    """
    if rule.why_no_merge is not None:
        raise IncompatibleError(
            f"{type(rule).__name__} cannot learn on several workers: {rule.why_no_merge}"
        )
    moved = [move for move in moves if move.scalars["t"] != rule.t]
    if len(moved) < 2:
        return moved[0] if moved else take(rule, np.empty(0, dtype=np.int32))
    size = max(rule.n, *(move.size for move in moved))
    rule.extend(size)
    slots = all_slots(moved, size)
    step = CHUNK if rule.slots_are_independent else size
    merger = Merger(rule, moved, min(step, len(slots)))
    rows = tuple(empty(len(slots) * w).reshape(len(slots), w) for _, w in tables(rule))
    for first in range(0, len(slots), step):
        chunk = slots[first : first + step]
        with merger.copies:
            for to, found in zip(rows, merger.merge(chunk), strict=True):
                to[first : first + step] = found
        merger.copies.reserve()
    return Move(size, None if len(slots) == size else slots, rows, merger.result.scalar_state())


def all_slots(moves: Iterable[Move], size: int) -> Array:
    """Return the slots that any worker has changed, in order."""
    marks = np.zeros(size, dtype=bool)
    for move in moves:
        marks[: move.size] |= move.slots is None
        if move.slots is not None:
            marks[move.slots] = True
    return np.flatnonzero(marks).astype(np.int32)


class Merger:
    """Merges the slots of one rule, some at a time and in order."""

    def __init__(self, rule: Rule, moves: Sequence[Move], size: int) -> None:
        self.rule = rule
        self.independent = rule.slots_are_independent
        self.moves = [(move, move.places()) for move in moves]
        self.copies = CopyBuffer()
        self.next = [0] * len(moves)  # the first row of each that is not merged yet
        self.started = False
        self.result, self.base, *self.workers = (rule.fresh() for _ in range(len(moves) + 2))
        for one in (self.result, self.base, *self.workers):
            one.extend(size)

    def merge(self, slots: Array) -> list[Array]:
        """Return the rows of these slots in each table."""
        before = [table.take(slots, width) for table, width in tables(self.rule)]
        changed = self.fill(slots, before)
        for one in (self.base, *self.workers):
            for part in reversed(one.parts()):
                part.settle()
        parts = [one.parts() for one in (self.result, self.base, *self.workers)]
        for result, base, *workers in zip(*parts, strict=True):
            self.merge_part(result, base, workers, len(slots))
            result.derive()
        self.started = True
        found = [table.copy_columns(0, width, len(slots)) for table, width in tables(self.result)]
        if self.independent and not changed.all():
            for rows, old in zip(found, before, strict=True):
                rows[changed == 0] = old[changed == 0]
        return found

    def fill(self, slots: Array, before: Sequence[Array]) -> Array:
        """Give base and workers their numbers of these slots; return which any worker changed."""
        changed = np.zeros(len(slots), dtype=np.uint8)
        for one in (self.base, *self.workers):
            for (table, _), rows in zip(tables(one), before, strict=True):
                table.restore_columns(0, rows)
        for k, (move, places) in enumerate(self.moves):
            ends = {
                table.overlay(slots, places, rows, self.next[k], changed)
                for (table, _), rows in zip(tables(self.workers[k]), move.rows, strict=True)
            }
            self.next[k] = max(ends, default=0)
        if not self.started:
            self.base.restore_scalars(self.rule.scalar_state())
            for worker, (move, _) in zip(self.workers, self.moves, strict=True):
                worker.restore_scalars(move.scalars)
        return changed

    def merge_part(
        self, result: SlotState, base: SlotState, workers: Sequence[SlotState], n: int
    ) -> None:
        """Merge the numbers of n slots, and the scalars once."""
        evidence, events = None, np.ones(len(workers))
        if isinstance(result, Rule) and isinstance(base, Rule):
            rules = [worker for worker in workers if isinstance(worker, Rule)]
            events = np.array([worker.t for worker in rules]) - base.t
            evidence = result.evidence if result.merges_by_slot else None
            if not self.started:
                merge_scalars(result, base, rules, events)
                if evidence is not None:
                    result.charge(events.sum() - (result.t - base.t))
        shares = None
        if result.fields:
            shares = combine(result, base, workers, n, events, evidence, FARTHER)
        if isinstance(result, Rule):
            result.restored()
            if shares is not None:
                result.penalize(events.sum() * (1.0 / shares - 1.0))


def merge_scalars(result: Rule, base: Rule, workers: Sequence[Rule], events: Array) -> None:
    """Merge the scalars of a rule, whose workers have learned so many events."""
    for name, how in result.scalar_merges.items():
        if how != "derived":
            start, *values = (np.asarray(getattr(one, name)) for one in (base, *workers))
            found = merged_scalar(how, start, np.stack(values), events)
            setattr(result, name, found if np.ndim(found) else float(found))


def merged_scalar(how: str, start: Array, values: Array, events: Array) -> Array:
    """Merge a scalar, or an array of scalars, of workers."""
    if how == "max":
        return np.asarray(np.maximum(start, values.max(axis=0)))
    if how == "min":
        return np.asarray(np.minimum(start, values.min(axis=0)))
    if how == "average":
        return np.asarray(np.average(values, axis=0, weights=events))
    total = (values - start).sum(axis=0)
    return np.asarray(start + (total if how == "sum" else total / len(values)))
