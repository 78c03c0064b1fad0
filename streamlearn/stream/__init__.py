"""Where events come from (sources) and how bytes become events (formats)."""

from streamlearn.engine.events import Events
from streamlearn.stream.ahead import ahead, decoded
from streamlearn.stream.clicks import Clicks
from streamlearn.stream.csv import CSVDecoder
from streamlearn.stream.custom import CustomDecoder
from streamlearn.stream.decoder import Decoder
from streamlearn.stream.fields import Fields
from streamlearn.stream.file import Files
from streamlearn.stream.formats import FORMATS, decoder_of
from streamlearn.stream.json import JSONDecoder
from streamlearn.stream.source import Partition, Records, Source
from streamlearn.stream.stdin import StandardInput
from streamlearn.stream.svmlight import SVMLightDecoder
from streamlearn.stream.synthetic import LateClicks, Synthetic
from streamlearn.stream.vw import VWDecoder

__all__ = [
    "FORMATS",
    "CSVDecoder",
    "Clicks",
    "CustomDecoder",
    "Decoder",
    "Events",
    "Fields",
    "Files",
    "JSONDecoder",
    "LateClicks",
    "Partition",
    "Records",
    "SVMLightDecoder",
    "Source",
    "StandardInput",
    "Synthetic",
    "VWDecoder",
    "ahead",
    "decoded",
    "decoder_of",
]
