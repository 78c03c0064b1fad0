from collections.abc import Sequence
from typing import Self

from streamlearn.stream.formats.binary import BinaryDecoder
from streamlearn.stream.formats.protobuf_plan import Message

class Plan:
    def __new__(cls, messages: Sequence[Message]) -> Self: ...

class ProtobufDecoder(BinaryDecoder): ...
