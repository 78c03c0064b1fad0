"""Collect the metrics of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.telemetry.catalog import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.daemon.status import Status
    from streamlearn.fleet.round_source import RoundSource
    from streamlearn.fleet.worker_pool import WorkerPool
    from streamlearn.telemetry import Board

WORKER_METRICS = [name for name in METRICS if name.startswith("worker_")]


def collectors(
    observers: Sequence[Observer], pool: Callable[[], WorkerPool], source: RoundSource
) -> list[Observer]:
    """Return the collector for the telemetry among these observers, if there is one."""
    return [
        WorkerCollector(one.board, pool, source)
        for one in observers
        if isinstance(one, TelemetryCollector)
    ]


class WorkerCollector(Observer):
    """Collect what the pool knows of its workers."""

    def __init__(self, board: Board, pool: Callable[[], WorkerPool], source: RoundSource) -> None:
        self.board = board
        self.pool = pool
        self.source = source

    def on_tick(self, status: Status) -> None:
        """Update the board."""
        if status.state != "active":
            return
        pool, board = self.pool(), self.board
        for name in WORKER_METRICS:
            board.keep(name, {(str(one.number),) for one in pool.workers})
        for one in pool.workers:
            label = str(one.number)
            board.set("worker_partitions", one.partitions, label)
            board.set("worker_events_per_second", one.rate, label)
            board.set("worker_lag_events", one.lag, label)
            board.set("worker_round_timestamp_seconds", one.accepted, label)
        board.set("workers_replaced_total", pool.replaced)
        board.set("round_bytes", pool.round_bytes)
        board.set("round_merge_seconds", self.source.merge_seconds)
        if pool.rounds is not None:
            board.set("rounds_merged_total", pool.rounds.base.number)
            for reason, count in pool.rounds.refused.items():
                board.set("rounds_refused_total", count, reason)
