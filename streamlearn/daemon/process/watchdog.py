"""The watchdog: a silent loop ends the process, with the stacks of all threads in the log.

A thread that never needs the GIL looks at the loop's beats, so that it also works while a native
call holds it. The stacks are faulthandler's; `kill -USR2 PID` shows them of a healthy process too.
"""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import threading
from typing import Any

from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.heartbeat import Heartbeat, ignore
from streamlearn.daemon.process.log import Log


class Watchdog:
    """Ends the process when `beat` was not called for so many seconds."""

    def __init__(self, seconds: float, log: Log) -> None:
        self.seconds = seconds
        self.log = log
        self.heartbeat = Heartbeat()
        self.beat = self.heartbeat.beat

    def start(self) -> None:
        """Begin to watch."""
        handle = self._handle = self._log_descriptor()
        # The interpreter takes the dump of the stacks away before libraries end, and puts back what
        # was there before: by default the end of the process by this signal, without its exit code.
        faulthandler.unregister(signal.SIGUSR2)
        ignore(signal.SIGUSR2)
        faulthandler.register(signal.SIGUSR2, file=handle, all_threads=True)
        stalled = self._log_line(
            "the loop is silent: the process ends; the stacks of its threads follow",
            {"seconds": self.seconds, "exit": int(Exit.WATCHDOG)},
        )
        overdue = self._log_line(
            "the end takes too long: it is cut short; the stacks of its threads follow", {}
        )
        threading.Thread(
            target=self.heartbeat.watch,
            args=(
                self.seconds,
                int(Exit.WATCHDOG),
                int(signal.SIGUSR2),
                handle,
                stalled,
                overdue,
            ),
            name="watchdog",
            daemon=True,
        ).start()

    def _log_line(self, event: str, facts: dict[str, Any]) -> bytes:
        """A line of the log whose time is put in when it is said, which nothing of Python's can."""
        line = Log(self.log.style, clock=lambda: 0.0).format_line("error", event, facts)
        line = line.replace("%", "%%").replace("1970-01-01T", "%Y-%m-%dT", 1)
        return line.replace("00:00:00", "%H:%M:%S", 1).encode()

    def _log_descriptor(self) -> int:
        """Where the log is written to, for as long as the process lives."""
        try:
            return os.dup(self.log.stream.fileno())
        except (OSError, ValueError, AttributeError):  # a log in memory, or none at all
            pass
        try:
            return os.dup(2)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)

    def deadline(self, seconds: float, code: int) -> None:
        """End the process with this code when so much time has passed, whatever it is doing."""
        self.heartbeat.deadline(seconds, int(code))

    def end(self) -> None:
        """Watch no more."""
        self.heartbeat.end()


def exit_within(seconds: float, code: int, log: Log) -> None:
    """End the process with this code in this time, also if the interpreter's own end hangs.

    It waits for threads, and for what libraries want to do last.
    """
    last = Watchdog(math.inf, log)
    last.start()
    last.deadline(seconds, code)
