"""Rows that another process has decoded, as a format."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.engine.events import CLASS_KIND, LABEL_KINDS
from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.packed_rows import KINDS, LABELS, TIMES, WEIGHTS, PackedRows

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events

UNLABELED = LABEL_KINDS[type(None)]


class PackedDecoder(Decoder):
    """Turn `PackedRows` into events, with the labels of this decoder.

    Another process has decoded them with the same fields, and with labels that were closed.

    >>> from streamlearn import Hashing
    >>> from streamlearn.stream import Events, Fields, JSONDecoder
    >>> fields = Fields(label="y", labels=("ham", "spam"))
    >>> there, here = Events(), Events()
    >>> JSONDecoder(Hashing(), fields).decode(values := [b'{"y": "spam", "x": 2}'], there)
    >>> PackedDecoder(Hashing(), fields).decode(PackedRows.of(values, there), here)
    >>> here.label_of(0), here.row_of(0) == there.row_of(0)
    ('spam', True)
    """

    names: Sequence[str] = ()  # of fields, as the other process has seen them

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._schemas: Counter[int | str] = Counter()

    def decode(
        self,
        values: Sequence[bytes | None],
        events: Events,
        order: Array | None = None,
        headers: object = None,  # noqa: ARG002 - the other process has used them
    ) -> None:
        """Replace the events by those of packed rows; large arrays are not copied."""
        if not isinstance(values, PackedRows):
            raise TypeError(f"expected PackedRows, got {type(values).__name__}")
        arrays, invalid = values.arrays, values.invalid
        if order is not None:
            arrays, invalid = values.ordered(order)
        labels, kinds = arrays[LABELS], arrays[KINDS]
        learned = kinds != UNLABELED
        if not self.grow_always:
            learned &= arrays[WEIGHTS] != 0.0
        if values.classes and list(values.classes) != self.classes[: len(values.classes)]:
            labels, kinds = self._translated(values.classes, labels, kinds, learned)
        notes = values.notes
        self.labels.count(
            int(np.count_nonzero(learned)), notes.positive_seen, notes.negative_values
        )
        self._schemas.update(notes.schemas)
        self.names = notes.fields or self.names
        events.clear()
        events.classes = self.classes
        own = {LABELS: labels, KINDS: kinds, TIMES: arrays[TIMES].copy()}
        events.adopt(
            [own.get(k, array) for k, array in enumerate(arrays)],
            len(values),
            invalid,
            values.tombstones,
            values.byte_count,
        )

    def _translated(
        self, classes: Sequence[Hashable], labels: Array, kinds: Array, learned: Array
    ) -> tuple[Array, Array]:
        """Return labels and kinds with this decoder's codes, in order of appearance.

        Only an event that is learned adds its label; without that it is unlabeled.
        """
        is_class = kinds == CLASS_KIND
        codes = np.where(is_class, labels, 0.0).astype(np.int64)
        rows = np.flatnonzero(is_class & learned)
        found, first = np.unique(codes[rows], return_index=True)
        for code in found[np.argsort(first)].tolist():
            if classes[code] not in self.classes:
                self.resolve_label(classes[code])
        own = {label: float(code) for code, label in enumerate(self.classes)}
        of_rows = np.array([own.get(label, np.nan) for label in classes])[codes]
        unknown = is_class & np.isnan(of_rows)
        return (
            np.where(is_class, of_rows, labels),
            np.where(unknown, UNLABELED, kinds).astype(np.uint8),
        )

    def take_schema_counts(self) -> dict[int | str, int]:
        """Return the number of records by the id of their schema, since the last call."""
        found, self._schemas = dict(self._schemas), Counter()
        return found

    def field_names(self) -> list[str]:
        """Return the names of fields that the other process has seen."""
        return list(self.names)
