"""One pass over a source: decoded batches, which stops at an invalid line or counts it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.config.checks.formats import positive_labels
from streamlearn.core.labels import label_text
from streamlearn.daemon.absent_fields import AbsentFields, field_hint
from streamlearn.daemon.label_monitor import Spellings, label_hint
from streamlearn.engine.events import Events
from streamlearn.stream import Files, decoded_batches
from streamlearn.stream.sources.parts import narrow, whole
from streamlearn.stream.sources.prefetch import decode_records, prefetched
from streamlearn.stream.sources.record_files import RecordFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Decoder, Records, Source
    from streamlearn.stream.formats.fields import Label

POLL_SECONDS = 0.25
MAX_EXAMPLES = 5  # invalid lines that are printed
MANY_NUMBERS = 50  # distinct numbers that are hardly classes


class Pass:
    """The batches of a source, from its beginning to its end.

    Parameters
    ----------
    source
        Where the records come from.
    decoder
        Makes events of them.
    skip
        Whether invalid records are skipped; otherwise the first one raises ValueError.
    on_batch
        Called with the source after each batch, for a progress bar.
    on_first
        Called once the first batch turned out to be valid.
    first
        Ends batches after this many records, twice as many, and so on, where `at_point` is true;
        None: batches are those of the source.
    """

    def __init__(
        self,
        source: Source,
        decoder: Decoder,
        *,
        skip: bool,
        on_batch: Callable[[Source], None] | None = None,
        on_first: Callable[[], None] | None = None,
        first: int | None = None,
    ) -> None:
        self.source = source
        self.decoder = decoder
        self.skip = skip
        self.on_batch = on_batch
        self.on_first = on_first
        self.next = first
        self._batches: Generator[tuple[Records, Events] | None, None, None] | None = None
        self.at_point = False
        self.records = self.events = self.invalid = 0
        self.absent = AbsentFields(decoder)
        self.examples: list[str] = []
        self.latest: Sequence[bytes | None] = ()  # the records of the last batch

    def __iter__(self) -> Iterator[Events]:
        # with points, each learner's cost is measured: nothing is decoded ahead meanwhile
        whole = self.next is None
        self._batches = (
            prefetched(decoded_batches(self.source, self.decoder)) if whole else self._parts()
        )
        for batch in self._batches:
            if self.on_batch is not None:
                self.on_batch(self.source)
            if batch is not None:
                self._count(*batch)
                if self.on_first is not None:
                    self.on_first()
                    self.on_first = None
                self.latest = batch[0].values
                yield batch[1]

    def close(self) -> None:
        """Close the source."""
        if self._batches is not None:
            self._batches.close()
        self.source.close()

    def _parts(self) -> Generator[tuple[Records, Events], None, None]:
        """Yield batches that end at the points."""
        events = Events()
        self.source.open({}, None)
        while True:
            polled = self.source.poll(POLL_SECONDS)
            for records in polled:
                for part in self._cut(records):
                    events.clear()
                    decode_records(self.decoder, part, events)
                    narrow(self.source, self.decoder)
                    yield part, events
            if not polled and self.source.ended():
                return

    def _cut(self, records: Records) -> Iterator[Records]:
        """Split records at the points."""
        start, n = 0, len(records.offsets)
        while start < n:
            stop = n if self.next is None else min(n, start + self.next - self.records)
            self.at_point = self.next is not None and self.records + stop - start == self.next
            if self.at_point and self.next is not None:
                self.next *= 2
            yield records.part(start, stop)
            start = stop

    def _count(self, records: Records, events: Events) -> None:
        for bad in events.invalid:
            place = self._place(records, bad.number)
            if not self.skip:
                raise ValueError(
                    f"{place}: {bad.reason}; repair the line, or use --on-invalid skip"
                )
            if len(self.examples) < MAX_EXAMPLES:
                self.examples.append(f"{place}: {bad.reason}")
        self.records += len(records.offsets)
        self.events += len(events)
        self.absent.add(events)
        self.invalid += len(events.invalid)

    def _place(self, records: Records, index: int) -> str:
        """Return file and line number of a record."""
        name, offset = records.partition.topic, records.offsets[index]
        source = whole(self.source)
        if isinstance(source, Files | RecordFiles):
            return source.place(records.partition, offset)
        return f"{name}: line {self.records + index + 1}"


def report_absent(command: str, absent: AbsentFields, options: Options) -> None:
    """Print a note for each field that an option names, and that no event had."""
    for role, name in absent.found().items():
        if absent.events and getattr(options, role, None) is not None:
            similar = field_hint(name, absent.decoder).get("similar")
            near = f" (nearest: {', '.join(similar)})" if similar else ""
            weights = ", so all weigh 1" if role == "weight" else ""
            text = f"no event had the field {name!r} (--{role}){weights}{near}"
            sys.stderr.write(f"streamlearn {command}: {text}\n")


def require_labels(
    settings: config.Config, events: int, labeled: int, decoder: Decoder, options: Options
) -> None:
    """Raise ValueError if there was no event, or none with a label."""
    if labeled:
        return
    if not events:
        source = settings.source
        where = (
            ", ".join(source.paths) if isinstance(source, config.FileSourceConfig) else "the input"
        )
        left = ", but those that are held out" if getattr(options, "holdout", None) else ""
        raise ValueError(f"{where}: no events found{left}")
    raise ValueError(no_labels(decoder, events, options))


def no_labels(decoder: Decoder, events: int, options: Options) -> str:
    """Explain that none of so many events has a label."""
    found = label_hint(decoder)
    if found["field"] is None:
        return f"none of {events:,} lines has a label; a line starts with its label"
    if found["field"] in decoder.field_names():
        weight = "" if decoder.fields.weight is None else " and a weight above 0"
        return (
            f"none of {events:,} events has a value in the label field {found['field']!r}{weight}; "
            "fill it in, or name another field with --label FIELD"
        )
    whose = "" if options.label is not None else ", the label of the model's training"
    near = f" (nearest: {', '.join(found['similar'])})" if "similar" in found else ""
    return (
        f"none of {events:,} events has the label field {found['field']!r}{whose}; "
        f"name it with --label FIELD{near}"
    )


def report_positive(command: str, settings: config.Config, seen: Collection[Label]) -> None:
    """Print a note if values of --positive were the label of no event; `seen` were."""
    if unseen := [one for one in positive_labels(settings.format) if one not in seen]:
        values = " or ".join(map(label_text, unseen))
        others = "" if seen else ": all count as negative"
        sys.stderr.write(f"streamlearn {command}: no label is {values} (--positive){others}\n")


def regression_hint(events: Events) -> str | None:
    """Return a hint if labels that are learned as classes look like measurements."""
    labels = {events.label_of(i) for i in range(len(events))}
    numbers = sum(isinstance(label, int | float) and label not in (0, 1) for label in labels)
    if numbers <= MANY_NUMBERS:
        return None
    return (
        f"the first labels are {numbers:,} distinct numbers, each learned as a class of its own, "
        "which is slow; for numbers use --regression"
    )


def spelling_hint(labels: Sequence[Label]) -> str | None:
    """Return a hint if classes differ only in case or surrounding spaces.

    >>> print(spelling_hint(["yes", "Yes", "no"]))
    the labels 'yes', 'Yes' differ only in case or surrounding spaces, and each is a class of its \
own; repair them, or declare the valid ones (--labels) or the positive ones (--positive)
    """
    groups = Spellings().add(labels)
    if not groups:
        return None
    listed = " and ".join(", ".join(map(repr, group)) for group in groups[:MAX_EXAMPLES])
    more = ", .." if len(groups) > MAX_EXAMPLES else ""
    return (
        f"the labels {listed}{more} differ only in case or surrounding spaces, and each is a class "
        "of its own; repair them, or declare the valid ones (--labels) or the positive ones "
        "(--positive)"
    )
