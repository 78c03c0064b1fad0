"""Avro object container files: blocks of records, and the schema of all of them.

fastavro reads the blocks; the records in them are told apart natively.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from streamlearn.features import Names
from streamlearn.stream.formats.avro import AvroDecoder
from streamlearn.stream.formats.schemas import CONTAINER_HEADER, AvroSchema

try:
    import fastavro
except ImportError as error:
    raise ImportError("Avro requires fastavro; run pip install 'streamlearn[registry]'") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.stream.records import Header


class AvroFile:
    """The records of a container file, which all have its schema as a header."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = fastavro.block_reader(file)
        schema = self._blocks.metadata["avro.schema"].encode()
        self._splitter = AvroDecoder(AvroSchema(self._blocks.writer_schema), Names())
        self.headers: Sequence[Header] = [(CONTAINER_HEADER, schema)]
        self._rest: list[bytes] = []  # of the current block, in reverse

    def take(self, most: int) -> Sequence[bytes]:
        """Return the next records of one block."""
        while not self._rest:
            block: Any = next(self._blocks, None)
            if block is None:
                return []
            self._rest = self._splitter.split(block.bytes_.getvalue(), block.num_records)[::-1]
        taken = self._rest[: -most - 1 : -1]
        del self._rest[-most:]
        return taken

    def skip(self, count: int) -> int:
        """Skip records."""
        left = count
        while left and (taken := self.take(left)):
            left -= len(taken)
        return count - left
