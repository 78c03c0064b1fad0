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
    """The file as it lies on the disk."""
    return Path(path).open("rb", buffering=0)


def unpacked(file: BinaryIO, path: str) -> BinaryIO:
    """What is in the file, to be read as if it were not packed."""
    if path.endswith(".gz"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
    if path.endswith(".zst"):
        return zstandard(file, path)
    return file


def zstandard(file: BinaryIO, path: str) -> BinaryIO:
    """What is in a file packed by Zstandard."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return cast("BinaryIO", module.open(file, "rb"))
    raise SourceError(f"{path}: Zstandard needs Python 3.14, or pip install zstandard")
