"""Sources of records, formats that decode them into events, and sinks."""

from streamlearn.engine.events import Events
from streamlearn.stream.formats.csv import CSVDecoder
from streamlearn.stream.formats.custom import CustomDecoder
from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.formats.decoder_factory import decoder_of
from streamlearn.stream.formats.fields import Fields
from streamlearn.stream.formats.json import JSONDecoder
from streamlearn.stream.formats.svmlight import SVMLightDecoder
from streamlearn.stream.formats.vw import VWDecoder
from streamlearn.stream.records import Partition, Records
from streamlearn.stream.sources.clicks import Clicks
from streamlearn.stream.sources.conformance import check_source
from streamlearn.stream.sources.file import Files
from streamlearn.stream.sources.prefetch import decoded_batches, prefetched
from streamlearn.stream.sources.source import Source
from streamlearn.stream.sources.stdin import StandardInput
from streamlearn.stream.sources.synthetic import DelayedClicks, Synthetic

__all__ = [
    "CSVDecoder",
    "Clicks",
    "CustomDecoder",
    "Decoder",
    "DelayedClicks",
    "Events",
    "Fields",
    "Files",
    "JSONDecoder",
    "Partition",
    "Records",
    "SVMLightDecoder",
    "Source",
    "StandardInput",
    "Synthetic",
    "VWDecoder",
    "check_source",
    "decoded_batches",
    "decoder_of",
    "prefetched",
]
