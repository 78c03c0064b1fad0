"""Files that are packed, read as what is in them: gzip by the standard library, Zstandard.

Zstandard is in the standard library of Python 3.14; before, the package `zstandard` reads it, which
Kafka's clients need for the same.
"""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path
from typing import BinaryIO, cast

from streamlearn.errors import SourceError

PACKED = (".gz", ".zst")


def is_packed(path: str) -> bool:
    """Whether the name says that the file is packed."""
    return path.endswith(PACKED)


def opened(path: str) -> BinaryIO:
    """The file, to be read as if it were not packed."""
    if path.endswith(".gz"):
        return cast("BinaryIO", gzip.open(path, "rb"))
    if path.endswith(".zst"):
        return zstandard(path)
    return Path(path).open("rb", buffering=0)


def zstandard(path: str) -> BinaryIO:
    """A file packed by Zstandard."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return cast("BinaryIO", module.open(path, "rb"))
    raise SourceError(f"{path}: Zstandard needs Python 3.14, or pip install zstandard")
