"""Locations: the path of a directory, or the URL of a prefix in an object store."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from streamlearn.core.nearest import nearest
from streamlearn.storage.directory import Directory
from streamlearn.storage.store import Store

Location: TypeAlias = "str | os.PathLike[str] | Store"

SCHEMES = {"s3": "Amazon S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}


def is_url(location: object) -> bool:
    """Tell whether a location is a URL rather than a path.

    >>> is_url("s3://bucket/clicks"), is_url("/var/lib/clicks")
    (True, False)
    """
    return isinstance(location, str) and "://" in location


def location_problem(location: str) -> str | None:
    """Return why nothing can be kept at a location, as far as its name tells; None if it can.

    >>> location_problem("s4://bucket/clicks")
    "unknown scheme 's4'; valid: az, gs, s3"
    """
    if not is_url(location):
        return None
    parts = urlsplit(location)
    if parts.scheme not in SCHEMES:
        return f"unknown scheme {parts.scheme!r}; {nearest(parts.scheme, SCHEMES)}"
    if not parts.netloc or parts.query or parts.fragment:
        return f"expected {parts.scheme}://BUCKET/PREFIX"
    if importlib.util.find_spec("obstore") is None:
        return f"{parts.scheme}:// requires obstore; run pip install 'streamlearn[store]'"
    return None


def open_store(location: Location) -> Store:
    """Return the store of a location; nothing is read or written yet."""
    if isinstance(location, Store):
        return location
    if not is_url(location):
        return Directory(Path(location))
    url = os.fspath(location)
    if (problem := location_problem(url)) is not None:
        raise ValueError(f"{url}: {problem}")
    from streamlearn.storage.bucket import Bucket  # noqa: PLC0415 - obstore is optional

    return Bucket(url)
