"""Shards of a batch problem on the workers of a Ray cluster ([Teo07] Figure 2).

An actor holds each shard's rows. Every call is idempotent, so Ray may repeat it: an actor that died
is started again, loads its shard again, and answers as before, to the last bit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from streamlearn.errors import FleetError
from streamlearn.hindsight.executor import bound
from streamlearn.hindsight.sharded.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from streamlearn.hindsight.methods import AnyLoss
    from streamlearn.hindsight.risk import Vector
    from streamlearn.hindsight.scored_shard import ScoredShard
    from streamlearn.hindsight.sharded import ShardSource
    from streamlearn.hindsight.sharded.agreement import Agreement, Agreements, Survey

P = ParamSpec("P")
R = TypeVar("R")


class ShardWorker:
    """What an actor runs. Ray gives it no state back, so a call brings what it may have lost."""

    def __init__(self, source: Reference, loss: AnyLoss) -> None:
        self.shard = Shard(source(), loss)
        self.bound: ScoredShard | None = None

    def survey(self) -> Survey:
        """Load the rows, and return what is in them."""
        return self.shard.survey()

    def process_id(self) -> int:
        """Return the id of the actor's process."""
        return os.getpid()

    def call(self, agreement: Reference, method: Callable[..., R], *args: Any) -> R:
        """Call a method of the shard that takes part as agreed."""
        if self.bound is None:
            self.bound = self.shard.bind(agreement())
        return bound(method, self.bound)(*args)


@dataclass(frozen=True)
class Reference:
    """An object in Ray's store, which is fetched only where it is needed."""

    ref: Any

    def __call__(self) -> Any:
        """Return the object."""
        import ray  # noqa: PLC0415 - optional

        return ray.get(self.ref)


class RayHost:
    """Shards on a Ray cluster, each in an actor of its own; a context manager that ends them.

    ray: the module, connected: see `fleet.cluster.connected`.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._actors: list[Any] = []
        self._sources: list[Reference] = []  # kept for actors that are started again

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def process_ids(self) -> list[int]:
        """Return the ids of the shards' processes, on their machines."""
        return gathered(self._ray, [actor.process_id.remote() for actor in self._actors])

    def load(self, sources: Sequence[ShardSource], loss: AnyLoss) -> list[Survey]:
        """Load the shards, and return what is in each."""
        cpus = float(self._ray.cluster_resources().get("CPU", 1.0))
        kind = self._ray.remote(ShardWorker).options(
            # more shards than cores share them
            num_cpus=min(1.0, int(1e4 * cpus / len(sources)) / 1e4),
            scheduling_strategy="SPREAD",
            max_restarts=-1,
            max_task_retries=-1,
        )
        self._sources = [Reference(self._ray.put(source)) for source in sources]
        self._actors = [kind.remote(source, loss) for source in self._sources]
        return gathered(self._ray, [actor.survey.remote() for actor in self._actors])

    def bind(self, agreements: Agreements) -> RayShards:
        """Return the shards that have rows, ready to compute."""
        used = [self._actors[i] for i in agreements.used]
        for actor in set(self._actors) - set(used):
            self._ray.kill(actor)
        self._actors = used
        return RayShards(self._ray, used, agreements.each)


class RayShards:
    """An executor whose shards are actors."""

    def __init__(self, ray: Any, actors: Sequence[Any], agreements: Sequence[Agreement]) -> None:
        self._ray = ray
        self._actors = [
            (actor, Reference(ray.put(agreement)))
            for actor, agreement in zip(actors, agreements, strict=True)
        ]

    def each(
        self, method: Callable[Concatenate[ScoredShard, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> list[R]:
        """Call a method on every shard, in their order."""
        # an array is sent once to each machine
        given = [self._ray.put(a) if isinstance(a, np.ndarray) else a for a in args]
        calls = [
            actor.call.remote(agreement, method, *given, **kwargs)
            for actor, agreement in self._actors
        ]
        return gathered(self._ray, calls)

    def share(self, w: Vector) -> Reference:
        """Return what gives w to every shard."""
        return Reference(self._ray.put(w))


def gathered(ray: Any, calls: list[Any]) -> list[Any]:
    """Return the results of calls, or raise the first error as if it came from here."""
    try:
        found: list[Any] = ray.get(calls)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except ray.exceptions.RayActorError as error:
        raise FleetError(f"a shard's worker was lost: {error}") from error
    return found
