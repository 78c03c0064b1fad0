"""Fetched records made readable: kafka-python takes no header name that is not UTF-8.

One such name ends its consumer, and says neither where it is nor lets anyone pass over it. So what
is fetched is looked at before the consumer sees it, and such names are escaped. Reading takes 40%
longer then; it is done only once a consumer has met a record that it can't read.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import codec
from kafka.errors import CorruptRecordError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.consumer import FetchRequest
from kafka.record.default_records import DefaultRecordBatch as Batch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import calc_crc32c, decode_varint, encode_varint

from streamlearn.stream.records import Partition, header_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.stream.records import Header

# Begins the name of a header that is not UTF-8; Unicode has no such character for texts.
ESCAPE = "\U0010ffff"
DECODERS = {
    Batch.CODEC_GZIP: codec.gzip_decode,
    Batch.CODEC_SNAPPY: codec.snappy_decode,
    Batch.CODEC_LZ4: codec.lz4_decode,
    Batch.CODEC_ZSTD: codec.zstd_decode,
}
LENGTH, ATTRIBUTES = 1, 5  # their places among the fields of a batch


class Unreadable(NamedTuple):
    """Records that can't be read: from the first to before the end."""

    partition: Partition
    first: int
    end: int
    reason: str


class Mending(KafkaConnectionManager):
    """Connections that mend what is fetched over them."""

    def __init__(self, unreadable: dict[Partition, Unreadable], **settings: Any) -> None:
        self.net = NetworkSelector(**settings)
        super().__init__(self.net, **settings)  # type: ignore[no-untyped-call]
        self.unreadable = unreadable

    @classmethod
    def client(cls, unreadable: dict[Partition, Unreadable], **settings: Any) -> KafkaNetClient:
        """Make a network client over them, which notes there what can't be mended."""
        manager = cls(unreadable, **settings)
        return KafkaNetClient(manager.net, manager, **settings)

    def send(self, request: Any, *args: Any, **options: Any) -> Any:
        """Send a request; what is done with the answer here is done first."""
        future = super().send(request, *args, **options)  # type: ignore[no-untyped-call]
        if isinstance(request, FetchRequest):
            future.add_callback(self._mend)
        return future

    def _mend(self, response: Any) -> None:
        for topic in response.responses:
            for one in topic.partitions:
                if one.records:
                    where = Partition(topic.topic, one.partition_index)
                    one.records = mended(where, bytes(one.records), self.unreadable)


def mended(partition: Partition, data: bytes, unreadable: dict[Partition, Unreadable]) -> bytes:
    """Return the batches, mended where they need it; note the first that can't be."""
    found = []
    for raw in batches(data):
        if raw[MemoryRecords.MAGIC_OFFSET] < 2:  # when there were no headers
            return data
        try:
            found.append(readable(raw))
        except Exception as error:  # noqa: BLE001 -- of any kind, as the bytes are
            found.append(raw)
            batch = Batch(raw)
            where = Unreadable(partition, batch.base_offset, batch.next_offset, str(error))
            unreadable.setdefault(partition, where)
    return b"".join(found)


def batches(data: bytes) -> Iterator[bytes]:
    """Split what was fetched into its batches; the last may have come in part, and is left out."""
    at = 0
    while at + Batch.AFTER_LEN_OFFSET <= len(data):
        (length,) = struct.unpack_from(">i", data, at + Batch.AFTER_LEN_OFFSET - 4)
        end = at + Batch.AFTER_LEN_OFFSET + length
        if end > len(data):
            return
        yield data[at:end]
        at = end


def readable(raw: bytes) -> bytes:
    """Return a batch as it came if the consumer can read it, or else mended."""
    if not Batch(raw).validate_crc():
        raise ValueError("the checksum is wrong")
    try:
        read(raw)
    except CorruptRecordError:
        raw = mend(raw)
        read(raw)
    return raw


def read(raw: bytes) -> None:
    """Read a batch as the consumer will."""
    for _ in Batch(raw):
        pass


def mend(raw: bytes) -> bytes:
    """Return a batch with the names of headers escaped that are not UTF-8, and not compressed."""
    batch = Batch(raw)
    fields = list(Batch.HEADER_STRUCT.unpack_from(raw))
    records = raw[Batch.HEADER_STRUCT.size :]
    if batch.compression_type != Batch.CODEC_NONE:
        records = bytes(DECODERS[batch.compression_type](records))
    made, at = bytearray(Batch.HEADER_STRUCT.size), 0
    for _ in range(batch.records_count):
        length, at = decode_varint(records, at)
        record = mend_record(records[at : at + length])
        encode_varint(len(record), made.append)
        made += record
        at += length
    fields[LENGTH] = len(made) - Batch.AFTER_LEN_OFFSET
    fields[ATTRIBUTES] &= ~Batch.CODEC_MASK
    Batch.HEADER_STRUCT.pack_into(made, 0, *fields)
    crc = calc_crc32c(memoryview(made)[Batch.ATTRIBUTES_OFFSET :])
    struct.pack_into(">I", made, Batch.CRC_OFFSET, crc)
    return bytes(made)


def mend_record(record: bytes) -> bytes:
    """Return a record with the names of its headers escaped that are not UTF-8."""
    at = 0
    for _ in ("attributes", "time", "offset"):
        _, at = decode_varint(record, at)
    for _ in ("key", "value"):
        at = after(record, at)
    count, at = decode_varint(record, at)
    made = bytearray(record[:at])
    for _ in range(count):
        length, at = decode_varint(record, at)
        name = escaped(record[at : at + length])
        encode_varint(len(name), made.append)
        end = after(record, at + length)
        made += name + record[at + length : end]
        at = end
    return bytes(made)


def after(record: bytes, at: int) -> int:
    """Return where the bytes end whose length is here; -1 is that of null."""
    length, at = decode_varint(record, at)
    return int(at + max(length, 0))


def escaped(name: bytes) -> bytes:
    r"""Return a name as UTF-8.

    >>> escaped("é".encode()).decode(), escaped(b"\xff\x00")[4:].decode()
    ('é', 'ÿ\x00')
    """
    try:
        name.decode()
    except UnicodeDecodeError:
        return (ESCAPE + name.decode("latin-1")).encode()
    return name


def headers(message: Any) -> list[Header]:
    """Return the headers of a message, with their own names again."""
    return [(original(name), value) for name, value in message.headers]


def original(name: str) -> str:
    r"""Return the name that was escaped, or this one if it was not.

    >>> [original(escaped(name).decode()) for name in (b"\xff", b"\xf4\x8f\xbf\xbfa")]
    ['\udcff', '\U0010ffffa']
    """
    if name.startswith(ESCAPE):
        with suppress(UnicodeEncodeError):
            raw = name[1:].encode("latin-1")
            if escaped(raw) != raw:
                return header_name(raw)
    return name
