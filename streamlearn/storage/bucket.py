"""A prefix of an object store: Amazon S3 and what speaks its protocol, Google Cloud, Azure.

Credentials, region and endpoint come from the environment, as for the vendors' own tools. Requests
are retried a few times for some seconds; then a `StoreError` tells what failed.
"""

from __future__ import annotations

import errno
import itertools
import re
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore import exceptions
from obstore.store import from_url

from streamlearn.errors import StoreDeniedError, StoreError
from streamlearn.storage.store import Store, StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streamlearn.core.files import WriteStep

PART_BYTES = 8 << 20  # of an upload; S3 takes at most 10,000 parts, so 80 GB in all
PARALLEL_PARTS = 4
PROGRESS = timedelta(seconds=30)  # the limit of an answer, and of a part of an upload
DOWNLOAD = timedelta(hours=1)  # the limit of a whole download
RETRY = timedelta(seconds=60)  # what fails later is not tried again
RETRIES = 5
NO_BUCKET = ("<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>")
ANSWER = re.compile(r"<Code>(?P<code>.*?)</Code>.*?<Message>(?P<message>.*?)</Message>", re.DOTALL)
HTTP_ERROR = re.compile(r"HttpError \{\s*kind: (\w+)")
INSTANCE_ROLE = "/latest/api/token"  # asked for last, if nothing else gives credentials
DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
DENIED_STATUS = ("401 Unauthorized", "403 Forbidden")  # in answers to a list request


class Bucket(Store):
    """Objects whose names begin with a prefix, such as `s3://bucket/prefix`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._store = connect(self.url, progress=PROGRESS, request=DOWNLOAD, retries=RETRY)

    def __str__(self) -> str:
        return self.url

    # -- files ------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all objects."""
        return [entry.name for entry in self.entries()]

    def entries(self) -> list[StoredFile]:
        """Return all objects."""
        with reported(self.url, "list"):
            return [
                StoredFile(found["path"], found["size"], found["last_modified"].timestamp())
                for chunk in obstore.list(self._store)
                for found in chunk
            ]

    def read(self, name: str) -> bytes:
        """Return the content of an object."""
        with reported(self.url, "read", name):
            return obstore.get(self._store, name).bytes().to_bytes()

    def write(
        self,
        name: str,
        pieces: Iterable[bytes | memoryview],
        *,
        before: Callable[[WriteStep], None] = lambda _: None,
    ) -> int:
        """Upload an object, in parts if it is large; it appears when the last part is there."""
        size, failed = 0, None

        def stepwise() -> Iterator[bytes | memoryview]:
            nonlocal size, failed
            try:
                for piece in pieces:
                    size += len(piece)
                    yield piece
                    if size == len(piece):
                        before("write")
                before("fsync")  # all is read; what follows makes the object appear
                before("rename")
            except BaseException as error:
                failed = error  # obstore would wrap it
                raise

        start, rest = first_part(stepwise())
        with reported(self.url, "write", name):
            try:
                if rest is None:
                    obstore.put(self._store, name, b"".join(start), use_multipart=False)
                else:
                    obstore.put(
                        self._store,
                        name,
                        itertools.chain(start, rest),
                        chunk_size=PART_BYTES,
                        max_concurrency=PARALLEL_PARTS,
                    )
            except Exception:
                if failed is not None:
                    raise failed from None
                raise
        before("fsync-directory")
        return size

    def delete(self, name: str) -> None:
        """Delete an object if it exists."""
        with reported(self.url, "delete", name), suppress(FileNotFoundError):  # only some tell
            obstore.delete(self._store, name)


def connect(url: str, *, progress: timedelta, request: timedelta, retries: timedelta) -> Any:
    """Connect to a prefix, with limits for progress, for a request, and for all its retries."""
    # one request for many objects is not understood by all servers that speak S3's protocol
    single: Any = {"disable_bulk_delete": True} if url.startswith("s3:") else {}
    return from_url(
        url,
        config=single,
        client_options={
            "allow_http": True,  # for an endpoint that says so; those of the vendors are HTTPS
            "connect_timeout": "5s",
            "read_timeout": progress,
            "timeout": request,
        },
        retry_config={"max_retries": RETRIES, "retry_timeout": retries},
    )


@contextmanager
def reported(url: str, action: str, name: str = "") -> Iterator[None]:
    """Raise errors of obstore as our own."""
    where = f"{url}/{name}" if name else url
    try:
        yield
    except (FileNotFoundError, exceptions.BaseError) as error:
        text = str(error)
        if isinstance(error, FileNotFoundError) and not any(code in text for code in NO_BUCKET):
            raise FileNotFoundError(errno.ENOENT, "no such object", where) from error
        if INSTANCE_ROLE in text:
            raise StoreDeniedError(
                f"{where}: {action} denied: the environment has no credentials, and this machine "
                "no role; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error
        denied = isinstance(error, DENIED) or any(status in text for status in DENIED_STATUS)
        kind, what = (StoreDeniedError, "denied") if denied else (StoreError, "failed")
        raise kind(f"{where}: {action} {what}: {reason(text)}") from error


def first_part(
    pieces: Iterator[bytes | memoryview],
) -> tuple[list[bytes | memoryview], Iterator[bytes | memoryview] | None]:
    """Take the first part of an upload; also return the rest, or None if that is all."""
    start: list[bytes | memoryview] = []
    for piece in pieces:
        start.append(piece)
        if sum(map(len, start)) > PART_BYTES:
            return start, pieces
    return start, None


def reason(text: str) -> str:
    """Return what an error of obstore says, without its internal structure.

    >>> reason("Generic S3 error: ... <Code>NoSuchBucket</Code><Message>There is none</Message>")
    'There is none (NoSuchBucket)'
    """
    if found := ANSWER.search(text):
        return f"{found['message']} ({found['code']})"
    kind = HTTP_ERROR.search(text)
    summary = " ".join(text.partition("Debug source:")[0].split())
    return summary if kind is None else f"{summary} ({kind[1]})"
