"""Conditional writes to objects, which decide between instances as hard links do in a directory.

The answer to a write may be lost, and the write repeated. Its data must therefore be unique: if the
object holds this very data, the write was successful.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions

from streamlearn.errors import StoreError
from streamlearn.storage.bucket import connect, reported

if TYPE_CHECKING:
    from typing import TypeAlias

    from obstore import ObjectMeta, PutResult, UpdateVersion

    Version: TypeAlias = UpdateVersion

PROBE = "conditional-writes"  # the object with which they are tried


class ConditionalObjects:
    """Small objects below a prefix; what has no answer within `seconds` is not tried again."""

    def __init__(self, url: str, seconds: float) -> None:
        self.url = url
        limit = timedelta(seconds=seconds)
        self._store = connect(url, progress=limit, request=limit, retries=limit)

    def read(self, name: str) -> tuple[bytes, Version]:
        """Return the content of an object and its version; FileNotFoundError if there is none."""
        with reported(self.url, "read", name):
            found = obstore.get(self._store, name)
            return found.bytes().to_bytes(), version_of(found.meta)

    def create(self, name: str, data: bytes) -> Version | None:
        """Write an object that must not exist yet; return its version, or None if it exists."""
        return self._write(name, data, None)

    def replace(self, name: str, data: bytes, version: Version) -> Version | None:
        """Replace an object of this version; return its new one, or None if it has changed."""
        return self._write(name, data, version)

    def _write(self, name: str, data: bytes, version: Version | None) -> Version | None:
        with reported(self.url, "write", name):
            try:
                return version_of(obstore.put(self._store, name, data, mode=version or "create"))
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                pass
        try:
            found, now = self.read(name)
        except FileNotFoundError:
            return None
        return now if found == data else None

    def check(self) -> None:
        """Raise `StoreError` if a write whose condition is not met succeeds."""
        self.create(PROBE, probe())
        refused = self.create(PROBE, probe()) is None
        if refused:
            _, version = self.read(PROBE)
            self.replace(PROBE, probe(), version)  # refused if another instance is trying, too
            refused = self.replace(PROBE, probe(), version) is None
        if not refused:
            raise StoreError(
                f"{self.url}: the store ignores If-None-Match or If-Match, so two daemons could "
                "own the models; use a store that supports conditional writes"
            )


def version_of(found: ObjectMeta | PutResult) -> Version:
    """Return the version of an object, without what this kind of store does not have."""
    version: Version = {}
    if found["e_tag"] is not None:
        version["e_tag"] = found["e_tag"]
    if found["version"] is not None:
        version["version"] = found["version"]
    return version


def probe() -> bytes:
    """Return unique data."""
    return f"written at each start: {secrets.token_hex(8)}\n".encode()
