"""The watchdog: a silent loop ends the process, with the stacks of all threads in the log.

A thread that never needs the GIL looks at the loop's beats, so that it also works while a native
call holds it. The stacks are faulthandler's; `kill -USR2 PID` shows them of a healthy process too.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from streamlearn.daemon.exits import Exit
from streamlearn.daemon.pulse import Pulse

if TYPE_CHECKING:
    from streamlearn.daemon.log import Log


class Watchdog:
    """Ends the process when `beat` was not called for so many seconds."""

    def __init__(self, seconds: float, log: Log) -> None:
        self.seconds = seconds
        self.log = log
        self.pulse = Pulse()
        self.beat = self.pulse.beat

    def start(self) -> None:
        """Begin to watch."""
        try:
            handle = self.log.stream.fileno()
        except (OSError, ValueError, AttributeError):
            handle = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
        faulthandler.register(signal.SIGUSR2, file=handle, all_threads=True)
        silent = self.log.line(
            "error",
            "the loop is silent: the process ends; the stacks of its threads follow",
            {"seconds": self.seconds, "exit": int(Exit.WATCHDOG)},
        )
        late = self.log.line(
            "error", "the end takes too long: it is cut short; the stacks of its threads follow", {}
        )
        self._handle = os.dup(handle)
        threading.Thread(
            target=self.pulse.watch,
            args=(
                self.seconds,
                int(Exit.WATCHDOG),
                int(signal.SIGUSR2),
                self._handle,
                silent.encode(),
                late.encode(),
            ),
            name="watchdog",
            daemon=True,
        ).start()

    def deadline(self, seconds: float, code: Exit) -> None:
        """End the process with this code when so much time has passed, whatever it is doing."""
        self.pulse.deadline(seconds, int(code))

    def end(self) -> None:
        """Watch no more."""
        self.pulse.end()
