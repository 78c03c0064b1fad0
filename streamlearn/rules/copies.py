"""Where copies of a rule's state are put: in fresh memory, or in memory that is used again.

The system clears each page of fresh memory when it is first touched, which takes several times as
long as the copy itself. What copies large states again and again keeps the memory of one copy for
the next.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from contextvars import Token

    Array = np.ndarray[Any, np.dtype[np.float64]]

PAGE = 512  # numbers
SLACK = 1.25  # of what the last copy needed: a state may grow


class Copies:
    """Memory for one copy at a time: the next `with` overwrites what this one was given.

    >>> copies = Copies()
    >>> with copies:
    ...     first = space(3)
    >>> with copies:
    ...     second = space(3)
    >>> copies.make_room()
    >>> with copies:
    ...     third = space(3)
    >>> with copies:
    ...     fourth = space(3)
    >>> np.shares_memory(first, second), np.shares_memory(third, fourth)
    (False, True)
    """

    def __init__(self) -> None:
        self._block: Array = np.empty(0)
        self._given = 0
        self._needed = 0

    def __enter__(self) -> Self:
        self._given = self._needed = 0
        self._token: Token[Copies | None] = _copies.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _copies.reset(self._token)

    def take(self, n: int) -> Array:
        """Room for so many numbers, fresh if there is none left."""
        self._needed += n
        start, stop = self._given, self._given + n
        if stop > len(self._block):
            return np.empty(n)
        self._given = stop
        return self._block[start:stop]

    def make_room(self) -> None:
        """Get ready for another copy like the last, a little larger; best in the background."""
        if self._needed > len(self._block):
            block = np.empty(int(SLACK * self._needed))
            block[::PAGE] = 0.0
            self._block = block


_copies: ContextVar[Copies | None] = ContextVar("copies", default=None)


def space(n: int) -> Array:
    """Room for so many numbers, for a copy."""
    copies = _copies.get()
    return np.empty(n) if copies is None else copies.take(n)
