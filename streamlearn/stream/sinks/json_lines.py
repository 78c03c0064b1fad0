"""Sinks that write JSON lines to a file or to standard output."""

from __future__ import annotations

import base64
import errno
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from streamlearn.core.files import fsync_directory
from streamlearn.errors import SinkError, SinkFullError
from streamlearn.stream.records import name_bytes
from streamlearn.stream.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import FileIO

    from streamlearn.stream.records import Header
    from streamlearn.stream.sinks.sink import Record

BUFFER = 1 << 20  # bytes
NO_SPACE = {errno.ENOSPC, errno.EDQUOT}  # errors that end when somebody makes room
WAIT_SECONDS = 0.1


class FileSink(Sink):
    r"""Append JSON lines to a file; "-" is standard output.

    Values are JSON already, or any bytes (`binary`), which are written in base64, as are keys that
    are not UTF-8. If a JSON object cannot represent the headers (duplicate names, or bytes that are
    not UTF-8), they are also written as pairs in base64.

    >>> sink = FileSink("-")
    >>> sink.send(b'{"prediction":true}', key=b"k1", headers=[("offset", b"17")])
    {"headers":{"offset":"17"},"key":"k1","value":{"prediction":true}}
    >>> FileSink("-", binary=True).send(b"\xff", headers=[("reason", "é".encode())])
    {"headers":{"reason":"é"},"value_base64":"/w=="}
    """

    def __init__(self, path: str | os.PathLike[str], *, binary: bool = False) -> None:
        self.binary = binary
        self._path = path
        self._lock = threading.Lock()  # checkpoints flush from another thread
        self._file: FileIO | None = None  # None: standard output
        self._buffer = bytearray()  # what is to be written to the file
        if os.fspath(path) != "-":
            self._file = Path(path).open("ab+", buffering=0)  # noqa: SIM115 - see close
            if not self._file.seek(0, os.SEEK_END):  # a new file
                fsync_directory(Path(path).parent)
            else:
                self._end_torn_line(self._file)

    @staticmethod
    def _end_torn_line(file: FileIO) -> None:
        """End the incomplete line that a killed process may have left."""
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")

    def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Sequence[Header] = ()
    ) -> None:
        """Send one record."""
        parts = []
        if headers:
            readable = {text(name_bytes(name)): text(item) for name, item in headers}
            parts.append(b'"headers":' + to_json(readable))
            if self.binary and not is_representable(headers):
                pairs = [(base64_of(name_bytes(name)), base64_of(item)) for name, item in headers]
                parts.append(b'"headers_base64":' + to_json(pairs))
        if key is not None:
            parts.append(field("key", key, binary=not is_utf8(key)))
        if value is None:
            parts.append(b'"value":null')
        elif self.binary:
            parts.append(field("value", value, binary=True))
        else:
            parts.append(b'"value":' + value)
        line = b"{" + b",".join(parts) + b"}\n"
        with self._lock:
            try:
                if self._file is None:
                    sys.stdout.write(line.decode())
                elif len(self._buffer) >= BUFFER:
                    self._write()
            except OSError as error:
                raise self._failure(error) from error
            if self._file is not None:
                self._buffer += line

    def send_all(self, records: Sequence[Record]) -> None:
        """Send the records of a batch, and show them to readers of the file."""
        super().send_all(records)
        with self._lock, suppress(OSError):  # what is not written stays in the buffer for `flush`
            self._write()

    def _write(self) -> None:
        """Write what is in the buffer; what an error leaves of it is written later."""
        if self._file is None:
            sys.stdout.flush()
            return
        while self._buffer:
            del self._buffer[: os.write(self._file.fileno(), self._buffer)]

    def _failure(self, error: OSError) -> SinkError:
        """Return the error for a file or pipe that is not writable, after a wait if it may be."""
        where = "standard output" if self._file is None else repr(os.fspath(self._path))
        text = f"{where} cannot be written: {error.strerror}"
        if error.errno not in NO_SPACE:
            return SinkError(text)
        time.sleep(WAIT_SECONDS)
        return SinkFullError(text)

    def flush(self, seconds: float) -> None:  # noqa: ARG002 - a file takes as long as it takes
        """Sync the file to the disk."""
        with self._lock:
            try:
                self._write()
                if self._file is not None:
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise self._failure(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None and not self._file.closed:
                with self._file:
                    self._write()


def to_json(value: object) -> bytes:
    """Encode a value as JSON."""
    return msgspec.json.encode(value)


def field(name: str, value: bytes, *, binary: bool) -> bytes:
    """Encode a field of a line."""
    if binary:
        return f'"{name}_base64":"{base64_of(value)}"'.encode()
    return f'"{name}":'.encode() + to_json(value.decode())


def base64_of(value: bytes | None) -> str | None:
    """Encode bytes in base64."""
    return None if value is None else base64.b64encode(value).decode()


def is_representable(headers: Sequence[Header]) -> bool:
    """Whether a JSON object can represent these headers."""
    texts = all(is_utf8(name_bytes(name)) and is_utf8(item or b"") for name, item in headers)
    return texts and len(dict(headers)) == len(headers)


def is_utf8(value: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def text(value: bytes | None) -> str | None:
    """Decode a header's value; bytes that are not UTF-8 become escapes."""
    return None if value is None else value.decode(errors="backslashreplace")
