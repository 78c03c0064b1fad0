"""What is served, to whom, and the limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - dataclasses resolve it


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of a server; see [serve] in the configuration reference."""

    path: Path  # of the snapshots
    counts: Path  # directory of the processes' counts
    learner: str | None = None
    learners: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    max_in_flight: int = 256
    max_events: int = 10_000
    max_body_bytes: int = 16 << 20
    body_seconds: float = 10.0
    head_seconds: float = 10.0
    max_head_bytes: int = 16 << 10
    drain_seconds: float = 1.0
    shutdown_seconds: float = 10.0
    poll_seconds: float = 0.2
