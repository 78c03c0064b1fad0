"""Reusable memory for copies of a rule's state.

The operating system clears each page of new memory when it is first touched, which takes several
times as long as the copy itself. Code that copies large states repeatedly reuses the same memory.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from contextvars import Token

    from streamlearn.core.arrays import Array

PAGE = 512  # numbers
SLACK = 1.25  # times the size of the last copy, because a state may grow


class CopyBuffer:
    """Memory for one copy at a time: each `with` block overwrites the copy of the one before.

    >>> copies = CopyBuffer()
    >>> with copies:
    ...     first = empty(3)
    >>> with copies:
    ...     second = empty(3)
    >>> copies.reserve()
    >>> with copies:
    ...     third = empty(3)
    >>> with copies:
    ...     fourth = empty(3)
    >>> np.shares_memory(first, second), np.shares_memory(third, fourth)
    (False, True)
    """

    def __init__(self) -> None:
        self._block: Array = np.empty(0)
        self._given = 0
        self._needed = 0

    def __enter__(self) -> Self:
        self._given = self._needed = 0
        self._token: Token[CopyBuffer | None] = _copies.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _copies.reset(self._token)

    def allocate(self, n: int) -> Array:
        """Return an uninitialized array of n numbers, in new memory if the block is full."""
        self._needed += n
        start, stop = self._given, self._given + n
        if stop > len(self._block):
            return np.empty(n)
        self._given = stop
        return self._block[start:stop]

    def reserve(self) -> None:
        """Enlarge the block for a copy like the last one, plus slack; best in the background."""
        if self._needed > len(self._block):
            block = np.empty(int(SLACK * self._needed))
            block[::PAGE] = 0.0
            self._block = block


_copies: ContextVar[CopyBuffer | None] = ContextVar("copies", default=None)


def empty(n: int) -> Array:
    """Return an uninitialized array of n numbers, from the current copy buffer if there is one."""
    copies = _copies.get()
    return np.empty(n) if copies is None else copies.allocate(n)
