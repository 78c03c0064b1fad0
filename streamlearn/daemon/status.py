"""The status of the daemon, as observers see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.stream import Partition


@dataclass(slots=True)
class Status:
    """The status of the daemon between two batches."""

    state: str = "starting"  # standby, loading, active, stopping, stopped
    reason: str = ""
    ended: bool = False  # whether the source has no more records
    exit: int | None = None  # the exit code, once the state is stopped
    epoch: int = 0
    restarts: int = 0
    positions: dict[Partition, int] = field(default_factory=dict)
    lag: dict[Partition, int | None] = field(default_factory=dict)
    lost: Mapping[Partition, int] = field(
        default_factory=dict
    )  # records deleted before they were read
    checkpoint_time: float | None = None  # of the last durable one, seconds since 1970
    checkpoint_failures: int = 0
