"""Model files: versioned, checksummed, and not executable.

    magic | version | length of the header | header (JSON) | arrays, one after another | digest

The header is the model as plain data, with arrays replaced by type and shape. The digest covers
everything before it, so damage is always detected.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.files import write_atomic
from streamlearn.errors import ModelFileError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

MAGIC = b"streamlearn model\n"
VERSION = 1
HEAD = struct.Struct("<IQ")
DIGEST = 32
# Python strings may hold lone surrogates, which plain UTF-8 cannot encode.
TEXT = ("utf-8", "surrogatepass")


class NewerFormatError(ModelFileError):
    """An intact file of a later version: upgrade streamlearn; a backup does not help."""


def pieces(model: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file in pieces, without copying large arrays."""
    arrays: list[np.ndarray[Any, Any]] = []
    header = json.dumps(encode(model, arrays), ensure_ascii=False).encode(*TEXT)
    digest = hashlib.blake2b(digest_size=DIGEST)
    start = MAGIC + HEAD.pack(VERSION, len(header)) + header
    digest.update(start)
    yield start
    for array in arrays:
        if array.size:
            piece = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            digest.update(piece)
            yield piece
    yield digest.digest()


def pack(model: Any) -> bytes:
    """Return plain data (numbers, strings, tuples, lists, dicts, arrays) as a file's bytes."""
    return b"".join(pieces(model))


def unpack(data: bytes, name: str = "model file") -> Any:
    """Return the plain data of `pack`; ModelFileError for any other bytes."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + HEAD.size + DIGEST:
        raise ModelFileError(f"{name} is not a streamlearn model, or is truncated")
    version, length = HEAD.unpack_from(data, len(MAGIC))
    body, digest = data[:-DIGEST], data[-DIGEST:]
    intact = hashlib.blake2b(body, digest_size=DIGEST).digest() == digest
    if intact and version > VERSION:
        raise NewerFormatError(
            f"{name} has format version {version}, but this version of streamlearn reads versions "
            f"up to {VERSION}; upgrade streamlearn"
        )
    if not intact or version < 1:
        raise ModelFileError(f"{name} is damaged: its checksum does not match; restore a backup")
    start = len(MAGIC) + HEAD.size
    try:
        header = json.loads(body[start : start + length].decode(*TEXT))
        return decode(header, memoryview(body)[start + length :])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} was not written by streamlearn: {error!r}") from error


def write(path: str | os.PathLike[str], model: Any) -> None:
    """Write a file atomically: under a temporary name, which is then renamed."""
    path = Path(path)
    if path.is_symlink():  # keep the link
        path = path.resolve()
    data = pack(model)
    if path.exists() and not path.is_file():
        path.write_bytes(data)  # a device or a pipe, which must not be replaced
        return
    try:
        write_atomic(path, [data])
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)  # not the temporary name, and a full disk has none
        raise


def read(path: str | os.PathLike[str]) -> Any:
    """Return the data that `write` wrote."""
    return unpack(Path(path).read_bytes(), str(path))


def encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:  # noqa: PLR0911 - one per case
    """Return `value` as JSON; a type that JSON lacks is a dict with one key, such as "$array"."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(value.dtype.newbyteorder("<"), copy=False))
        return {"$array": [value.dtype.str.replace(">", "<"), list(value.shape)]}
    if isinstance(value, np.generic):
        return encode(value.item(), arrays)
    if isinstance(value, list):
        if set(map(type, value)) <= {str}:  # fast for the names of a million features
            return value
        return [encode(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, arrays) for item in value]}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(item, arrays) for key, item in value.items()}
        pairs = [[encode(key, arrays), encode(item, arrays)] for key, item in value.items()]
        return {"$dict": pairs}
    raise ModelFileError(
        f"a model file cannot hold {value!r} of type {type(value).__name__}; "
        "use labels that are strings, numbers, bools, bytes or tuples of them, or pickle the model"
    )


def decode(value: Any, buffer: memoryview) -> Any:
    """Invert `encode`; read arrays from `buffer` in the order in which they were written."""
    offset = 0

    def walk(value: Any) -> Any:  # noqa: PLR0911 - one per case
        nonlocal offset
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$array" in value:
            kind, shape = value["$array"]
            dtype = np.dtype(kind)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            array = np.frombuffer(buffer[offset : offset + size], dtype=dtype).reshape(shape).copy()
            offset += size
            return array
        if "$tuple" in value:
            return tuple(walk(item) for item in value["$tuple"])
        if "$bytes" in value:
            return bytes.fromhex(value["$bytes"])
        if "$dict" in value:
            return {walk(key): walk(item) for key, item in value["$dict"]}
        return {key: walk(item) for key, item in value.items()}

    return walk(value)
