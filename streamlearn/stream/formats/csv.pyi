from collections.abc import Mapping, Sequence

from streamlearn.features import Reader
from streamlearn.stream.formats.fields import Fields, Learns
from streamlearn.stream.formats.text_decoder import TextDecoder

SAMPLE: int
DELIMITERS: str
BLANKS: str
FAULTS: dict[int, str]
MISSING: frozenset[str]

class CSVDecoder(TextDecoder):
    def __init__(
        self,
        reader: Reader,
        fields: Fields | None = None,
        learners: Sequence[Learns] = (),
        grow_always: bool = False,
        *,
        delimiter: str = ",",
        columns: Sequence[str] = (),
        text: Sequence[str] | None = None,
    ) -> None: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def types(self) -> dict[str, str]: ...
    def set_columns(self, names: Sequence[str], header: bytes | None) -> None: ...
    def required_columns(self) -> tuple[str, ...]: ...
    def set_types(self, types: Mapping[str, str]) -> None: ...
    def infer(self, records: Sequence[bytes | None]) -> None: ...
    def prepare(self) -> None: ...
    def table(self) -> dict[str, object]: ...

def split_row(record: bytes, delimiter: str) -> list[str]: ...
def number(text: str) -> float | None: ...
