from collections.abc import Iterable
from typing import Any

from streamlearn.features import Name
from streamlearn.features.reader import Reader

def list_of(name: Name) -> str | int | list[Any]: ...
def tuple_of(saved: Any) -> Name: ...

class Names(Reader):
    @property
    def max_names(self) -> int | None: ...
    @property
    def beyond(self) -> str: ...
    @property
    def turned_away(self) -> int: ...
    def __init__(
        self,
        interactions: Iterable[tuple[str | int, ...] | list[str | int]] = (),
        max_names: int | None = None,
        beyond: str = "hash",
    ) -> None: ...
