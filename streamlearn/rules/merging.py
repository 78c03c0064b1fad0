"""Merge what several workers have learned from different events, each from the same state.

A rule declares how each of its numbers merges, by `Field.merge` per slot and by `scalar_merges`:

- "sum": facts that add up, such as counts
- "max", "min": the largest or the smallest
- "mean": base + sum of moves / K, where K workers have moved: the state of one learner of 1/K of
  the events
- "average": the workers' values, weighted by their events
- "slotwise": base + sum of moves / m, where m is between 1 (one worker saw the slot) and K (all saw
  as much): with h_k what worker k saw, by the growth of the rule's `evidence`,
  m = (sum h_k)^2 / sum h_k^2
- "derived": computed from the others afterwards, by `derive`

The sum of K moves is right only in directions in which one worker hardly moved. Where each moved
most of its way to the optimum, it goes K times too far, and diverges. The mean never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.errors import IncompatibleError
from streamlearn.rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.rules.slot_state import SlotState

State = dict[str, Any]


def merged(rule: Rule, base: Mapping[str, Any], states: Sequence[Mapping[str, Any]]) -> State:
    """Return the state after workers have learned from `base` to these states of a bound rule.

    Workers without events count for nothing, and one worker's state is kept to the bit.

    >>> from streamlearn import losses, penalties, rules
    >>> rule = rules.DualAveraging().bind(penalties.L1(0.1), losses.Logistic())
    >>> base = rule.state()
    >>> one = {**base, "t": 2.0, "cells": np.array([[2.0], [0.0]])}
    >>> two = {**base, "t": 4.0, "cells": np.array([[1.0], [3.0]])}
    >>> found = merged(rule, base, [one, two])
    >>> found["t"], found["cells"].ravel()
    (3.0, array([1.5, 1.5]))
    """
    if rule.why_no_merge is not None:
        raise IncompatibleError(
            f"{type(rule).__name__} cannot learn on several workers: {rule.why_no_merge}"
        )
    moved = [state for state in states if state["t"] != base["t"]]
    if len(moved) < 2:
        return dict(moved[0] if moved else base)
    start, *workers = (settled(rule, state) for state in (base, *moved))
    size = max(worker.n for worker in workers)
    result = rule.fresh()
    for one in (start, result, *workers):
        one.extend(size)
    for part, before, *after in zip(
        result.parts(), start.parts(), *(worker.parts() for worker in workers), strict=True
    ):
        merge_part(part, before, after)
        part.derive()
    return result.state()


def settled(rule: Rule, state: Mapping[str, Any]) -> Rule:
    """Return a rule in this state whose numbers can be compared with those of others."""
    found = rule.fresh()
    found.restore(dict(state))
    for part in reversed(found.parts()):
        part.settle()
    return found


def merge_part(part: SlotState, base: SlotState, workers: Sequence[SlotState]) -> None:
    """Merge numbers per slot and scalars into `part`."""
    steps = np.ones(len(workers))
    if isinstance(part, Rule) and isinstance(base, Rule):
        rules = [worker for worker in workers if isinstance(worker, Rule)]
        steps = np.array([worker.t for worker in rules]) - base.t
        for name, how in part.scalar_merges.items():
            if how != "derived":
                values = np.array([getattr(one, name) for one in (base, *rules)])
                found = combined(how, values[0], values[1:], steps, None)
                setattr(part, name, found if np.ndim(found) else float(found))
    if part.fields:
        part.restore_slots(merged_columns(part, base.slots(), [w.slots() for w in workers], steps))
    if isinstance(part, Rule):
        part.restored()


def merged_columns(part: SlotState, base: Array, workers: Sequence[Array], steps: Array) -> Array:
    """Return the merged numbers of all slots; those that no worker has changed stay."""
    result = base.copy()
    changed = np.zeros(len(base), dtype=bool)
    for worker in workers:
        changed |= (worker != base).any(axis=1)
    places = np.flatnonzero(changed)
    base, workers = base[places], [worker[places] for worker in workers]
    names = [field.name for field in part.fields]
    shared = None
    if isinstance(part, Rule) and part.evidence is not None and part.merges_by_slot:
        column = names.index(part.evidence)
        shared = sharing([worker[:, column] - base[:, column] for worker in workers])
    found = base.copy()
    for k, field in enumerate(part.fields):
        if field.merge not in {None, "derived"}:
            values = np.stack([worker[:, k] for worker in workers])
            found[:, k] = combined(field.merge, base[:, k], values, steps, shared)
    result[places] = found
    return result


def sharing(seen: Sequence[Array]) -> Array:
    """Return m for each slot, from what each worker saw of it.

    >>> sharing([np.array([1.0, 4.0, 0.0]), np.array([1.0, 0.0, 0.0])])
    array([2., 1., 2.])
    """
    growth = np.maximum(np.stack(seen), 0.0)
    squares = (growth**2).sum(axis=0)
    known = squares > 0.0
    return np.where(known, growth.sum(axis=0) ** 2 / np.where(known, squares, 1.0), len(seen))


def combined(
    how: str | None, base: Array, workers: Array, steps: Array, shared: Array | None
) -> Array:
    """Combine the numbers of workers, which are rows; `steps` are their events."""
    if how == "max":
        return np.asarray(np.maximum(base, workers.max(axis=0)))
    if how == "min":
        return np.asarray(np.minimum(base, workers.min(axis=0)))
    if how == "average":
        return np.asarray(np.average(workers, axis=0, weights=steps))
    total = (workers - base).sum(axis=0)
    if how == "sum":
        return np.asarray(base + total)
    if how == "slotwise" and shared is not None:
        return np.asarray(base + total / shared)
    return np.asarray(base + total / len(workers))
