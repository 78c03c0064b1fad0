"""A store: named files, each of which is there as a whole or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamlearn.core.files import WriteStep


class StoredFile(NamedTuple):
    """A file in a store."""

    name: str
    bytes: int
    written: float  # seconds since 1970


class Store(ABC):
    """A place for files; `str(store)` is its location."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all files; empty if the place does not exist."""

    @abstractmethod
    def entries(self) -> list[StoredFile]:
        """Return all files."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of a file; FileNotFoundError if there is none."""

    @abstractmethod
    def write(
        self,
        name: str,
        pieces: Iterable[bytes | memoryview],
        *,
        before: Callable[[WriteStep], None] = lambda _: None,
    ) -> int:
        """Write a file durably, and return its bytes; `before` is called with each step."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
