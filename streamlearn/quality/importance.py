"""The importance of fields: what each contributes to the scores of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.estimators.linear import Linear
    from streamlearn.features import Reader

JOINTS = "=~."  # between the name of a declared field and the rest of a feature's name


class FieldImportance:
    """The mean of |weight x value| over events, summed over the features of each field.

    `reader` has the names of the events' slots: the model's own, or exact names of a model that
    knows only hashes. With several outputs, the mean over outputs.
    """

    def __init__(self, model: Linear, reader: Reader) -> None:
        self.model = model
        self.reader = reader
        self._sums = np.zeros(reader.size)  # of weight x |value|, by slot
        self._exact = reader is model.reader

    def add(self, events: Events) -> None:
        """Add decoded events."""
        slots = events.slots
        amounts = np.abs(events.values) * np.repeat(events.weights, np.diff(events.starts))
        if not self._exact and self.reader.size > len(self._sums):
            self._sums = np.pad(self._sums, (0, self.reader.size - len(self._sums)))
        known = slots < len(self._sums)  # a later name has no weight
        np.add.at(self._sums, slots[known], amounts[known])

    def shares(self) -> dict[str, float]:
        """Return the share of each field in the sum over fields, largest first."""
        used = np.flatnonzero(self._sums)
        weights = self._weights(used)
        fields = self.reader.fields
        found: dict[str, float] = {}
        for slot, amount in zip(used.tolist(), (self._sums[used] * weights).tolist(), strict=True):
            if amount:
                field = field_of(
                    self.reader.name_of(slot), fields, interacts=bool(fields.interactions)
                )
                found[field] = found.get(field, 0.0) + amount
        total = sum(found.values())
        order = sorted(found, key=lambda name: (-found[name], name))
        return {name: found[name] / total for name in order}

    def _weights(self, slots: Array) -> Array:
        """Return the mean absolute weight of these slots of the reader."""
        sizes = np.abs(self.model.coefficients()).mean(axis=0)
        if not self._exact:
            names = (self.reader.name_of(slot) for slot in slots.tolist())
            slots = np.array([self.model.reader.slot_of(name) for name in names], dtype=np.intp)
        weights = np.zeros(len(slots))
        weights[slots < len(sizes)] = sizes[slots[slots < len(sizes)]]
        return weights


def field_of(name: Any, declared: Collection[str], *, interacts: bool = False) -> str:
    """Return the field, or the fields of an interaction, that a feature belongs to.

    >>> field_of("user=ann", ()), field_of("ts.hour=9", {"ts"}), field_of("ad.price", ())
    ('user', 'ts', 'ad.price')
    >>> field_of("user=ann^ts.hour=9", {"ts"}, interacts=True)
    'user^ts'
    """
    text = str(name)
    if interacts and "^" in text:
        return "^".join(field_of(part, declared) for part in text.split("^"))
    ends = [len(text), *(at for at, sign in enumerate(text) if sign in JOINTS)]
    longest = max((end for end in ends if text[:end] in declared), default=0)
    return text[:longest] if longest else text.partition("=")[0]
