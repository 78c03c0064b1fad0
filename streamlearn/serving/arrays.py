"""A file of a JSON header and plain arrays: the safetensors format, which many libraries read.

    length of the header (8 bytes, little-endian) | header (JSON) | arrays, one after another

The header maps the name of each array to its type, shape and place. What else there is to know is
JSON in the key `streamlearn` of its `__metadata__`.
"""

from __future__ import annotations

import json
import mmap
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from streamlearn.core.arrays import Array

LENGTH = struct.Struct("<Q")
ALIGNED = 64  # bytes; a cache line
TYPES = {"F64": "<f8", "I32": "<i4", "U32": "<u4"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}


def pieces(metadata: Any, arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file in pieces, without copying the arrays."""
    text = json.dumps(metadata, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"streamlearn": text}}
    offset = 0
    for name, array in arrays.items():
        end = offset + array.nbytes
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    packed = json.dumps(header, separators=(",", ":")).encode()
    packed = packed.ljust(-(-(len(packed) + LENGTH.size) // ALIGNED) * ALIGNED - LENGTH.size)
    yield LENGTH.pack(len(packed)) + packed
    for array in arrays.values():
        if array.size:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read(path: Path) -> tuple[Any, dict[str, Array]]:
    """Return the metadata and the arrays, which are mapped into memory and read-only."""
    with path.open("rb") as file:
        if file.seek(0, 2) < LENGTH.size:
            raise ModelFileError(f"{path} is truncated")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        start = LENGTH.size + LENGTH.unpack_from(mapped)[0]
        header = json.loads(mapped[LENGTH.size : start])
        metadata = json.loads(header.pop("__metadata__")["streamlearn"])
        arrays = {}
        for name, about in header.items():
            first, end = about["data_offsets"]
            dtype, shape = np.dtype(TYPES[about["dtype"]]), tuple(about["shape"])
            count = (end - first) // dtype.itemsize
            arrays[name] = np.frombuffer(mapped, dtype, count, start + first).reshape(shape)
    except (LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is truncated, or no serving snapshot: {error!r}") from error
    return metadata, arrays
