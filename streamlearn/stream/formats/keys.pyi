from streamlearn.features import Reader
from streamlearn.stream.formats.fields import Fields

class Keys:
    def __init__(self, fields: Fields, reader: Reader) -> None: ...
    @property
    def first(self) -> int: ...
