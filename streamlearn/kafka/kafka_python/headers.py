"""Headers to send: null values, and names that are not UTF-8, which kafka-python takes by detours.

`KafkaProducer.send` asks for text and bytes, and encodes all names as UTF-8. But a name encodes
itself, and a serializer is given the list of headers, as in Java's client, to change it.
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
        """Return those bytes."""
        return str.encode(self, errors="surrogateescape")


class Headers(list[Any]):
    """Headers of which the values at some places are null."""

    def __init__(self, headers: Iterable[Header]) -> None:
        given = [(Name(name), item) for name, item in headers]
        super().__init__((name, item or b"") for name, item in given)
        self.nulls = [place for place, (_, item) in enumerate(given) if item is None]

    def __bool__(self) -> bool:
        """Return False: kafka-python adds up the lengths of the values of a list that is true."""
        return False


class Nulls(Serializer):
    """Leaves every value as it is, and puts null values into `Headers`."""

    def serialize(self, topic: str, headers: list[Any], data: Any) -> Any:  # noqa: ARG002
        """Return the value."""
        if type(headers) is Headers:
            for place in headers.nulls:
                headers[place] = headers[place][0], None
        return data
