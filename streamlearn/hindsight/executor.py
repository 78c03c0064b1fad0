"""Executors: how a function of every shard is computed, here in this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.hindsight.risk import Vector

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")


class Executor(Protocol[S_co]):
    """Shards, wherever they are.

    Calls must be idempotent: an executor may repeat one on a shard that it had to rebuild.
    """

    def each(
        self, method: Callable[Concatenate[S_co, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> list[R]:
        """Call a method, given as that of a base class, on every shard, in their order."""

    def share(self, w: Vector) -> Callable[[], Vector]:
        """Return what gives w to every shard."""


@dataclass(frozen=True)
class Held:
    """A w in this process."""

    w: Vector

    def __call__(self) -> Vector:
        """Return w."""
        return self.w


class Threads(Generic[S]):
    """Shards in this process, each with a thread of its own if there are several."""

    def __init__(self, shards: Sequence[S]) -> None:
        self.shards = list(shards)
        self._threads = None
        if len(self.shards) > 1:
            self._threads = ThreadPoolExecutor(len(self.shards), thread_name_prefix="shard")

    def each(
        self, method: Callable[Concatenate[S, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> list[R]:
        """Call a method on every shard, in their order."""

        def call(shard: S) -> R:
            return bound(method, shard)(*args, **kwargs)

        return self._run(call, self.shards)

    def map(self, method: Callable[[S, T], R], parts: Sequence[T]) -> list[R]:
        """Call a method on every shard, with its own part."""

        def call(shard: S, part: T) -> R:
            return bound(method, shard)(part)

        return self._run(call, self.shards, parts)

    def _run(self, call: Callable[..., R], *given: Sequence[object]) -> list[R]:
        if self._threads is None:
            return list(map(call, *given))
        return list(self._threads.map(call, *given))

    def share(self, w: Vector) -> Held:
        """Return what gives w to every shard."""
        return Held(w)


def bound(method: Callable[Concatenate[S, P], R], shard: S) -> Callable[P, R]:
    """Return the shard's own method of this name."""
    found: Callable[P, R] = getattr(shard, method.__name__)
    return found
