"""Exit codes: what ended the daemon, so that a supervisor knows whether to start it again."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0  # the end that was asked for: a signal, or --until
    CRASH = 1  # an error nobody foresaw; the log has its stack
    USAGE = 2  # the command line or the config file
    SOURCE = 3  # the source or an output is not there, not reachable, or refuses the log-in
    STREAM = 4  # not the stream of the checkpoint, or its position is gone: see --on-gap
    BAD_EVENTS = 5  # too many events that cannot be read: see --skip-to
    CHECKPOINT = 6  # no checkpoint could be written for too long, or none can be read
    FENCED = 7  # another instance has taken over
    WATCHDOG = 8  # the loop was silent for too long; the log has its stack
    OWNED = 9  # another instance owns the models, and this one is not to wait as a standby
    UNSAVED = 10  # stopped as asked, but without a last checkpoint: what followed is learnt again


class Stop(Exception):
    """The daemon ends, with this exit code and this reason."""

    def __init__(self, code: Exit, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Fenced(Stop):
    """Another instance has taken over: nothing more may be published, renamed or committed."""

    def __init__(self, reason: str) -> None:
        super().__init__(Exit.FENCED, reason)
