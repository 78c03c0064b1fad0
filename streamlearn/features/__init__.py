"""Features: the fields of an event become slots and values.

`Names` gives every name its own slot in a growing table; `Hashing` maps names to 2**bits slots by
their hash. Both read events the same way; `Names` documents what an event may contain.

    fields    what the fields of an event are, as the user declares them
    pieces    an event as names and values, and interactions
    transforms    turn the values of declared fields into pieces
    parser    parse and check an event given as Python objects
    reader    turn the pieces into the row for learners
    names, hashing    map a name to a slot
"""

from __future__ import annotations

from typing import Any, Union

from streamlearn.errors import ModelFileError
from streamlearn.features.hashing import Hashing
from streamlearn.features.names import Names
from streamlearn.features.reader import Reader

__all__ = ["Hashing", "Name", "Names", "Reader", "exact_names", "from_state"]

Name = Union[str, int, tuple["Name", ...]]  # noqa: UP007 - recursive, so a string inside


def exact_names(reader: Reader) -> Names:
    """Return an empty table of exact names that reads events as this reader does.

    >>> names = exact_names(Hashing(fields={"user": "category"}))
    >>> names.name_of(names.read_event({"user": 7})[0][0])
    'user=7'
    """
    names = Names(reader.fields)
    names.restore_frozen(reader.frozen())
    return names


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
