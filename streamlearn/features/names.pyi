from collections.abc import Iterable
from typing import Any

from streamlearn.features import Name
from streamlearn.features.reader import Reader

def list_of(name: Name) -> str | int | list[Any]: ...
def tuple_of(saved: Any) -> Name: ...

class Names(Reader):
    def __init__(
        self, interactions: Iterable[tuple[str | int, ...] | list[str | int]] = ()
    ) -> None: ...
