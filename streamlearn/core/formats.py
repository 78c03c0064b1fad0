"""The formats of events by name: what each can do, what it requires, and how its files are named.

Decoders are in `streamlearn.stream.formats`. This table imports nothing, so the command line and
the configuration may read it before they need one.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """What a format can do."""

    suffixes: tuple[str, ...] = ()  # of the names of its files
    names_fields: bool = True  # label, weight, id and time are fields; otherwise places in a line
    nests: bool = False  # a record may hold the event in one of its fields
    has_schemas: bool = False  # a record is read by the schema that it was written with
    has_columns: bool = False  # files hold columns; a record is one of their rows
    in_files: bool = True
    package: str | None = None  # that reading it imports
    extra: str | None = None  # of streamlearn, which installs the package


FORMATS = {
    "json": Format((".json", ".jsonl", ".ndjson"), nests=True),
    "svmlight": Format((".svm", ".svmlight", ".libsvm"), names_fields=False),
    "vw": Format((".vw",), names_fields=False),
    "csv": Format((".csv", ".tsv")),
    "parquet": Format((".parquet", ".pq"), has_columns=True, package="pyarrow", extra="arrow"),
    "arrow": Format(
        (".arrow", ".arrows", ".feather", ".ipc"),
        has_columns=True, package="pyarrow", extra="arrow",
    ),
    "avro": Format(
        (".avro",), nests=True, has_schemas=True, package="fastavro", extra="registry"
    ),
    "protobuf": Format(
        nests=True, has_schemas=True, package="google.protobuf", extra="registry"
    ),
    "json-schema": Format(
        nests=True, has_schemas=True, in_files=False, package="fastavro", extra="registry"
    ),
}  # fmt: skip
CUSTOM = Format(nests=True)


def format_named(name: str) -> Format:
    """Return what a format can do; one that is not in the table is a user's `module:name`."""
    return FORMATS.get(name, CUSTOM)


def names(**wanted: bool) -> list[str]:
    """Return the formats that can do this, or not.

    >>> names(has_columns=True), names(names_fields=False)
    (['parquet', 'arrow'], ['svmlight', 'vw'])
    """
    return [
        name for name, one in FORMATS.items()
        if all(getattr(one, key) is value for key, value in wanted.items())
    ]  # fmt: skip
