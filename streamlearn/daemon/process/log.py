"""What the daemon says: one line for each fact, for people (console) or for machines (JSON).

    12:31:07 info     checkpoint written  place=00000003-00000017 bytes=8388608 seconds=0.041

Errors that may come with every record are limited by kind: the first of a kind is said, and the
others are counted until `REPEAT_SECONDS` have passed.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from typing import IO, Any, Literal

LEVELS = ("debug", "info", "warning", "error")
REPEAT_SECONDS = 10.0
MAX_LENGTH = 2_000  # characters of one value; a hostile record may be of any size


class Log:
    """Lines on standard error.

    >>> log = Log(stream=sys.stdout, clock=lambda: 0.0)
    >>> log.info("partition found", topic="clicks", partition=3)
    00:00:00 info     partition found  topic=clicks partition=3
    >>> log = Log("json", stream=sys.stdout, clock=lambda: 0.0)
    >>> log.warning("no topic yet", regex="clicks.*")
    {"time":"1970-01-01T00:00:00.000Z","level":"warning","event":"no topic yet","regex":"clicks.*"}
    """

    def __init__(
        self,
        style: Literal["console", "json"] = "console",
        level: str = "info",
        *,
        stream: IO[str] | None = None,
        clock: Any = time.time,
    ) -> None:
        self.style = style
        self.least = LEVELS.index(level)
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self._lock = threading.Lock()
        self._limits: dict[str, tuple[float, int]] = {}  # when last said, and how often held back

    def debug(self, event: str, **fields: Any) -> None:
        """What only helps to find an error."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """A fact of the daemon's life."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """What may need a look."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """What needs one."""
        self._write("error", event, fields)

    def rate_limited(self, kind: str, level: str, event: str, **fields: Any) -> None:
        """A line that may come very often: at most one of its kind in a while."""
        now = time.monotonic()
        with self._lock:
            last, held = self._limits.get(kind, (-REPEAT_SECONDS, 0))
            if now - last < REPEAT_SECONDS:
                self._limits[kind] = (last, held + 1)
                return
            self._limits[kind] = (now, 0)
        self._write(level, event, {**fields, "more_of_these": held} if held else fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS.index(level) < self.least:
            return
        line = self.format_line(level, event, fields)
        with self._lock:
            try:
                self.stream.write(line)
                self.stream.flush()
            except (OSError, ValueError):
                pass  # whoever read the log is gone; that must not stop the learning

    def format_line(self, level: str, event: str, fields: dict[str, Any]) -> str:
        """One line as it is written."""
        now = datetime.fromtimestamp(self.clock(), UTC)
        if self.style == "json":
            stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            whole = {"time": stamp, "level": level, "event": event}
            whole |= {name: to_json(value) for name, value in fields.items() if name not in whole}
            return json.dumps(whole, separators=(",", ":")) + "\n"
        told = " ".join(f"{name}={to_console(to_json(value))}" for name, value in fields.items())
        return f"{now:%H:%M:%S} {level:<8} {event}{'  ' if told else ''}{told}\n"


def to_json(value: Any) -> Any:
    """A value as JSON may hold it."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [to_json(item) for item in value]
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + ".."


def to_console(value: Any) -> str:
    """A value in a console's line: quoted where it has spaces, never with control characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    simple = text.isprintable() and text and " " not in text and '"' not in text
    return text if simple or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


class LibraryLogHandler(logging.Handler):
    """What libraries say by Python's logging, as lines of ours, limited by where they come from."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a library's message and its arguments do not fit
            text = str(record.msg)
        kind = f"{record.name}:{record.lineno}"
        self.log.rate_limited(kind, level, "library", name=record.name, said=text)
