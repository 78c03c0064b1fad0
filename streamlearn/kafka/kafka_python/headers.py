"""Workarounds to send headers with null values, or with names that are not UTF-8.

`KafkaProducer.send` expects strings and bytes, and encodes all names as UTF-8. But it calls the
name's own `encode`, and passes the list of headers to a serializer, which may change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.serializer.abstract import Serializer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.stream.records import Header


class Name(str):
    """A name that encodes itself to the bytes it came from."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "") -> bytes:  # noqa: ARG002
        """Return the original bytes."""
        return str.encode(self, errors="surrogateescape")


class Headers(list[Any]):
    """Headers, some of which have null values."""

    def __init__(self, headers: Iterable[Header]) -> None:
        given = [(Name(name), item) for name, item in headers]
        super().__init__((name, item or b"") for name, item in given)
        self.nulls = [place for place, (_, item) in enumerate(given) if item is None]

    def __bool__(self) -> bool:
        """Return False, so that kafka-python does not add up the lengths of the values."""
        return False


class Nulls(Serializer):
    """Keep every value, and set null values in `Headers`."""

    def serialize(self, topic: str, headers: list[Any], data: Any) -> Any:  # noqa: ARG002
        """Return the value unchanged."""
        if type(headers) is Headers:
            for place in headers.nulls:
                headers[place] = headers[place][0], None
        return data
