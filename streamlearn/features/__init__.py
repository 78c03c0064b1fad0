"""Features: the fields of an event become slots and values.

`Names` gives every name a slot of its own in a table that grows, `Hashing` a slot among 2**bits by
its hash. What an event may hold is told by Names; both read events the same way.

    pieces    an event taken apart and checked: names and values
    reader    pieces to the row that learners see
    names, hashing    how a name becomes a slot
"""

from __future__ import annotations

from typing import Any, Union

from streamlearn.errors import ModelFileError
from streamlearn.features.hashing import Hashing
from streamlearn.features.names import Names
from streamlearn.features.reader import Reader

__all__ = ["Hashing", "Name", "Names", "Reader", "from_state"]

Name = Union[str, int, tuple["Name", ...]]  # noqa: UP007 - recursive, so a string inside


def from_state(state: Any) -> Names | Hashing:
    """The reader that a state describes.

    >>> reader = Names()
    >>> row = reader.read_event({"user": "ann"})
    >>> from_state(reader.state()).names()
    ['user=ann']
    """
    kinds: dict[Any, type[Names | Hashing]] = {"Names": Names, "Hashing": Hashing}
    kind = kinds.get(state.get("kind")) if isinstance(state, dict) else None
    if kind is None:
        raise ModelFileError("not the state of features: no kind that is known")
    try:
        reader = kind(**kind.params_of(state))
    except ValueError as error:
        raise ModelFileError(f"not the state of features: {error}") from None
    reader.restore(state)
    return reader
