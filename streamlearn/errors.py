"""What streamlearn raises of its own; every one also is the built-in error it is a case of."""

from __future__ import annotations

NO_ID = "there is no id, by which features and label could find each other"


class StreamlearnError(Exception):
    """The base of all errors that are streamlearn's own."""


class InvalidEventError(StreamlearnError, ValueError):
    """An event that can't be read; nothing was changed by it.

    `field` is the name of the field at fault (dotted when nested), None for the event as a whole.

    >>> raise InvalidEventError("field 'age' is nan: values must be finite", "age")
    Traceback (most recent call last):
    ...
    streamlearn.errors.InvalidEventError: field 'age' is nan: values must be finite
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    def __reduce__(self) -> tuple[type[InvalidEventError], tuple[str, str | None]]:
        return type(self), (self.args[0], self.field)


class IncompatibleError(StreamlearnError, ValueError):
    """A combination of rule, penalty, loss or option that mathematics forbids."""


class ModelFileError(StreamlearnError, ValueError):
    """A saved model that is damaged, of a newer version, or of another kind than expected."""


class DivergenceError(StreamlearnError, ArithmeticError):
    """The score of an event is not finite, or its gradient too large: it was not learned.

    Of an event given alone nothing stays, no name either. The names of a batch are known once it
    is read, before its first event is learned, and stay without a weight.
    """

    def __init__(
        self,
        message: str = (
            "the score of an event is not finite, or its gradient too large to be squared, so it "
            "was not learned: the steps are too long for features of this size; scale them, use a "
            "smaller step, or a rule that sets its own (the default)"
        ),
    ) -> None:
        super().__init__(message)


class SourceError(StreamlearnError, ValueError):
    """A stream that can't be read as asked: not there, not allowed, or not the one it was."""


class SourceUnreachable(SourceError):
    """Nothing answers where the stream should be: wrong address, network, or not started."""


class SourceDenied(SourceError):
    """The stream is there, but these credentials may not read it."""


class SourceNotFound(SourceError):
    """The server is there and lets us in, but has no such stream."""


class SourceChanged(SourceError):
    """The stream is not the one that the positions are of, or no longer holds them."""


class TableMismatch(SourceError):
    """A table whose columns are not those that were asked for."""


class SinkError(StreamlearnError, ValueError):
    """A place for output that is not there, not writable, or that has refused a record."""


class SinkFull(SinkError):
    """A place for output takes no more for now: what was handed over before is not delivered.

    `taken`: how many of the records of this call it took.
    """

    taken = 0


class SinkRefused(SinkError):
    """A record was refused for good: no checkpoint can pass it."""


class SinkFenced(SinkError):
    """Another writer has taken the place of this one: nothing more of it is accepted."""


class SinkDenied(SinkError):
    """The place for output is there, but these credentials may not write to it."""


class SinkNotFound(SinkError):
    """The server is there and lets us in, but has no such place for output."""
