from collections.abc import Sequence
from typing import Self, final

from streamlearn.stream.formats.binary import BinaryDecoder
from streamlearn.stream.formats.protobuf_plan import Message

@final
class ProtobufPlan:
    def __new__(cls, messages: Sequence[Message]) -> Self: ...

@final
class ProtobufDecoder(BinaryDecoder): ...
