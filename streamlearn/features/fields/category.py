"""Categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamlearn.features.fields.field import CheckedField


@dataclass(frozen=True, repr=False)
class Category(CheckedField):
    """A category: the feature `field=value` with value 1, for text, integers and bools alike.

    The value is text as it is, a number in its shortest form (1 and 1.0 are `1`), a bool as `true`
    or `false` in any case.
    """

    kind: ClassVar[str] = "category"
