from collections.abc import Sequence

from streamlearn.features import Reader
from streamlearn.stream.formats.fields import Fields, Learns
from streamlearn.stream.formats.json import JSONDecoder
from streamlearn.stream.formats.schemas import Schemas

class JSONSchemaDecoder(JSONDecoder):
    def __init__(
        self,
        schemas: Schemas,
        reader: Reader,
        fields: Fields | None = None,
        learners: Sequence[Learns] = (),
        grow_always: bool = False,
    ) -> None: ...
