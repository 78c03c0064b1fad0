"""A directory of a file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.core.files import PART, make_directory, write_atomic
from streamlearn.storage.store import Store, StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from streamlearn.core.files import WriteStep


class Directory(Store):
    """Files of a directory; a name may contain one folder, as in `archive/old.model`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        """Return the names of all files; empty if the directory does not exist."""
        try:
            return [entry.name for entry in self.path.iterdir()]
        except FileNotFoundError:
            return []

    def entries(self) -> list[StoredFile]:
        """Return all files."""
        found = []
        for name in self.names():
            try:
                status = (self.path / name).stat()
            except FileNotFoundError:
                continue  # deleted since
            found.append(StoredFile(name, status.st_size, status.st_mtime))
        return found

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.path / name).read_bytes()

    def write(
        self,
        name: str,
        pieces: Iterable[bytes | memoryview],
        *,
        before: Callable[[WriteStep], None] = lambda _: None,
    ) -> int:
        """Write a file under a temporary name, sync it, and rename it."""
        path = self.path / name
        if path.parent != self.path:  # the directory itself may be gone, and is not made again
            make_directory(path.parent)
        return write_atomic(path, pieces, temporary=path.with_name(path.name + PART), before=before)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        (self.path / name).unlink(missing_ok=True)
