"""What the names of files tell of their formats."""

from __future__ import annotations

from streamlearn.stream.sources.compression import COMPRESSED

SUFFIXES = {
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "avro": (".avro",),
    "csv": (".csv", ".tsv"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "vw": (".vw",),
}


def format_of(name: str) -> str | None:
    """Return the format that a file name indicates, if any.

    >>> format_of("data/clicks.jsonl.gz"), format_of("a9a")
    ('json', None)
    """
    name = name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    found = [kind for kind, ends in SUFFIXES.items() if name.endswith(ends)]
    return found[0] if found else None
