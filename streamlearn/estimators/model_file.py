"""Model files: versioned, checksummed, with nothing in them that could be executed.

    magic | version | length of the header | header (JSON) | arrays, one after the other | digest

The header is the model as plain data, arrays replaced by their place, type and shape. The digest
covers all that comes before it, so a damaged file is always noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"streamlearn model\n"
VERSION = 1
HEAD = struct.Struct("<IQ")
DIGEST = 32
# strings of Python may hold halves of characters, which UTF-8 proper has not
TEXT = ("utf-8", "surrogatepass")


class NewerFormat(ModelFileError):
    """A sound file of a later version: an upgrade reads it, a copy of it does not help."""


def pieces(model: Any) -> Iterator[bytes | memoryview]:
    """The bytes of a file, piece by piece: a large array is not copied."""
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
    """Plain data (numbers, strings, tuples, lists, dicts, arrays) as the bytes of a file."""
    return b"".join(pieces(model))


def unpack(data: bytes, name: str = "model file") -> Any:
    """The plain data of `pack`; ModelFileError for anything else."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + HEAD.size + DIGEST:
        raise ModelFileError(f"{name} is not a streamlearn model, or only the beginning of one")
    version, length = HEAD.unpack_from(data, len(MAGIC))
    body, digest = data[:-DIGEST], data[-DIGEST:]
    sound = hashlib.blake2b(body, digest_size=DIGEST).digest() == digest
    if sound and version > VERSION:
        raise NewerFormat(
            f"{name} has format {version}; this streamlearn reads up to {VERSION}: upgrade it"
        )
    if not sound or version < 1:
        raise ModelFileError(f"{name} is damaged: its checksum does not match; use a copy of it")
    start = len(MAGIC) + HEAD.size
    try:
        header = json.loads(body[start : start + length].decode(*TEXT))
        return decode(header, memoryview(body)[start + length :])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} is not a model that streamlearn wrote: {error!r}") from error


def write(path: str | os.PathLike[str], model: Any) -> None:
    """Write the file as a whole or not at all: under another name first, then renamed."""
    path = Path(path)
    if path.is_symlink():  # it goes on pointing there
        path = path.resolve()
    data = pack(model)
    if path.exists() and not path.is_file():
        path.write_bytes(data)  # a device or a pipe: a file of its name would take its place
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(path)  # the name that was given; a full disk has none
        raise


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a power cut would take them, not the files alone."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: str | os.PathLike[str]) -> Any:
    """What `write` wrote."""
    return unpack(Path(path).read_bytes(), str(path))


def encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:  # noqa: PLR0911 - a case each
    """`value` as JSON has it; what JSON has not is a dict with one key that begins with '$'."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(value.dtype.newbyteorder("<"), copy=False))
        return {"$array": [value.dtype.str.replace(">", "<"), list(value.shape)]}
    if isinstance(value, np.generic):
        return encode(value.item(), arrays)
    if isinstance(value, list):
        if set(map(type, value)) <= {str}:  # the names of a million features
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
        f"a model file cannot hold {value!r} of type {type(value).__name__}: "
        "labels must be strings, numbers, bools, bytes or tuples of them (pickle holds any)"
    )


def decode(value: Any, buffer: memoryview) -> Any:
    """The inverse of `encode`; arrays are taken from `buffer` in the order of their writing."""
    place = 0

    def walk(value: Any) -> Any:  # noqa: PLR0911 - a case each
        nonlocal place
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$array" in value:
            kind, shape = value["$array"]
            dtype = np.dtype(kind)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            array = np.frombuffer(buffer[place : place + size], dtype=dtype).reshape(shape).copy()
            place += size
            return array
        if "$tuple" in value:
            return tuple(walk(item) for item in value["$tuple"])
        if "$bytes" in value:
            return bytes.fromhex(value["$bytes"])
        if "$dict" in value:
            return {walk(key): walk(item) for key, item in value["$dict"]}
        return {key: walk(item) for key, item in value.items()}

    return walk(value)
