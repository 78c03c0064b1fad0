"""Several values in one field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import CheckedField


@dataclass(frozen=True, repr=False)
class Collection(CheckedField):
    """A field with several values; text is split at the `separator`."""

    separator: str = " "

    def __post_init__(self) -> None:
        super().__post_init__()
        separator: object = self.separator
        if not isinstance(separator, str) or len(separator) != 1 or not separator.isascii():
            raise ValueError(f"{self.kind}: separator={self.separator!r}: use one ASCII character")


@dataclass(frozen=True, repr=False)
class List(Collection):
    """A set of categories: `field=value` with value 1 for each distinct value.

    The values are those of a list, or of text, between the separators. A single number or bool is a
    list of one.
    """

    kind: ClassVar[str] = "list"


@dataclass(frozen=True, repr=False)
class Map(Collection):
    """A weighted set: `field.key` with the key's number.

    A mapping may have what an event may: numbers, text, lists and mappings. In text, the separator
    is between items such as `sports:0.7`; an item without a number weighs 1.
    """

    kind: ClassVar[str] = "map"
