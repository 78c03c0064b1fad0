"""Liveness and readiness of the process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.telemetry.board import About


@dataclass
class Health:
    """Liveness and readiness, from the loop's heartbeats.

    >>> health = Health(silent_seconds=30.0, clock=lambda: 100.0)
    >>> health.beat()
    >>> health.alive()
    (True, 'last heartbeat of the loop 0 s ago')
    """

    silent_seconds: float
    clock: Callable[[], float] = time.monotonic
    polled: bool = False  # whether the source has answered the first poll
    heard: float | None = None

    def beat(self) -> None:
        """Record a heartbeat of the loop."""
        self.heard = self.clock()

    def alive(self, state: str = "active") -> tuple[bool, str]:
        """Return whether the loop is running, and the reason."""
        if self.heard is None or state in {"starting", "loading"}:
            return True, "starting"
        silent = self.clock() - self.heard
        if state == "stopped" or silent <= self.silent_seconds:
            return True, f"last heartbeat of the loop {silent:.0f} s ago"
        return False, f"no heartbeat of the loop for {silent:.0f} s"

    def ready(self, about: About, unknown: int) -> tuple[bool, str]:
        """Return whether the daemon learns or could take over immediately, and the reason.

        `unknown` is the number of partitions without a position.
        """
        alive, why = self.alive(about.state)
        if not alive:
            return False, why
        if about.state == "standby":
            return True, "standby for another instance"
        if about.state != "active":
            return False, about.reason or about.state
        if not self.polled:
            return False, "the source has not answered the first poll"
        if unknown:
            has = "partition has" if unknown == 1 else "partitions have"
            return False, f"{unknown} {has} no position yet"
        return True, "learning"
