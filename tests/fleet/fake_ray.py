"""Ray without processes: calls run when they are waited for, and actors die, freeze and thaw."""

from __future__ import annotations

import io
import json
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from streamlearn.fleet import actor_pool

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    import pytest


class RayError(Exception):
    """As Ray has it."""


class FakeCall:
    """A call whose answer may come late."""

    def __init__(self, actor: FakeActor, method: str, arguments: tuple[Any, ...]) -> None:
        self.actor, self.method, self.arguments = actor, method, arguments
        self.answer: Any = None
        self.done = False


class FakeActor:
    """An actor: its calls are answered in order."""

    def __init__(self, ray: FakeRay) -> None:
        self.ray = ray
        self.kept = ray.make() if len(ray.actors) < ray.capacity else None
        self.calls: list[FakeCall] = []
        self.dead = False
        self.frozen_until = 0.0

    def __getattr__(self, method: str) -> Any:
        def remote(*arguments: Any) -> FakeCall:
            call = FakeCall(self, method, arguments)
            self.calls.append(call)
            return call

        return SimpleNamespace(remote=remote)

    def work(self) -> None:
        """Answer some calls."""
        if self.kept is None or self.frozen_until > self.ray.now:
            return
        while self.calls and (self.dead or self.ray.draw.random() < 0.7):
            call = self.calls.pop(0)
            call.done = True
            if not self.dead:
                arguments = map(self.ray.sent, call.arguments)
                call.answer = self.ray.sent(getattr(self.kept, call.method)(*arguments))
            else:
                call.answer = RayError("the actor died")


class FakeRay:
    """The part of Ray that is used."""

    def __init__(
        self, draw: random.Random, make: Callable[[], Any], *, faults: bool = True
    ) -> None:
        self.draw, self.make, self.faults = draw, make, faults
        self.now = 0.0
        self.capacity = 1 << 30
        self.actors: list[FakeActor] = []
        self.deaths = self.freezes = 0
        self.exceptions = SimpleNamespace(RayError=RayError)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let pools of actors use it, and its clock; replacements are not limited."""
        monkeypatch.setattr(actor_pool, "connected", self.connected)
        monkeypatch.setattr(actor_pool, "answers", lambda _: True)
        monkeypatch.setattr(actor_pool, "REPLACED", 1000)
        monkeypatch.setattr(time, "monotonic", self.clock)
        monkeypatch.setattr(time, "sleep", self.sleep)

    @contextmanager
    def connected(self, *_: Any, **__: Any) -> Iterator[FakeRay]:
        yield self

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address="127.0.0.1:1")

    def disturb(self) -> None:
        """Kill or freeze an actor, sometimes."""
        if self.faults and self.draw.random() < 0.1:
            actor = self.draw.choice(self.actors)
            if self.draw.random() < 0.5:
                actor.dead, self.deaths = True, self.deaths + 1
            else:
                actor.frozen_until = self.now + self.draw.random() * 30.0
                self.freezes += 1

    def put(self, value: Any) -> Any:
        return value

    def sent(self, value: Any) -> Any:
        """Return a value as another process receives it."""
        return value

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        def start() -> FakeActor:
            self.actors.append(FakeActor(self))
            return self.actors[-1]

        return lambda _: SimpleNamespace(remote=start)

    def wait(
        self, calls: list[FakeCall], num_returns: int = 1, timeout: float = 0.0, **_: Any
    ) -> tuple[list[FakeCall], list[FakeCall]]:
        for actor in self.actors:
            actor.work()
        done = [call for call in calls if call.done][:num_returns]
        self.now += 0.01 if done else max(timeout, 0.01)
        return done, [call for call in calls if call not in done]

    def get(self, call: FakeCall) -> Any:
        if isinstance(call.answer, RayError):
            raise call.answer
        return call.answer

    def kill(self, actor: FakeActor) -> None:
        """A frozen process dies only when it continues, and may answer before."""
        if actor.frozen_until <= self.now:
            actor.dead = True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.capacity}


def logged(pool: actor_pool.ActorPool) -> list[dict[str, Any]]:
    """Return the lines in the log of a pool."""
    assert isinstance(pool.log.stream, io.StringIO)
    return [json.loads(line) for line in pool.log.stream.getvalue().splitlines()]


def logged_replacements(pool: actor_pool.ActorPool) -> int:
    """Return how many replacements of actors the log of a pool has, each with its reason."""
    found = [line for line in logged(pool) if line["event"] == pool.noun + " replaced"]
    assert all(line["level"] == "warning" and line["reason"] for line in found)
    assert all(0 <= line[pool.noun] < pool.count for line in found)
    return len(found)
