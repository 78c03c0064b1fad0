"""Features: the fields of an event become slots and values.

`Names` gives every name its own slot in a growing table; `Hashing` maps names to 2**bits slots by
their hash. Both read events the same way; `Names` documents what an event may contain.

    pieces    parse and check an event: names and values
    reader    turn the pieces into the row for learners
    names, hashing    map a name to a slot
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
    """Return the reader of a saved state.

    >>> reader = Names()
    >>> row = reader.read_event({"user": "ann"})
    >>> from_state(reader.state()).names()
    ['user=ann']
    """
    kinds: dict[Any, type[Names | Hashing]] = {"Names": Names, "Hashing": Hashing}
    kind = kinds.get(state.get("kind")) if isinstance(state, dict) else None
    if kind is None:
        raise ModelFileError("the saved features are damaged: unknown kind")
    try:
        reader = kind(**kind.params_of(state))
    except ValueError as error:
        raise ModelFileError(f"the saved features are damaged: {error}") from None
    reader.restore(state)
    return reader
