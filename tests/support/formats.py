"""What a decoder makes of records, compared with what the library makes of the same events."""

from collections.abc import Sequence
from typing import Any

from streamlearn.errors import InvalidEventError
from streamlearn.features import Reader
from streamlearn.stream import Events
from streamlearn.stream.formats.decoder import Decoder


def read(decoder: Decoder, records: Sequence[bytes]) -> Events:
    events = Events()
    decoder.decode(records, events)
    return events


def same(decoder: Decoder, records: Sequence[bytes], expected: Sequence[Any]) -> None:
    """Assert that the records become what these events become, valid or not."""
    events = read(decoder, records)
    assert decoder.grow_always  # so that all names are known
    fresh = decoder.reader.fresh()
    invalid, rows = [], []
    for place, event in enumerate(expected):
        try:
            rows.append(named(fresh, fresh.read_event(event)))
        except InvalidEventError as error:
            invalid.append((place, error.field))
    assert [(bad.number, bad.field) for bad in events.invalid] == invalid
    assert [named(decoder.reader, events.row_of(k)) for k in range(len(events))] == rows


def named(reader: Reader, row: Sequence[tuple[int, float]]) -> dict[Any, float]:
    names = reader.names()
    return {names[slot]: value for slot, value in row}
