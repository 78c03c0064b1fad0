"""The board as Prometheus metrics, collected when scraped, at no cost while learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from streamlearn.telemetry.catalog import EDGES, METRICS, PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.telemetry.board import Board
    from streamlearn.telemetry.catalog import Metric as Entry


class BoardCollector(Collector):
    """A Prometheus collector that reads the board."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def collect(self) -> Iterator[Metric]:
        """Generate all metrics that have a value."""
        for entry in METRICS.values():
            family = self.histogram(entry) if entry.kind == "histogram" else self.plain(entry)
            if family.samples:
                yield family

    def plain(self, entry: Entry) -> Metric:
        """Build a counter or a gauge; an `_info` is a gauge of 1."""
        kind = CounterMetricFamily if entry.kind == "counter" else GaugeMetricFamily
        family = kind(PREFIX + entry.name, entry.help, labels=entry.labels)
        for labels, value in self.board.values(entry.name).items():
            family.add_metric(labels, value)
        return family

    def histogram(self, entry: Entry) -> Metric:
        """Build a histogram: batch times or label delays."""
        family = HistogramMetricFamily(PREFIX + entry.name, entry.help, labels=entry.labels)
        if entry.name == "batch_seconds":
            found = self.board.stages()
        else:
            delays = self.board.delays
            found = {} if delays is None else {(): delays}
        edges = [*(str(edge) for edge in EDGES[entry.name]), "+Inf"]
        for labels, (counts, total) in found.items():
            sums = [sum(counts[: i + 1]) for i in range(len(counts))]
            family.add_metric(labels, list(zip(edges, sums, strict=True)), total)
        return family


class Exposition:
    """The Prometheus exposition, from a separate registry."""

    def __init__(self, collector: Collector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        ProcessCollector(registry=self.registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition and its content type, in the requested format."""
        encode, kind = choose_encoder(accept)
        return encode(self.registry), kind
