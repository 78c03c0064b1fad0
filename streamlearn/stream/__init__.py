"""Where events come from (sources) and how bytes become events (formats)."""

from streamlearn.engine.events import Events
from streamlearn.stream.clicks import Clicks
from streamlearn.stream.decoder import Decoder
from streamlearn.stream.fields import Fields
from streamlearn.stream.json import JSONDecoder
from streamlearn.stream.source import Partition, Records, Source
from streamlearn.stream.synthetic import Synthetic

__all__ = [
    "Clicks",
    "Decoder",
    "Events",
    "Fields",
    "JSONDecoder",
    "Partition",
    "Records",
    "Source",
    "Synthetic",
]
