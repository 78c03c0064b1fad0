"""The watchdog: end the process if its loop stalls, with the stacks of all threads in the log.

Its thread never needs the GIL, so that it also works while a native call holds it. faulthandler
dumps the stacks; `kill -USR2 PID` dumps those of a healthy process.
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
    """End the process if `beat` is not called for `seconds`."""

    def __init__(self, seconds: float, log: Log) -> None:
        self.seconds = seconds
        self.log = log
        self.heartbeat = Heartbeat()
        self.beat = self.heartbeat.beat

    def start(self) -> None:
        """Start watching."""
        handle = self._handle = self._log_descriptor()
        # At exit the interpreter restores the previous handler of the signal. The default one ends
        # the process by the signal, without its exit code, so ignore the signal first.
        faulthandler.unregister(signal.SIGUSR2)
        ignore(signal.SIGUSR2)
        faulthandler.register(signal.SIGUSR2, file=handle, all_threads=True)
        stalled = self._log_line(
            "loop stalled",
            {"seconds": self.seconds, "exit": int(Exit.WATCHDOG), "stacks": "below"},
        )
        overdue = self._log_line("shutdown timed out", {"stacks": "below"})
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

    def _log_line(self, event: str, fields: dict[str, Any]) -> bytes:
        """Format a log line whose time strftime fills in, because Python cannot run then."""
        line = Log(self.log.style, clock=lambda: 0.0).format_line("error", event, fields)
        line = line.replace("%", "%%").replace("1970-01-01T", "%Y-%m-%dT", 1)
        return line.replace("00:00:00", "%H:%M:%S", 1).encode()

    def _log_descriptor(self) -> int:
        """Duplicate the descriptor of the log, which stays open as long as the process."""
        try:
            return os.dup(self.log.stream.fileno())
        except (OSError, ValueError, AttributeError):  # a log in memory, or none
            pass
        try:
            return os.dup(2)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)

    def deadline(self, seconds: float, code: int) -> None:
        """End the process with this code after `seconds`, whatever it is doing."""
        self.heartbeat.deadline(seconds, int(code))

    def stop(self) -> None:
        """Stop watching."""
        self.heartbeat.stop()


def exit_within(seconds: float, code: int, log: Log) -> None:
    """End the process with this code within `seconds`, even if the interpreter hangs at exit.

    The interpreter waits for threads and for the exit handlers of libraries.
    """
    watchdog = Watchdog(math.inf, log)
    watchdog.start()
    watchdog.deadline(seconds, code)
