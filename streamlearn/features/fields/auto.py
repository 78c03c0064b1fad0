"""Fields as their values say, and fields that are not used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import Field


@dataclass(frozen=True, repr=False)
class Auto(Field):
    """What an undeclared field is: a number is a value, text a category, by each value's type."""

    kind: ClassVar[str] = "auto"


@dataclass(frozen=True, repr=False)
class Ignore(Field):
    """A field that is not a feature, with the fields in it, unless these are declared."""

    kind: ClassVar[str] = "ignore"
