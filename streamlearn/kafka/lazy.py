"""Parts of messages that are computed on access, as keys, headers and times are seldom used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Sequence[T], Generic[T]):
    """One part of each message.

    >>> lengths = Lazy(["a", "bc", "def"], len)
    >>> list(lengths), lengths[1], list(lengths[1:])
    ([1, 2, 3], 2, [2, 3])
    """

    __slots__ = ("_messages", "_part")

    def __init__(self, messages: Sequence[object], part: Callable[..., T]) -> None:
        self._messages = messages
        self._part = part

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[T]:
        return map(self._part, self._messages)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Lazy[T]: ...
    def __getitem__(self, index: int | slice) -> T | Lazy[T]:
        if isinstance(index, slice):
            return Lazy(self._messages[index], self._part)
        return self._part(self._messages[index])
