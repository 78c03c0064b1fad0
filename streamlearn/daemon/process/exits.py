"""Exit codes: what ended the daemon, so that a supervisor knows whether to start it again."""

from __future__ import annotations

from enum import IntEnum

from streamlearn.errors import (
    SinkDenied,
    SinkError,
    SinkFenced,
    SinkNotFound,
    SourceChanged,
    SourceDenied,
    SourceError,
    SourceNotFound,
    TableMismatch,
)


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0  # the end that was asked for: a signal, or --until
    CRASH = 1  # an error nobody foresaw; the log has its stack
    USAGE = 2  # the command line or the config file
    SOURCE = 3  # the source or an output is not reachable, or failed in another way
    SOURCE_CHANGED = 4  # not the stream of the checkpoint, or its position is gone: see --on-gap
    INVALID_RECORDS = 5  # too many events that cannot be read: see --skip-to
    CHECKPOINT = 6  # no checkpoint could be written for too long, or none can be read
    FENCED = 7  # another instance has taken over
    WATCHDOG = 8  # the loop was silent for too long; the log has its stack
    OWNED = 9  # another instance owns the models, and this one is not to wait as a standby
    UNSAVED = 10  # stopped as asked, but without a last checkpoint: what followed is learned again
    DENIED = 11  # the source or an output is there, and refuses the login or the right
    NOT_FOUND = 12  # the server is there, and has no such topic; or there is no such file
    NOTHING_LEARNED = 13  # the end was reached, and none of the records could be learned
    NO_CHECKPOINT = 14  # there is none where one is required, or its directory went while it ran


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


EXIT_CODES: dict[type[SourceError | SinkError], Exit] = {
    SourceChanged: Exit.SOURCE_CHANGED,
    SourceDenied: Exit.DENIED,
    SourceNotFound: Exit.NOT_FOUND,
    TableMismatch: Exit.USAGE,
    SinkDenied: Exit.DENIED,
    SinkFenced: Exit.FENCED,
    SinkNotFound: Exit.NOT_FOUND,
}


def exit_code(error: SourceError | SinkError) -> Exit:
    """The exit code for a source or an output that failed.

    >>> exit_code(SourceNotFound("no topic 'cliks'"))
    <Exit.NOT_FOUND: 12>
    >>> exit_code(SinkError("not all records delivered"))
    <Exit.SOURCE: 3>
    """
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), Exit.SOURCE)
