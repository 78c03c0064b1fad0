"""The daemon's structured log: one line per event, for people (console) or machines (JSON).

    12:31:07 info     checkpoint written  name=00000003-00000017.checkpoint bytes=8388608

Messages that may occur with every record are rate-limited by kind: the first one is logged, and the
others are counted for `REPEAT_SECONDS`.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = ("debug", "info", "warning", "error")
REPEAT_SECONDS = 10.0
OWN = __name__.partition(".")[0]
# attributes of a log record that are not `extra`
STANDARD = {*vars(logging.makeLogRecord({})), "message", "taskName"}
MAX_LENGTH = 2_000  # characters of a value; a hostile record may have any size


class Log:
    """Write log lines to standard error.

    >>> log = Log(stream=sys.stdout, clock=lambda: 0.0)
    >>> log.info("partition found", topic="clicks", partition=3)
    00:00:00 info     partition found  topic=clicks partition=3
    >>> log = Log("json", stream=sys.stdout, clock=lambda: 0.0)
    >>> log.warning("no topic", pattern="clicks.*")
    {"time":"1970-01-01T00:00:00.000Z","level":"warning","event":"no topic","pattern":"clicks.*"}
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
        self._limits: dict[
            str, tuple[float, int]
        ] = {}  # by kind: last time, lines suppressed since

    def debug(self, event: str, **fields: Any) -> None:
        """Log an event that helps only with debugging."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Log a normal event."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Log an event that may need attention."""
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Log an event that needs attention."""
        self._write("error", event, fields)

    def rate_limited(self, kind: str, level: str, event: str, **fields: Any) -> None:
        """Log an event that may be frequent, once per kind in `REPEAT_SECONDS`."""
        now = time.monotonic()
        with self._lock:
            last, suppressed = self._limits.get(kind, (-REPEAT_SECONDS, 0))
            if now - last < REPEAT_SECONDS:
                self._limits[kind] = (last, suppressed + 1)
                return
            self._limits[kind] = (now, 0)
        self._write(level, event, {**fields, "suppressed": suppressed} if suppressed else fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if LEVELS.index(level) < self.least:
            return
        line = self.format_line(level, event, fields)
        with self._lock:
            try:
                self.stream.write(line)
                self.stream.flush()
            except (OSError, ValueError):
                pass  # a closed log must not stop the learning

    def format_line(self, level: str, event: str, fields: dict[str, Any]) -> str:
        """Format one line."""
        now = datetime.fromtimestamp(self.clock(), UTC)
        if self.style == "json":
            stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            data = {"time": stamp, "level": level, "event": event}
            data |= {name: to_json(value) for name, value in fields.items() if name not in data}
            return json.dumps(data, separators=(",", ":")) + "\n"
        text = " ".join(f"{name}={to_console(to_json(value))}" for name, value in fields.items())
        return f"{now:%H:%M:%S} {level:<8} {event}{'  ' if text else ''}{text}\n"


def to_json(value: Any) -> Any:
    """Convert a value to what JSON can represent, with long text cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [to_json(item) for item in value]
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + "..."


def to_console(value: Any) -> str:
    """Format a value for the console: quoted if it has spaces, without control characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    simple = text.isprintable() and text and " " not in text and '"' not in text
    return text if simple or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


def log_failed_threads(log: Log) -> Callable[[threading.ExceptHookArgs], object]:
    """Log the errors that end threads from now on; return what was called before."""
    before = threading.excepthook

    def report(failed: threading.ExceptHookArgs) -> None:
        name = "unknown" if failed.thread is None else failed.thread.name
        stack = "".join(
            traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)
        )
        log.rate_limited(f"thread {name}", "error", "thread failed", name=name, stack=stack)

    threading.excepthook = report
    return before


class LibraryLogHandler(logging.Handler):
    """Forward warnings of libraries to the daemon's log, rate-limited by their origin.

    Those of this one are events of their own, whose `extra` are the fields.

    >>> handler = LibraryLogHandler(Log(stream=sys.stdout, clock=lambda: 0.0))
    >>> own, other = logging.Logger("streamlearn.kafka.topics"), logging.Logger("urllib3")
    >>> own.addHandler(handler), other.addHandler(handler)
    (None, None)
    >>> own.warning("topic deleted", extra={"topic": "clicks", "_other": 1})
    00:00:00 warning  topic deleted  topic=clicks
    >>> other.warning("retry %d", 3)
    00:00:00 warning  library message  name=urllib3 text="retry 3"
    """

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a record."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - the message and its arguments do not match
            text = str(record.msg)
        kind = f"{record.name}:{record.lineno}"
        if record.name.partition(".")[0] == OWN:
            # other libraries, such as Ray, give all records of a process attributes of their own
            fields = {
                name: value
                for name, value in vars(record).items()
                if name not in STANDARD and not name.startswith("_")
            }
            self.log.rate_limited(kind, level, text, **fields)
        else:
            self.log.rate_limited(kind, level, "library message", name=record.name, text=text)
