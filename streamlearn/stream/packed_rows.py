"""Records that another process has decoded: rows in place of their bytes.

`PackedRows` is the sequence of a `Records`' values. It is cut and joined like one, and
`formats.packed` turns it into events without parsing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from streamlearn.engine.events import CLASS_KIND, TYPES, Events

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.stream.formats.decoder import Decoder
    from streamlearn.stream.formats.fields import Label

STARTS, SLOTS, VALUES, LABELS, KINDS, WEIGHTS, TIMES, _KNOWN, INDEX, ID_TEXT, ID_ENDS, *_ = range(
    len(TYPES)
)
PER_ROW = [k for k in range(len(TYPES)) if k not in {STARTS, SLOTS, VALUES, ID_TEXT}]
TOMBSTONE = -1


@dataclass(frozen=True)
class Notes:
    """What a decoder tells besides the rows: records by schema, names of fields, labels seen."""

    schemas: Mapping[int | str, int] = field(default_factory=dict)
    fields: Sequence[str] = ()
    positive_seen: Sequence[Label] = ()  # of the declared positive values
    negative_values: Sequence[Label] = ()  # some of the others

    @classmethod
    def of(cls, decoder: Decoder) -> Notes:
        """Return those of a decoder after a batch."""
        labels = decoder.labels
        return cls(
            decoder.take_schema_counts(),
            decoder.field_names(),
            list(labels.positive_seen),
            list(labels.negative_values),
        )

    @classmethod
    def joined(cls, parts: Iterable[Notes]) -> Notes:
        """Return the notes of several batches."""
        schemas: Counter[int | str] = Counter()
        fields: dict[str, None] = {}
        positive: dict[Label, None] = {}
        negative: dict[Label, None] = {}
        for one in parts:
            schemas.update(one.schemas)
            fields.update(dict.fromkeys(one.fields))
            positive.update(dict.fromkeys(one.positive_seen))
            negative.update(dict.fromkeys(one.negative_values))
        return cls(schemas, list(fields), list(positive), list(negative))


NO_NOTES = Notes()


@dataclass(frozen=True, eq=False)
class PackedRows(Sequence[bytes | None]):
    """The records start .. stop - 1 of a batch that was decoded elsewhere.

    `rows` are the arrays of `Events.packed`, `classes` its labels, and `sizes` the bytes of each
    record, -1 for null. Only the bytes in `kept` are here: those of invalid records. The
    notes of a batch that is cut are with its first part.

    >>> from streamlearn import Hashing
    >>> from streamlearn.stream import Events, JSONDecoder
    >>> events = Events()
    >>> JSONDecoder(Hashing()).decode(values := [b'{"x": 2}', b"?", b'{"x": 3}'], events)
    >>> packed = PackedRows.of(values, events)
    >>> len(packed), packed[1], packed[1:].byte_count, packed[1:].invalid[0].number
    (3, b'?', 9, 0)
    >>> packed[1:].arrays[2], packed[1:].arrays[8]
    (array([3.]), array([1]))
    """

    rows: tuple[Array, ...]
    classes: Sequence[Hashable]
    sizes: Array
    found_invalid: Sequence[InvalidRecord] = ()
    kept: Mapping[int, bytes] = field(default_factory=dict)
    start: int = 0
    stop: int = 0
    all_notes: Notes = NO_NOTES

    @classmethod
    def of(
        cls,
        values: Sequence[bytes | None],
        events: Events,
        *,
        keep_all: bool = False,
        notes: Notes = NO_NOTES,
    ) -> PackedRows:
        """Pack the events that were decoded from these values; the arrays are views."""
        kept = range(len(values)) if keep_all else [bad.number for bad in events.invalid]
        sizes = [TOMBSTONE if value is None else len(value) for value in values]
        return cls(
            events.packed(),
            list(events.classes),
            np.array(sizes, dtype=np.int32),
            list(events.invalid),
            {i: value for i in kept if (value := values[i]) is not None},
            0,
            len(values),
            notes,
        )

    @classmethod
    def joined(cls, parts: Sequence[PackedRows]) -> PackedRows:
        """Return the records of several, one after the other."""
        classes: dict[Hashable, int] = {}
        sizes = np.concatenate([one.sizes[one.start : one.stop] for one in parts])
        invalid: list[InvalidRecord] = []
        kept: dict[int, bytes] = {}
        columns: list[list[Array]] = [[] for _ in TYPES]
        before = used = text = 0
        for one in parts:
            arrays = list(one.arrays)
            arrays[INDEX] = arrays[INDEX] + before
            arrays[STARTS] = arrays[STARTS][:-1] + used
            arrays[ID_ENDS] = arrays[ID_ENDS] + text
            if one.classes:
                codes = [classes.setdefault(label, len(classes)) for label in one.classes]
                arrays[LABELS] = recoded(arrays, codes)
            for column, array in zip(columns, arrays, strict=True):
                column.append(array)
            invalid += [bad.at(bad.number + before) for bad in one.invalid]
            kept |= {i - one.start + before: value for i, value in one.kept.items()
                     if one.start <= i < one.stop}  # fmt: skip
            before += len(one)
            used += len(arrays[SLOTS])
            text += len(arrays[ID_TEXT])
        notes = Notes.joined(one.notes for one in parts)
        columns[STARTS].append(np.array([used], dtype=np.int64))
        rows = tuple(np.concatenate(column) for column in columns)
        return cls(rows, list(classes), sizes, invalid, kept, 0, before, notes)

    def ordered(self, order: Array) -> tuple[tuple[Array, ...], list[InvalidRecord]]:
        """Return the rows and the invalid records in this order of the records."""
        arrays = self.arrays
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        index = place[arrays[INDEX]]
        chosen = np.argsort(index, kind="stable")
        result: list[Array] = [array[chosen] if k in PER_ROW else array
                               for k, array in enumerate(arrays)]  # fmt: skip
        result[INDEX] = index[chosen]
        result[STARTS], items = gathered(arrays[STARTS], chosen)
        result[SLOTS], result[VALUES] = arrays[SLOTS][items], arrays[VALUES][items]
        ends = np.concatenate([[0], arrays[ID_ENDS]])
        id_starts, characters = gathered(ends, chosen)
        result[ID_ENDS], result[ID_TEXT] = id_starts[1:], arrays[ID_TEXT][characters]
        invalid = [bad.at(int(place[bad.number])) for bad in self.invalid]
        return tuple(result), sorted(invalid, key=lambda bad: bad.number)

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of these records' rows; the large ones are views."""
        if self.start == 0 and self.stop == len(self.sizes):
            return self.rows
        first, last = np.searchsorted(self.rows[INDEX], [self.start, self.stop]).tolist()
        starts, ends = self.rows[STARTS][first : last + 1], self.rows[ID_ENDS]
        text = int(ends[first - 1]) if first else 0
        text_end = int(ends[last - 1]) if last > first else text
        cut = [self.rows[k][first:last] if k in PER_ROW else self.rows[k]
               for k in range(len(TYPES))]  # fmt: skip
        cut[STARTS] = starts - starts[0]
        for k in (SLOTS, VALUES):
            cut[k] = self.rows[k][starts[0] : starts[-1]]
        cut[INDEX] = cut[INDEX] - self.start
        cut[ID_ENDS] = cut[ID_ENDS] - text
        cut[ID_TEXT] = self.rows[ID_TEXT][text:text_end]
        return tuple(cut)

    @property
    def invalid(self) -> list[InvalidRecord]:
        """The invalid records."""
        start, stop = self.start, self.stop
        mine = [bad for bad in self.found_invalid if start <= bad.number < stop]
        return [bad.at(bad.number - start) for bad in mine]

    @property
    def notes(self) -> Notes:
        """The notes of the batch, if these are its first records."""
        return self.all_notes if self.start == 0 else NO_NOTES

    @property
    def tombstones(self) -> int:
        """The number of null records."""
        return int(np.count_nonzero(self.sizes[self.start : self.stop] == TOMBSTONE))

    @property
    def byte_count(self) -> int:
        """The bytes of the records, as they were before they were decoded."""
        return int(self.sizes[self.start : self.stop].sum()) + self.tombstones

    def __len__(self) -> int:
        return self.stop - self.start

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> PackedRows: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("packed rows are cut without steps")
            return replace(self, start=self.start + start, stop=self.start + max(start, stop))
        return self.kept.get(range(self.start, self.stop)[index])


def recoded(arrays: Sequence[Array], codes: Sequence[int]) -> Array:
    """Return the labels with other codes of their classes."""
    labels = arrays[LABELS]
    if list(codes) == list(range(len(codes))):
        return labels
    chosen = arrays[KINDS] == CLASS_KIND
    labels = labels.copy()
    labels[chosen] = np.array(codes, dtype=float)[labels[chosen].astype(np.int64)]
    return labels


def gathered(starts: Array, chosen: Array) -> tuple[Array, Array]:
    """Return the starts of the chosen rows, one after the other, and the places of their items.

    >>> gathered(np.array([0, 2, 3]), np.array([1, 0]))
    (array([0, 1, 3]), array([2, 0, 1]))
    """
    lengths = np.diff(starts)[chosen]
    to = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    shift = np.repeat(starts[:-1][chosen] - to[:-1], lengths)
    return to, shift + np.arange(to[-1])
