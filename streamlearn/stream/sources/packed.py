"""Files that are packed, read as what is in them: gzip by the standard library, Zstandard.

Zstandard is in the standard library of Python 3.14; before, the package `zstandard` reads it, which
Kafka's clients need for the same.
"""

from __future__ import annotations

import gzip
import importlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from streamlearn.errors import SourceError

if TYPE_CHECKING:
    from types import ModuleType

PACKED = (".gz", ".zst")
PIECE = 1 << 14  # packed bytes at a time: what is in them may be a thousand times as long


def is_packed(path: str) -> bool:
    """Whether the name says that the file is packed."""
    return path.lower().endswith(PACKED)


def opened(path: str) -> BinaryIO:
    """The file as it lies on the disk."""
    return Path(path).open("rb", buffering=0)


def unpacked(file: BinaryIO, path: str) -> BinaryIO:
    """What is in the file, to be read as if it were not packed."""
    if path.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
    if path.lower().endswith(".zst"):
        return zstandard(file, path)
    return file


def zstandard(file: BinaryIO, path: str) -> BinaryIO:
    """What is in a file packed by Zstandard."""
    try:
        return cast("BinaryIO", importlib.import_module("compression.zstd").open(file, "rb"))
    except ImportError:
        pass
    try:
        return cast(
            "BinaryIO", io.BufferedReader(Frames(file, importlib.import_module("zstandard")))
        )
    except ImportError:
        raise SourceError(
            f"{path}: Zstandard needs Python 3.14, or pip install zstandard"
        ) from None


class Frames(io.RawIOBase):
    """What is in the frames of Zstandard, one after the other.

    The package's own reader takes a frame that was cut for one that has ended.
    """

    def __init__(self, file: BinaryIO, module: ModuleType) -> None:
        self._file, self._module = file, module
        self._frame: Any = None  # unpacks the frame that is read now
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next piece goes; 0: the end."""
        while not self._plain and self._next():
            pass
        n = min(len(buffer), len(self._plain))
        buffer[:n] = self._plain[:n]
        self._plain = self._plain[n:]
        return n

    def _next(self) -> bool:
        """Unpack the next piece, if there is one."""
        self._packed = self._packed or self._file.read(PIECE)
        if not self._packed:
            if self._frame is not None:
                raise EOFError("the file ends in the middle of a frame: it was cut")
            return False
        if self._frame is None:
            self._frame = self._module.ZstdDecompressor().decompressobj()
        self._plain = memoryview(self._frame.decompress(self._packed))
        self._packed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None
        return True
