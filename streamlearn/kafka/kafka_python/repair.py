"""Repair fetched records for kafka-python, which rejects header names that are not UTF-8.

Such a name ends its consumer, without its offset and without a way to skip it. So fetched data is
checked before the consumer sees it, and such names are escaped. This makes reading 40% slower, and
begins only after a consumer has found a record that it cannot read.
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

# The first character of an escaped header name; Unicode does not use it in text.
ESCAPE = "\U0010ffff"
DECODERS = {
    Batch.CODEC_GZIP: codec.gzip_decode,
    Batch.CODEC_SNAPPY: codec.snappy_decode,
    Batch.CODEC_LZ4: codec.lz4_decode,
    Batch.CODEC_ZSTD: codec.zstd_decode,
}
LENGTH, ATTRIBUTES = 1, 5  # their indices among the fields of a batch


class UnreadableRecords(NamedTuple):
    """Records that cannot be read: offsets from `first` to before `end`."""

    partition: Partition
    first: int
    end: int
    reason: str


class RepairingManager(KafkaConnectionManager):
    """Connections that repair what is fetched over them."""

    def __init__(self, unreadable: dict[Partition, UnreadableRecords], **settings: Any) -> None:
        self.net = NetworkSelector(**settings)
        super().__init__(self.net, **settings)  # type: ignore[no-untyped-call]
        self.unreadable = unreadable

    @classmethod
    def client(
        cls, unreadable: dict[Partition, UnreadableRecords], **settings: Any
    ) -> KafkaNetClient:
        """Create a network client; `unreadable` collects what cannot be repaired."""
        manager = cls(unreadable, **settings)
        return KafkaNetClient(manager.net, manager, **settings)

    def send(self, request: Any, *args: Any, **options: Any) -> Any:
        """Send a request; a fetched response is repaired before other callbacks."""
        future = super().send(request, *args, **options)  # type: ignore[no-untyped-call]
        if isinstance(request, FetchRequest):
            future.add_callback(self._repair)
        return future

    def _repair(self, response: Any) -> None:
        for topic in response.responses:
            for one in topic.partitions:
                if one.records:
                    where = Partition(topic.topic, one.partition_index)
                    one.records = repaired(where, bytes(one.records), self.unreadable)


def repaired(
    partition: Partition, data: bytes, unreadable: dict[Partition, UnreadableRecords]
) -> bytes:
    """Return the batches, repaired where necessary; note the first unrepairable one."""
    found = []
    for raw in batches(data):
        if raw[MemoryRecords.MAGIC_OFFSET] < 2:  # formats without headers
            return data
        try:
            found.append(readable(raw))
        except Exception as error:  # noqa: BLE001 -- of any kind, as the bytes are
            found.append(raw)
            batch = Batch(raw)
            where = UnreadableRecords(partition, batch.base_offset, batch.next_offset, str(error))
            unreadable.setdefault(partition, where)
    return b"".join(found)


def batches(data: bytes) -> Iterator[bytes]:
    """Split fetched data into batches, without an incomplete last one."""
    at = 0
    while at + Batch.AFTER_LEN_OFFSET <= len(data):
        (length,) = struct.unpack_from(">i", data, at + Batch.AFTER_LEN_OFFSET - 4)
        end = at + Batch.AFTER_LEN_OFFSET + length
        if end > len(data):
            return
        yield data[at:end]
        at = end


def readable(raw: bytes) -> bytes:
    """Return a batch unchanged if the consumer can read it, else repaired."""
    if not Batch(raw).validate_crc():
        raise ValueError("checksum mismatch")
    try:
        read(raw)
    except CorruptRecordError:
        raw = repair_batch(raw)
        read(raw)
    return raw


def read(raw: bytes) -> None:
    """Read a batch as the consumer does."""
    for _ in Batch(raw):
        pass


def repair_batch(raw: bytes) -> bytes:
    """Return a batch, uncompressed, with escaped header names."""
    batch = Batch(raw)
    fields = list(Batch.HEADER_STRUCT.unpack_from(raw))
    records = raw[Batch.HEADER_STRUCT.size :]
    if batch.compression_type != Batch.CODEC_NONE:
        records = bytes(DECODERS[batch.compression_type](records))
    made, at = bytearray(Batch.HEADER_STRUCT.size), 0
    for _ in range(batch.records_count):
        length, at = decode_varint(records, at)
        record = repair_record(records[at : at + length])
        encode_varint(len(record), made.append)
        made += record
        at += length
    fields[LENGTH] = len(made) - Batch.AFTER_LEN_OFFSET
    fields[ATTRIBUTES] &= ~Batch.CODEC_MASK
    Batch.HEADER_STRUCT.pack_into(made, 0, *fields)
    crc = calc_crc32c(memoryview(made)[Batch.ATTRIBUTES_OFFSET :])
    struct.pack_into(">I", made, Batch.CRC_OFFSET, crc)
    return bytes(made)


def repair_record(record: bytes) -> bytes:
    """Return a record with escaped header names."""
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
    """Return the end of the bytes whose length is here; the length of null is -1."""
    length, at = decode_varint(record, at)
    return int(at + max(length, 0))


def escaped(name: bytes) -> bytes:
    r"""Return a name as UTF-8, escaped if it is not.

    >>> escaped("é".encode()).decode(), escaped(b"\xff\x00")[4:].decode()
    ('é', 'ÿ\x00')
    """
    try:
        name.decode()
    except UnicodeDecodeError:
        return (ESCAPE + name.decode("latin-1")).encode()
    return name


def headers(message: Any) -> list[Header]:
    """Return the headers of a message with their original names."""
    return [(original(name), value) for name, value in message.headers]


def original(name: str) -> str:
    r"""Return the original of an escaped name, or the name itself.

    >>> [original(escaped(name).decode()) for name in (b"\xff", b"\xf4\x8f\xbf\xbfa")]
    ['\udcff', '\U0010ffffa']
    """
    if name.startswith(ESCAPE):
        with suppress(UnicodeEncodeError):
            raw = name[1:].encode("latin-1")
            if escaped(raw) != raw:
                return header_name(raw)
    return name
