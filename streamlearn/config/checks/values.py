"""Values that several tables have."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

from streamlearn.config.problems import ConfigProblem
from streamlearn.core.formats import format_named
from streamlearn.core.times import timestamp
from streamlearn.storage import is_url

CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
Problems = Iterator[ConfigProblem]


def topic_name(path: str, name: str) -> Problems:
    """Apply Kafka's rule for topic names."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        yield ConfigProblem(
            path,
            f"{name!r} is not a topic name; use at most 249 letters, digits, dots, underscores "
            "and hyphens",
        )


def regex(path: str, text: str | None) -> Problems:
    """Check that a regular expression compiles."""
    try:
        re.compile(text or "")
    except re.error as error:
        yield ConfigProblem(path, f"not a regular expression: {error}")


def matches(pattern: str | None, name: str) -> bool:
    """Return whether the pattern is set, valid and matches the whole name."""
    try:
        return pattern is not None and re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def time(path: str, text: str, others: str) -> Problems:
    """Check a time; `others` are the alternatives that the message lists."""
    try:
        timestamp(text)
    except (ValueError, OverflowError):
        yield ConfigProblem(
            path, f"expected {others}a time such as 2026-01-31T00:00:00Z, got {text!r}"
        )


def installed(path: str, kind: str) -> Problems:
    """Check that the package which a format requires is installed."""
    wanted = format_named(kind)
    if wanted.package is not None and not is_installed(wanted.package):
        yield ConfigProblem(path, f"{kind} requires pip install 'streamlearn[{wanted.extra}]'")


def local_path(path: str, value: str | None) -> Problems:
    """Check that a path is of a file or a directory, not a URL."""
    if is_url(value):
        yield ConfigProblem(
            path, f"expected a local path, got {value!r}; only checkpoint.path may be a URL"
        )


def is_installed(package: str) -> bool:
    """Return whether a package can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
