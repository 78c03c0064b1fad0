from collections.abc import Sequence

from streamlearn.features import Reader
from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.formats.fields import Fields, Learns
from streamlearn.stream.formats.keys import Keys
from streamlearn.stream.formats.schemas import Schemas

class BinaryDecoder(Decoder):
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
