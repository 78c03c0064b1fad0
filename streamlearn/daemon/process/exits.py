"""Exit codes: why the daemon ended, so that a supervisor can decide whether to restart it."""

from __future__ import annotations

from enum import IntEnum

from streamlearn.errors import (
    RegistryError,
    SinkDeniedError,
    SinkError,
    SinkFencedError,
    SinkNotFoundError,
    SourceChangedError,
    SourceDeniedError,
    SourceError,
    SourceNotFoundError,
    StoreDeniedError,
    StoreError,
    TableMismatchError,
)


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0
    CRASH = 1
    USAGE = 2
    SOURCE = 3
    SOURCE_CHANGED = 4
    INVALID_RECORDS = 5
    CHECKPOINT = 6
    FENCED = 7
    WATCHDOG = 8
    OWNED = 9
    UNSAVED = 10
    DENIED = 11
    NOT_FOUND = 12
    NOTHING_LEARNED = 13
    NO_CHECKPOINT = 14
    REGISTRY = 15


DESCRIPTIONS = {
    Exit.OK: "stopped as requested: by a signal, or --until",
    Exit.CRASH: "unexpected error; the log has the traceback",
    Exit.USAGE: "invalid command line or configuration",
    Exit.SOURCE: "the source or an output is unreachable, or failed otherwise",
    Exit.SOURCE_CHANGED: "not the stream of the checkpoint, or its position is gone: see --on-gap",
    Exit.INVALID_RECORDS: "too many invalid records: see --skip-to",
    Exit.CHECKPOINT: "no checkpoint could be written for too long, or none is readable",
    Exit.FENCED: "another instance has taken over",
    Exit.WATCHDOG: "the loop hung; the log has the stacks",
    Exit.OWNED: "another instance owns the models, and standby = false",
    Exit.UNSAVED: "stopped as requested, but without a final checkpoint",
    Exit.DENIED: "the source, an output or the object store denied access",
    Exit.NOT_FOUND: "no such topic or file",
    Exit.NOTHING_LEARNED: "the end was reached, but no record could be learned",
    Exit.NO_CHECKPOINT: "no checkpoint, though one is required, or its directory is gone",
    Exit.REGISTRY: "the schema registry does not answer, or denied access",
}


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


EXIT_CODES: dict[type[SourceError | SinkError | StoreError], Exit] = {
    RegistryError: Exit.REGISTRY,
    SourceChangedError: Exit.SOURCE_CHANGED,
    SourceDeniedError: Exit.DENIED,
    SourceNotFoundError: Exit.NOT_FOUND,
    TableMismatchError: Exit.USAGE,
    SinkDeniedError: Exit.DENIED,
    SinkFencedError: Exit.FENCED,
    SinkNotFoundError: Exit.NOT_FOUND,
    StoreDeniedError: Exit.DENIED,
    StoreError: Exit.CHECKPOINT,
}


def exit_code(error: SourceError | SinkError | StoreError) -> Exit:
    """Return the exit code for an error of a source, an output or the store of checkpoints.

    >>> exit_code(SourceNotFoundError("no topic 'cliks'"))
    <Exit.NOT_FOUND: 12>
    >>> exit_code(SinkError("not all records delivered"))
    <Exit.SOURCE: 3>
    """
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), Exit.SOURCE)
