"""What the names of files tell of their formats."""

from __future__ import annotations

from streamlearn.core.formats import FORMATS
from streamlearn.stream.sources.compression import COMPRESSED, UNREAD


def format_of(name: str) -> str | None:
    """Return the format that a file name indicates, if any.

    >>> format_of("data/clicks.jsonl.gz"), format_of("a9a")
    ('json', None)
    """
    name = name.lower()
    for suffix in (*COMPRESSED, *UNREAD):
        name = name.removesuffix(suffix)
    found = [kind for kind, one in FORMATS.items() if name.endswith(one.suffixes)]
    return found[0] if found else None
