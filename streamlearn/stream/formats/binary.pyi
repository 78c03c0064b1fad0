from collections.abc import Sequence

from streamlearn.features import Reader
from streamlearn.stream.formats.fields import Fields, Learns
from streamlearn.stream.formats.keys import Keys
from streamlearn.stream.formats.schemas import Schemas
from streamlearn.stream.formats.typed import TypedDecoder

class BinaryDecoder(TypedDecoder):
    def __init__(
        self,
        schemas: Schemas,
        reader: Reader,
        fields: Fields | None = None,
        learners: Sequence[Learns] = (),
        grow_always: bool = False,
    ) -> None: ...
    @property
    def keys(self) -> Keys: ...
