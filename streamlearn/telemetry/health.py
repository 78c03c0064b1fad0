"""Whether the process is alive, and whether it does what it is there for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.telemetry.board import About


@dataclass
class Health:
    """What the loop does, as it was last heard of.

    >>> health = Health(silent_seconds=30.0, clock=lambda: 100.0)
    >>> health.beat()
    >>> health.alive()
    (True, 'the loop was heard 0 s ago')
    """

    silent_seconds: float
    clock: Callable[[], float] = time.monotonic
    polled: bool = False  # whether the source has given its first answer
    heard: float | None = None

    def beat(self) -> None:
        """The loop is not silent."""
        self.heard = self.clock()

    def alive(self, state: str = "active") -> tuple[bool, str]:
        """Whether the loop goes round, and why one thinks so."""
        if self.heard is None or state in {"starting", "loading"}:
            return True, "starting"
        silent = self.clock() - self.heard
        if state == "stopped" or silent <= self.silent_seconds:
            return True, f"the loop was heard {silent:.0f} s ago"
        return False, f"the loop is silent for {silent:.0f} s"

    def ready(self, about: About, unknown: int) -> tuple[bool, str]:
        """Whether it learns, or would at once; `unknown`: partitions without a position."""
        alive, why = self.alive(about.state)
        if not alive:
            return False, why
        if about.state == "standby":
            return True, "another instance learns; this one takes over when it is gone"
        if about.state != "active":
            return False, about.reason or about.state
        if not self.polled:
            return False, "the source has not answered the first poll"
        if unknown:
            return False, f"{unknown} partitions have no position yet"
        return True, "learning"
