from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamlearn.features import Reader
from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.formats.fields import Fields, Learns

class CustomDecoder(Decoder):
    def __init__(
        self,
        function: Callable[[bytes], Mapping[str, Any] | None],
        reader: Reader,
        fields: Fields | None = None,
        learners: Sequence[Learns] = (),
        grow_always: bool = False,
    ) -> None: ...
