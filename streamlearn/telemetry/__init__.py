"""Metrics for Prometheus and a live page: what a daemon tells of itself while it runs.

    catalog  every metric, by name
    board      the numbers of now; the loop writes, readers read
    quality    how well scores separate and are calibrated, of late
    history    curves of the whole life in bounded memory; recent: of the last minutes
    health     alive, and ready
    metrics    the board as Prometheus sees it
    views      the board as the page sees it
    routes     what is served where, and to whom
    server     HTTP, on a thread of its own
    page       the live page

Nothing here knows the daemon: its `collectors` tell the board what happens.
"""

from streamlearn.telemetry.board import Bad, Board, Weight
from streamlearn.telemetry.health import Health
from streamlearn.telemetry.history import History
from streamlearn.telemetry.recent import LastMinutes
from streamlearn.telemetry.routes import Access, Routes
from streamlearn.telemetry.server import Server

__all__ = [
    "Access",
    "Bad",
    "Board",
    "Health",
    "History",
    "LastMinutes",
    "Routes",
    "Server",
    "Weight",
]
