"""Telemetry: metrics for Prometheus and a live page.

    catalog    every metric
    board      the current values; written by the loop, read by the HTTP thread
    quality    recent scores, for ROC area and calibration
    history    curves over the lifetime in bounded memory; recent: over the last minutes
    health     liveness and readiness
    metrics    the board as Prometheus metrics
    views      the board as JSON for the page
    routes     paths and access
    server     the HTTP server, on its own thread
    page       the live page

This package does not depend on the daemon, whose `collectors` write to the board.
"""

from streamlearn.telemetry.board import Board, ShownInvalidRecord, Weight
from streamlearn.telemetry.health import Health
from streamlearn.telemetry.history import History
from streamlearn.telemetry.recent import LastMinutes
from streamlearn.telemetry.routes import Access, Routes
from streamlearn.telemetry.server import TelemetryServer

__all__ = [
    "Access",
    "Board",
    "Health",
    "History",
    "LastMinutes",
    "Routes",
    "ShownInvalidRecord",
    "TelemetryServer",
    "Weight",
]
