"""Read dead letters: from their topic, or from their file of JSON lines."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from streamlearn.daemon.outputs.dead_letters import FORMAT_HEADER
from streamlearn.stream.records import OWN_HEADERS, header_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamlearn.stream import Records
    from streamlearn.stream.records import Header

ORIGIN_PREFIX = (
    OWN_HEADERS + "origin."
)  # where a record was that was sent back; it stays, however often
LETTER_HEADER = OWN_HEADERS + "letter"  # position of its dead letter
ORIGIN_FIELDS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter: the original record, with its metadata in headers."""

    name: str  # the position of the letter itself
    value: bytes | None
    key: bytes | None = None
    headers: list[Header] = field(default_factory=list)

    def metadata(self, name: str) -> str | None:
        """Return the value of a metadata header; None without one."""
        found = [value for key, value in self.headers if key == OWN_HEADERS + name]
        value = found[-1] if found else None
        return None if value is None else value.decode(errors="replace")

    @property
    def undeliverable(self) -> str | None:
        """Return why the letter cannot be replayed; None if it can."""
        if any(self.metadata(name) is None for name in ORIGIN_FIELDS):
            return "no origin in its headers"
        if self.metadata("size") is not None:
            return "cut because of its size"
        return None

    def replay_headers(self) -> list[Header]:
        """Return the headers of the replayed record: its own, its origin, and its letter.

        >>> metadata = [("streamlearn.topic", b"clicks"), ("streamlearn.partition", b"0")]
        >>> metadata += [("streamlearn.offset", b"17"), ("streamlearn.reason", b"no JSON")]
        >>> letter = DeadLetter("dead/0/3", b"{", None, [("own", b"1"), *metadata])
        >>> for name, value in letter.replay_headers():
        ...     print(name, value)
        own b'1'
        streamlearn.origin.topic b'clicks'
        streamlearn.origin.partition b'0'
        streamlearn.origin.offset b'17'
        streamlearn.letter b'dead/0/3'
        """
        kept = [one for one in self.headers if not one[0].startswith(OWN_HEADERS)]
        origin = [one for one in self.headers if one[0].startswith(ORIGIN_PREFIX)]
        if not origin:
            origin = [
                (ORIGIN_PREFIX + name, (self.metadata(name) or "").encode())
                for name in ORIGIN_FIELDS
            ]
        return [*kept, *origin, (LETTER_HEADER, self.name.encode())]


def read_records(records: Records) -> Iterator[DeadLetter]:
    """Read letters from records of a topic."""
    for i, offset in enumerate(records.offsets):
        key = None if records.keys is None else records.keys[i]
        headers = [] if records.headers is None else list(records.headers[i])
        value = original_value(records.values[i], headers)
        yield DeadLetter(letter_name(records, offset), value, key, headers)


def original_value(value: bytes | None, headers: Sequence[Header]) -> bytes | None:
    """Return the value of the invalid record: that of the letter, or inside it."""
    kind = dict(headers).get(FORMAT_HEADER)
    if kind is None or value is None:
        return value
    from streamlearn.daemon.outputs.written import writer_of  # noqa: PLC0415 - optional

    writer = writer_of("avro" if kind == b"avro" else "protobuf", "DeadLetter")
    writer.use_id(0)
    found: bytes | None = writer.read(value[len(writer.prefix) :]).get("value")
    return found


class LetterLine(msgspec.Struct):
    """A line of a file of dead letters."""

    headers: dict[str, str | None] = {}
    headers_base64: list[tuple[str, str | None]] | None = None
    key: str | None = None
    key_base64: str | None = None
    value_base64: str | None = None


LINE_DECODER = msgspec.json.Decoder(LetterLine)


def read_lines(records: Records) -> Iterator[DeadLetter]:
    """Read letters from lines of a file; an invalid line becomes a letter without an origin."""
    for offset, line in zip(records.offsets, records.values, strict=True):
        name = letter_name(records, offset)
        try:
            read = LINE_DECODER.decode(line or b"")
            key = decode_base64(read.key_base64) if read.key is None else read.key.encode()
            value = decode_base64(read.value_base64)
            headers = line_headers(read)
        except (msgspec.DecodeError, binascii.Error):
            yield DeadLetter(name, line)
            continue
        yield DeadLetter(name, value, key, headers)


def line_headers(line: LetterLine) -> list[Header]:
    """Return the headers of a line."""
    if line.headers_base64 is None:
        return [
            (name, None if text is None else text.encode()) for name, text in line.headers.items()
        ]
    return [
        (header_name(decode_base64(name) or b""), decode_base64(text))
        for name, text in line.headers_base64
    ]


def letter_name(records: Records, offset: int) -> str:
    """Return the name of a letter."""
    return f"{records.partition.topic}/{records.partition.number}/{offset}"


def decode_base64(text: str | None) -> bytes | None:
    """Decode base64; None stays None."""
    return None if text is None else base64.b64decode(text, validate=True)
