"""Make the decoder of a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.core.formats import FORMATS
from streamlearn.core.imports import import_path
from streamlearn.stream.formats.arrow import ArrowDecoder
from streamlearn.stream.formats.avro import AvroDecoder
from streamlearn.stream.formats.csv import CSVDecoder
from streamlearn.stream.formats.custom import CustomDecoder
from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.formats.json import JSONDecoder
from streamlearn.stream.formats.json_schema import JSONSchemaDecoder
from streamlearn.stream.formats.protobuf import ProtobufDecoder
from streamlearn.stream.formats.svmlight import SVMLightDecoder
from streamlearn.stream.formats.vw import VWDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.features import Reader
    from streamlearn.stream.formats.binary import BinaryDecoder
    from streamlearn.stream.formats.fields import Fields, Learns
    from streamlearn.stream.formats.schemas import Schemas

DECODERS: dict[str, type[Decoder]] = {
    "json": JSONDecoder,
    "svmlight": SVMLightDecoder,
    "vw": VWDecoder,
    "csv": CSVDecoder,
    "parquet": ArrowDecoder,
    "arrow": ArrowDecoder,
}
WITH_SCHEMAS: dict[str, type[BinaryDecoder | JSONSchemaDecoder]] = {
    "avro": AvroDecoder,
    "protobuf": ProtobufDecoder,
    "json-schema": JSONSchemaDecoder,
}


def decoder_of(
    kind: str,
    reader: Reader,
    fields: Fields | None = None,
    learners: Sequence[Learns] = (),
    *,
    grow_always: bool = False,
    delimiter: str = ",",
    columns: Sequence[str] = (),
    decimal: str = ".",
    schemas: Schemas | None = None,
) -> Decoder:
    """Return the decoder of a format: one of `core.formats`, or a custom `module:name`.

    A custom format is a subclass of `Decoder`, or a function from bytes to an event. `delimiter`,
    `columns` and `decimal` are for CSV, `schemas` for those with schemas.

    >>> from streamlearn import Names
    >>> type(decoder_of("vw", Names())).__name__, type(decoder_of("json:loads", Names())).__name__
    ('VWDecoder', 'CustomDecoder')
    """
    if kind == "csv":
        return CSVDecoder(
            reader,
            fields,
            learners,
            grow_always,
            delimiter=delimiter,
            columns=columns,
            decimal=decimal,
        )
    if kind in DECODERS:
        return DECODERS[kind](reader, fields, learners, grow_always)
    if kind in WITH_SCHEMAS:
        if schemas is None:
            raise ValueError(f"format {kind!r} requires schemas: see stream.formats.schemas")
        return WITH_SCHEMAS[kind](schemas, reader, fields, learners, grow_always)
    if ":" not in kind:
        raise ValueError(
            f"format {kind!r}: expected one of {', '.join(FORMATS)}, or module:function"
        )
    named = import_path(kind)
    if isinstance(named, type) and issubclass(named, Decoder):
        return named(reader, fields, learners, grow_always)
    return CustomDecoder(named, reader, fields, learners, grow_always)
