"""Read compressed files: gzip and Zstandard, both by the standard library (or its backport)."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import BinaryIO, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED = (".gz", ".zst")
UNREAD = (".bz2", ".xz", ".zip")  # such files are refused by their content, with what to do


def is_compressed(path: str) -> bool:
    """Return whether the name is that of a compressed file."""
    return path.lower().endswith(COMPRESSED)


def open_raw(path: str) -> BinaryIO:
    """Open a file without decompressing it."""
    return Path(path).open("rb", buffering=0)


def decompressed(file: BinaryIO, path: str) -> BinaryIO:
    """Return the content of an open file, decompressed by the suffix of its path."""
    if path.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
    if path.lower().endswith(".zst"):
        return cast("BinaryIO", zstd.ZstdFile(file))
    return file
