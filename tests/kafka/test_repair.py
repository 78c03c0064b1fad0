"""Batches with names of headers that kafka-python can't read, and batches that nobody can."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch as Batch
from kafka.record.default_records import DefaultRecordBatchBuilder as Builder

from streamlearn.kafka.kafka_python.repair import (
    UnreadableRecords,
    headers,
    read,
    readable,
    repaired,
)
from streamlearn.stream.records import Partition

CODECS = [Batch.CODEC_NONE, *range(Batch.CODEC_GZIP, Batch.CODEC_ZSTD + 1)]
BASE = 1_000_000
PARTITION = Partition("clicks", 3)


class Raw(str):
    """A name that kafka-python writes as the bytes that it stands for."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return str.encode(self, "utf-8", "surrogateescape")


class Shown(str):
    """The same name as it is shown."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return str.encode(self, "utf-8", "replace")


RECORDS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (5, b"k", b"v", [("a", b"1")]),
    (-7, None, b"v" * 1000, [("gr\udcf6\udcdfe", None), ("", b""), ("\udcff", b"\xff")]),
    (1 << 62, b"k" * 1000, None, []),
]


def batch(codec: int, name: type[str] = Raw) -> bytes:
    """Return these records as a broker would."""
    made = Builder(2, codec, 0, -1, -1, -1, 1 << 20)
    for delta, (time, key, value, given) in enumerate(RECORDS):
        made.append(2 * delta, time, key, value, [(name(one), item) for one, item in given])
    raw = bytearray(made.build())
    struct.pack_into(">q", raw, 0, BASE)
    return bytes(raw)


def records(raw: bytes) -> list[tuple[Any, ...]]:
    """Return what the consumer reads."""
    return [(one.offset, one.timestamp, one.key, one.value, headers(one)) for one in Batch(raw)]


@pytest.mark.parametrize("codec", CODECS)
def test_repairs_change_only_header_names(codec: int) -> None:
    raw = batch(codec)
    with pytest.raises(CorruptRecordError):
        read(raw)
    made = Batch(readable(raw))
    assert made.validate_crc()
    assert made.next_offset == Batch(raw).next_offset == BASE + 5
    assert records(readable(raw)) == [(BASE + 2 * i, *one) for i, one in enumerate(RECORDS)]


def test_a_readable_batch_is_unchanged() -> None:
    raw = batch(Batch.CODEC_LZ4, Shown)
    assert readable(raw) is raw


def test_unrepairable_batches_are_noted() -> None:
    noted: dict[Partition, UnreadableRecords] = {}
    good, bad = batch(Batch.CODEC_NONE), bytearray(batch(Batch.CODEC_NONE))
    bad[-1] ^= 1
    tail = good[:-1]  # the last batch of an answer may have come in part
    assert repaired(PARTITION, good + bad + tail, noted) == readable(good) + bytes(bad)
    assert noted[PARTITION][:3] == (PARTITION, BASE, BASE + 5)
