"""Where events come from (sources) and how bytes become events (formats)."""

from streamlearn.stream.source import Partition, Records, Source

__all__ = ["Partition", "Records", "Source"]
