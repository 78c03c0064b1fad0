"""What is served, to whom, and the limits."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - dataclasses resolve it
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - likewise
from typing import Literal

from streamlearn.kafka.sink import KafkaSink  # noqa: TC001 - likewise
from streamlearn.serving.split import Split  # noqa: TC001 - likewise


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The settings of the log of served predictions."""

    connect: Callable[[], KafkaSink]
    ack: Literal["before", "after"] = "before"
    on_full: Literal["refuse", "serve"] = "refuse"
    buffer_bytes: int = 32 << 20
    wait_seconds: float = 1.0


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
    log: LogOptions | None = None
    split: Split | None = None

    @property
    def arms(self) -> list[str]:
        """The arms of the A/B test, if there is one."""
        return [] if self.split is None else self.split.arms
