"""What is served, to whom, and the limits."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - dataclasses resolve it
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - likewise

from streamlearn import config
from streamlearn.kafka.sink import KafkaSink  # noqa: TC001 - likewise
from streamlearn.serving.split import Split  # noqa: TC001 - likewise


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The log of served predictions: its settings, and the connection to its topic."""

    settings: config.ServeLogConfig
    connect: Callable[[], KafkaSink]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of a server, as the configuration has them, and what they refer to."""

    path: Path  # of the snapshots
    counts: Path  # directory of the processes' counts
    settings: config.ServeConfig = field(default_factory=config.ServeConfig)
    learner: str | None = None  # that answers if a request names none
    log: LogOptions | None = None
    split: Split | None = None
    head_seconds: float = 10.0
    max_head_bytes: int = 16 << 10
    drain_seconds: float = 1.0
    poll_seconds: float = 0.2

    @property
    def token(self) -> str | None:
        """The token that clients must send."""
        token = self.settings.token
        return None if token is None else token.reveal()

    @property
    def arms(self) -> list[str]:
        """The arms of the A/B test, if there is one."""
        return [] if self.split is None else self.split.arms
