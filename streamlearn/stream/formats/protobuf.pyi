from collections.abc import Iterator, Sequence
from typing import Self

from streamlearn.stream.formats.binary import BinaryDecoder
from streamlearn.stream.formats.protobuf_plan import Message

class Plan:
    def __new__(cls, messages: Sequence[Message]) -> Self: ...

class ProtobufDecoder(BinaryDecoder): ...

def varint_of(n: int) -> Iterator[int]: ...
