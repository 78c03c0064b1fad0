from collections.abc import Mapping

from streamlearn.features.fields import Field
from streamlearn.features.reader import Reader

class Hashing(Reader):
    @property
    def bits(self) -> int: ...
    def __init__(self, bits: int = 20, fields: Mapping[str, Field | str] | None = None) -> None: ...
