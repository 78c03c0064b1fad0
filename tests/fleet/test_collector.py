"""What the page and Prometheus are told of workers."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from streamlearn.fleet.collector import WorkerCollector
from streamlearn.fleet.rounds import BaseId
from streamlearn.fleet.worker_pool import Worker
from streamlearn.telemetry import Board
from streamlearn.telemetry.views import status

ACTIVE: Any = SimpleNamespace(state="active")


def test_workers_are_shown_while_they_exist() -> None:
    board = Board()
    rounds = SimpleNamespace(base=BaseId(1, 7), refused=Counter(position=2))
    workers = [
        Worker(0, None, partitions=3, accepted=100.0, rate=5000.0, lag=12),
        Worker(1, None),
    ]
    pool: Any = SimpleNamespace(workers=workers, replaced=4, round_bytes=80, rounds=rounds)
    source: Any = SimpleNamespace(merge_seconds=0.25)
    collector = WorkerCollector(board, lambda: pool, source)
    collector.on_tick(ACTIVE)
    shown = status(board, config=False)
    assert shown["workers"] == [
        {"worker": "0", "partitions": 3, "rate": 5000.0, "lag": 12, "round": 100.0},
        {"worker": "1", "partitions": 0, "rate": 0.0, "lag": None, "round": None},
    ]
    assert shown["rounds_refused_total"] == {"position": 2}
    assert (shown["rounds_merged_total"], shown["workers_replaced_total"]) == (7, 4)
    assert (shown["round_merge_seconds"], shown["round_bytes"]) == (0.25, 80)
    workers.pop()
    collector.on_tick(ACTIVE)
    assert [one["worker"] for one in status(board, config=False)["workers"]] == ["0"]


def test_without_workers_nothing_is_shown() -> None:
    assert status(Board(), config=False)["workers"] == []
