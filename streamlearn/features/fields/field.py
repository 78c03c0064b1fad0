"""The base class of what a field can be."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, repr=False)
class Field:
    """What a field is.

    `str()` of it is its text in the grammar of configurations, which `parse` reads back.
    """

    kind: ClassVar[str]
    first: ClassVar[str | None] = None  # the parameter that needs no name

    @classmethod
    def kinds(cls) -> dict[str, type[Field]]:
        """Return all kinds by their names in the grammar."""
        found: dict[str, type[Field]] = {}
        for sub in cls.__subclasses__():
            found |= {sub.kind: sub} if "kind" in vars(sub) else {}
            found |= sub.kinds()
        return found

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that are not defaults, by name, those of all kinds last."""
        ordered = sorted(fields(self), key=lambda one: one.name == "invalid")
        found = {one.name: (getattr(self, one.name), one.default) for one in ordered}
        return {name: value for name, (value, default) in found.items() if value != default}

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self.given.items()]
        return f"{type(self).__name__}({', '.join(given)})"

    def __str__(self) -> str:
        given = [self._argument(name, value) for name, value in self.given.items()]
        return f"{self.kind}({', '.join(given)})" if given else self.kind

    def _argument(self, name: str, value: Any) -> str:
        """Return a parameter as the grammar writes it."""
        if value is True:
            return name
        if isinstance(value, tuple) and name != self.first:
            return f"{name}({', '.join(f'{one:.17g}' for one in value)})"
        if isinstance(value, tuple):
            return ", ".join(map(str, value))
        if name == self.first:
            return str(value)
        return f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}"


@dataclass(frozen=True, repr=False)
class CheckedField(Field):
    """A field with values that may be invalid.

    `invalid="refuse"`: such a value makes the record invalid; `"missing"`: it is ignored. Kinds may
    allow more.
    """

    allowed: ClassVar[tuple[str, ...]] = ("refuse", "missing")
    invalid: str = "refuse"

    def __post_init__(self) -> None:
        if self.invalid not in self.allowed:
            names = " or ".join(map(repr, self.allowed))
            raise ValueError(f"{self.kind}: invalid={self.invalid!r}: use {names}")


def whole(kind: str, name: str, value: Any, least: int, most: int) -> None:
    """Raise ValueError unless the parameter is an integer within the bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{kind}: {name}={value!r}: use an integer from {least} to {most}")


def real(kind: str, name: str, value: Any) -> float:
    """Return the parameter as a float; ValueError if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"{kind}: {name}: {value!r} is not a number")
    return float(value)
