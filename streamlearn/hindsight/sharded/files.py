"""Shards of files, in any format: labeled events become rows, and invalid records errors."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from streamlearn.engine.labels import column_of_events
from streamlearn.errors import InvalidEventError
from streamlearn.features import Hashing, Names
from streamlearn.hindsight.sharded.data import ShardData, packed
from streamlearn.losses import Loss
from streamlearn.stream import CSVDecoder, Events, Fields, Files, decoded_batches, decoder_of
from streamlearn.stream.sources.prefetch import prefetched
from streamlearn.stream.sources.record_files import RecordFiles, counter_of, opener_of
from streamlearn.stream.sources.stretch import FileStretch, StretchSource, cut_of, stretches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypeAlias

    from streamlearn.core.arrays import Array
    from streamlearn.features import Reader
    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.stream import Decoder, Records

    FileSource: TypeAlias = Files | RecordFiles
    Opened: TypeAlias = tuple[FileSource, Decoder]

MAX_EXAMPLES = 5  # invalid records that are listed


@dataclass(frozen=True)
class LossLabels:
    """The labels that a loss is for, as a learner that a decoder asks."""

    loss: AnyLoss

    @property
    def learns(self) -> Literal["classes", "numbers", "restricted numbers"]:
        """The kind of labels."""
        if not isinstance(self.loss, Loss) or self.loss.kind != "regression":
            return "classes"
        return "numbers" if self.loss.score_is_label else "restricted numbers"

    def check_labels(self, labels: list[Any]) -> None:
        """Raise InvalidEventError for a number that the loss does not accept."""
        if not isinstance(self.loss, Loss) or self.learns != "restricted numbers":
            return
        for label in labels:
            if not self.loss.is_label(label):
                raise InvalidEventError(f"{label!r} is not a label for {self.loss!r}")

    def order_labels(self, labels: list[Any]) -> None:
        """Do nothing: the labels of all shards are ordered together."""


@dataclass(frozen=True)
class FileShard:
    """The labeled events of files, or of a part of them.

    open: returns how files are read, with a new decoder; it is sent to the shard's worker. groups:
    whether the ids of events are the groups of a ranking loss. skip: whether invalid records are
    skipped; otherwise the first one is an error.
    """

    files: FileStretch
    open: Callable[[tuple[str, ...], LossLabels], Opened]
    groups: bool = False
    skip: bool = False

    @property
    def name(self) -> str:
        """The files."""
        paths, start = self.files.paths, self.files.start
        begin = f" from {start:,}" if start else ""
        more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
        return f"{paths[0]}{begin}{more}"

    def load(self, loss: AnyLoss) -> ShardData:
        """Read the files."""
        labels = LossLabels(loss)
        source, decoder = self.open(self.files.paths, labels)
        if self.files.start:
            self._begin(decoder, labels)
        rows = RowBuffer(classes=labels.learns == "classes", groups=self.groups)
        part = StretchSource(source, self.files)
        batches = prefetched(decoded_batches(part, decoder))
        try:
            for batch in batches:
                if batch is not None:
                    rows.add(batch[1])
                    self._check(*batch, source, rows)
        finally:
            batches.close()
            source.close()
        data = rows.data(decoder)
        if self.files.stop is None:
            return data
        # what follows in another shard is still to complete the others
        known = {name: one for name, one in data.buckets.items() if "edges" in one}
        return replace(data, buckets=known)

    def _begin(self, decoder: Decoder, labels: LossLabels) -> None:
        """Learn from what is before in the file what the rest depends on: columns and buckets."""
        table = decoder if isinstance(decoder, CSVDecoder) else None
        if table is None and not decoder.reader.frozen():
            return
        before = FileStretch(self.files.paths[:1], 0, self.files.start)
        source, first = self.open(before.paths, labels)
        batches = decoded_batches(StretchSource(source, before), first)
        try:
            for batch in batches:
                if batch is not None and table is not None:
                    table.infer(batch[0].values)
                    table = None
                if not any("warmup" in one for one in first.reader.frozen().values()):
                    break
        finally:
            batches.close()
            source.close()
        decoder.reader.restore_frozen(first.reader.frozen())

    def _check(self, records: Records, events: Events, source: FileSource, rows: RowBuffer) -> None:
        for bad in events.invalid:
            if self.skip and len(rows.examples) >= MAX_EXAMPLES:
                break
            place = source.place(records.partition, records.offsets[bad.number])
            if not self.skip:
                raise InvalidEventError(
                    f"{place}: {bad.reason}; repair the record, or skip it (skip, "
                    "--on-invalid skip)"
                )
            rows.examples.append(f"{place}: {bad.reason}")
        rows.invalid += len(events.invalid)


@dataclass
class RowBuffer:
    """The labeled rows of batches."""

    classes: bool
    groups: bool
    invalid: int = 0
    examples: list[str] = field(default_factory=list)
    _labels: dict[Any, int] = field(default_factory=dict)
    _parts: list[list[Array]] = field(default_factory=lambda: [[] for _ in range(5)])
    _groups: list[bytes | None] = field(default_factory=list)

    def add(self, events: Events) -> None:
        """Add the rows of events that have a label and a weight."""
        weights = events.learned_weights()
        used = weights > 0.0
        if not used.any():
            return
        lengths = np.diff(events.starts)
        entries = np.repeat(used, lengths)
        if self.classes:
            column = column_of_events(events, weights)
            known = self._labels
            codes = np.array([known.setdefault(each, len(known)) for each in column.distinct])
            y = codes[column.index[used]]
        else:
            y = events.labels[used]
        if self.groups:
            self._groups += [key for key, use in zip(events.ids, used.tolist(), strict=True) if use]
        values = packed(events.values[entries])
        added = (lengths[used], events.slots[entries], values, y, weights[used])
        for parts, part in zip(self._parts, added, strict=True):
            parts.append(part)

    def data(self, decoder: Decoder) -> ShardData:
        """Return all rows, and release the batches."""
        reader = decoder.reader
        if not self._parts[0]:
            return ShardData(scipy.sparse.csr_array((0, reader.size)), [])
        lengths, slots, values, y, weights = map(joined, self._parts)
        first = np.concatenate([[0], np.cumsum(lengths)])
        if first[-1] < np.iinfo(np.int32).max:
            first = first.astype(np.int32)
        X = scipy.sparse.csr_array((values, slots, first), shape=(len(y), max(reader.size, 1)))
        if self.classes:
            distinct = np.empty(len(self._labels), dtype=object)
            distinct[:] = list(self._labels)
            y = distinct[y]
        if self.groups and None in self._groups:
            raise ValueError("a labeled event has no group")
        return ShardData(
            X,
            y,
            None if (weights == weights[0]).all() and weights[0] == 1.0 else weights,
            np.array(self._groups) if self.groups else None,
            names=None if isinstance(reader, Hashing) else list(reader.names()),
            types=dict(decoder.types) if isinstance(decoder, CSVDecoder) else {},
            buckets=reader.frozen(),
            invalid=self.invalid,
            examples=self.examples,
            positive_seen=decoder.labels.positive_seen,
        )


def joined(parts: list[Array]) -> Array:
    """Return the parts in one array, and release them."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def file_shards(
    paths: Sequence[str | os.PathLike[str]],
    *,
    format: str,  # noqa: A002 - as in configurations
    fields: Fields | None = None,
    features: Reader | None = None,
    shards: int | None = None,
    group: str | None = None,
    skip: bool = False,
    **options: Any,
) -> list[FileShard]:
    """Return shards of files; large files are divided, unless there are groups.

    Parameters
    ----------
    paths
        The files. Each has to be where the shard's worker can read it.
    format
        "parquet", "arrow", "csv", "json", "svmlight", "vw" or "module:function".
    fields, features
        The roles of fields, and how the others become features; default: all by name. With
        `Hashing(bits)`, shards need not exchange their names.
    shards
        How many; default: one for each file. Files are distributed by size, and large ones divided:
        text between lines, Parquet between row groups. Compressed files are not.
    group
        The field of a row's group, for the ranking losses of `hindsight.multivariate`. All rows of
        a group must be in one file, or in files of one shard.
    skip
        Whether invalid records are skipped; otherwise the first one is an error that names file,
        line and field.
    options
        Further options of `stream.decoder_of`, such as the `delimiter` of CSV.
    """
    given = Fields() if fields is None else fields
    if group is not None:
        given = replace(given, id=group)
    opening = partial(open_files, format, given, Names() if features is None else features, options)
    names = [os.fspath(path) for path in paths]
    cut = None if group is not None else cut_of(format, options.get("delimiter"))
    return [
        FileShard(part, opening, group is not None, skip)
        for part in stretches(names, len(names) if shards is None else shards, cut)
    ]


def open_files(
    kind: str,
    fields: Fields,
    features: Reader,
    options: dict[str, Any],
    paths: tuple[str, ...],
    labels: LossLabels,
) -> Opened:
    """Return the source of files, and a decoder with features of its own."""
    decoder = decoder_of(kind, features.fresh(), fields, [labels], **options)
    lines: dict[str, Any] = {}
    if kind == "csv":
        lines = {"delimiter": options.get("delimiter", ","), "first": decoder.sample}
    open_file = opener_of(kind)
    if open_file is not None:
        return RecordFiles(paths, open_file, count=counter_of(kind)), decoder
    return Files(paths, **lines), decoder
