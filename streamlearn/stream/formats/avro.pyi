from collections.abc import Sequence
from typing import Self, final

from streamlearn.stream.formats.avro_plan import Node
from streamlearn.stream.formats.binary import BinaryDecoder

class AvroPlan:
    def __new__(cls, nodes: Sequence[Node]) -> Self: ...

@final
class AvroDecoder(BinaryDecoder):
    def split(self, block: bytes, count: int) -> list[bytes]: ...
