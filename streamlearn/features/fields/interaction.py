"""Products of fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import Field

JOINT = "^"
MOST = 8  # fields


@dataclass(frozen=True, repr=False)
class Interaction(Field):
    """Products of fields, which the name lists: `"user^ad"`, or `"tenant^*"` with all others.

    The features are the products of every combination of one feature from each field, named by
    joining their names with `^`: `user=ann^ad=7`. A field with a list or a mapping takes part with
    all its features. A missing field gives no product.
    """

    kind: ClassVar[str] = "interaction"


def fields_of(name: str) -> tuple[str, ...]:
    """Return the fields that the name of an interaction lists; ValueError if it is invalid.

    >>> fields_of("user^ad.id")
    ('user', 'ad.id')
    """
    names = tuple(name.split(JOINT))
    if not 2 <= len(names) <= MOST or not all(names):
        raise ValueError(f"an interaction is named by 2 to {MOST} fields, such as 'user^ad'")
    if len(set(names)) < len(names):
        raise ValueError("the interaction names a field twice")
    return names
