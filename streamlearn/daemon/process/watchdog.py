"""The watchdog: end the process if its loop stalls, with the stacks of all threads in the log.

Its thread never needs the GIL, so that it also works while a native call holds it. faulthandler
dumps the stacks; `kill -USR2 PID` dumps those of a healthy process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from typing import Any

from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.heartbeat import Heartbeat, ignore, watch_exit
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
        stalled = log_line(
            self.log,
            "loop stalled",
            {"seconds": self.seconds, "exit": int(Exit.WATCHDOG), "stacks": "below"},
        )
        threading.Thread(
            target=self.heartbeat.watch,
            args=(
                self.seconds,
                int(Exit.WATCHDOG),
                int(signal.SIGUSR2),
                stacks_descriptor(self.log),
                stalled,
                overdue_line(self.log),
            ),
            name="watchdog",
            daemon=True,
        ).start()

    def deadline(self, seconds: float, code: int) -> None:
        """End the process with this code after `seconds`, whatever it is doing."""
        self.heartbeat.deadline(seconds, int(code))

    def stop(self) -> None:
        """Stop watching."""
        self.heartbeat.stop()


def exit_within(seconds: float, code: int, log: Log) -> None:
    """End the process with this code if the interpreter hangs at exit for `seconds`.

    The interpreter waits for threads and for the exit handlers of libraries. Time in which a busy
    machine lets the process wait for a processor does not count.
    """
    threading.Thread(
        target=watch_exit,
        args=(seconds, code, int(signal.SIGUSR2), stacks_descriptor(log), overdue_line(log)),
        name="watchdog",
        daemon=True,
    ).start()


def overdue_line(log: Log) -> bytes:
    """Return the line about a process that does not end."""
    return log_line(log, "shutdown timed out", {"stacks": "below"})


def log_line(log: Log, event: str, fields: dict[str, Any]) -> bytes:
    """Format a log line whose time strftime fills in, because Python cannot run then."""
    line = Log(log.style, clock=lambda: 0.0).format_line("error", event, fields)
    line = line.replace("%", "%%").replace("1970-01-01T", "%Y-%m-%dT", 1)
    return line.replace("00:00:00", "%H:%M:%S", 1).encode()


def stacks_descriptor(log: Log) -> int:
    """Dump stacks to the log at SIGUSR2 from now on; return the descriptor of the log."""
    handle = log_descriptor(log)
    # At exit the interpreter restores the previous handler of the signal. The default one ends
    # the process by the signal, without its exit code, so ignore the signal first.
    faulthandler.unregister(signal.SIGUSR2)
    ignore(signal.SIGUSR2)
    faulthandler.register(signal.SIGUSR2, file=handle, all_threads=True)
    return handle


def log_descriptor(log: Log) -> int:
    """Duplicate the descriptor of the log, which stays open as long as the process."""
    try:
        return os.dup(log.stream.fileno())
    except (OSError, ValueError, AttributeError):  # a log in memory, or none
        pass
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
