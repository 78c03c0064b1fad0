"""Exit codes: why the daemon ended, so that a supervisor can decide whether to restart it."""

from __future__ import annotations

from enum import IntEnum

from streamlearn.errors import (
    SinkDeniedError,
    SinkError,
    SinkFencedError,
    SinkNotFoundError,
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
    TableMismatchError,
)


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0  # stopped as requested: by a signal or --until
    CRASH = 1  # unexpected error; its stack is in the log
    USAGE = 2  # the command line or the config file
    SOURCE = 3  # the source or an output is unreachable, or failed in another way
    SOURCE_CHANGED = 4  # not the stream of the checkpoint, or its position is gone: see --on-gap
    INVALID_RECORDS = 5  # too many invalid records: see --skip-to
    CHECKPOINT = 6  # no checkpoint could be written for too long, or none can be read
    FENCED = 7  # another instance took over
    WATCHDOG = 8  # the loop was stalled; the stacks of its threads are in the log
    OWNED = 9  # another instance owns the models, and standby is disabled
    UNSAVED = 10  # stopped as requested, but without a final checkpoint
    DENIED = 11  # the source or an output refused the credentials or the permission
    NOT_FOUND = 12  # the topic or file does not exist
    NOTHING_LEARNED = 13  # the end was reached, and no record could be learned
    NO_CHECKPOINT = 14  # a required checkpoint is missing, or its directory disappeared


class Stop(Exception):
    """Stop the daemon with an exit code and a reason."""

    def __init__(self, code: Exit, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Fenced(Stop):
    """Another instance took over: publish, rename and commit nothing more."""

    def __init__(self, reason: str) -> None:
        super().__init__(Exit.FENCED, reason)


EXIT_CODES: dict[type[SourceError | SinkError], Exit] = {
    SourceChangedError: Exit.SOURCE_CHANGED,
    SourceDeniedError: Exit.DENIED,
    SourceNotFoundError: Exit.NOT_FOUND,
    TableMismatchError: Exit.USAGE,
    SinkDeniedError: Exit.DENIED,
    SinkFencedError: Exit.FENCED,
    SinkNotFoundError: Exit.NOT_FOUND,
}


def exit_code(error: SourceError | SinkError) -> Exit:
    """Return the exit code for an error of a source or an output.

    >>> exit_code(SourceNotFoundError("no topic 'cliks'"))
    <Exit.NOT_FOUND: 12>
    >>> exit_code(SinkError("not all records delivered"))
    <Exit.SOURCE: 3>
    """
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), Exit.SOURCE)
