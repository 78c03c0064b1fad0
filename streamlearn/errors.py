"""The exceptions of streamlearn; each is also a built-in exception."""

from __future__ import annotations

NO_ID = "there is no id, by which features and labels are joined"
NO_TIME = "there is no time, by which history and stream are separated"


class StreamlearnError(Exception):
    """The base of all exceptions of streamlearn."""


class InvalidEventError(StreamlearnError, ValueError):
    """An invalid event or label; nothing was changed.

    `field` is the name of the invalid field (dotted if nested), or None for the whole event. `code`
    says what is invalid: the `"label"`, `"weight"`, `"id"`, `"time"`, the `"value"` of another
    field, the `"schema"` of a record, or its `"syntax"`.

    >>> raise InvalidEventError("field 'age' is nan: values must be finite", "age")
    Traceback (most recent call last):
    ...
    streamlearn.errors.InvalidEventError: field 'age' is nan: values must be finite
    """

    def __init__(self, message: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.code = code or ("syntax" if field is None else "value")

    def __reduce__(self) -> tuple[type[InvalidEventError], tuple[str, str | None, str]]:
        return type(self), (self.args[0], self.field, self.code)


class IncompatibleError(StreamlearnError, ValueError):
    """A combination of rule, penalty, loss or options that cannot work."""


class ModelFileError(StreamlearnError, ValueError):
    """A model file that is damaged, of a newer version, or of another class than expected."""


class DivergenceError(StreamlearnError, ArithmeticError):
    """An event that was not learned because its score or its squared gradient is not finite.

    A single event changes nothing. The new names of a batch stay, without weights, because they
    are added before its first event is learned.
    """

    def __init__(
        self,
        message: str = (
            "the event was not learned: its score is not finite, or its gradient too large to "
            "square, because steps are too long for features of this size. Scale the features, use "
            "a smaller step, or use a rule that sets its own steps (the default)"
        ),
    ) -> None:
        super().__init__(message)


class SourceError(StreamlearnError, ValueError):
    """A stream that cannot be read."""


class SourceUnreachableError(SourceError):
    """The server of a stream does not answer: wrong address, network, or not started."""


class SourceDeniedError(SourceError):
    """The credentials do not permit reading the stream."""


class SourceNotFoundError(SourceError):
    """The server has no such stream."""


class SourceChangedError(SourceError):
    """The positions belong to another stream, or the stream no longer contains them."""


class TableMismatchError(SourceError):
    """A table without the expected columns."""


class SinkError(StreamlearnError, ValueError):
    """A sink that cannot be written to, or that has refused a record."""


class SinkFullError(SinkError):
    """A sink whose buffer is full because earlier records are not delivered yet.

    `taken`: how many records of this call were accepted.
    """

    taken = 0


class SinkRefusedError(SinkError):
    """A record was refused permanently; no checkpoint may cover it."""


class SinkFencedError(SinkError):
    """Another writer has replaced this one, whose records are no longer accepted."""


class SinkDeniedError(SinkError):
    """The credentials do not permit writing to the sink."""


class SinkNotFoundError(SinkError):
    """The server has no such sink."""


class StoreError(StreamlearnError, OSError):
    """A store of checkpoints that does not answer, or cannot do what was asked."""


class StoreDeniedError(StoreError):
    """The credentials do not permit using the store of checkpoints."""


class SchemaError(StreamlearnError, ValueError):
    """A schema that records cannot be read by."""


class RegistryError(SourceError):
    """A schema registry that does not answer, refuses the login, or fails."""


class FleetError(SourceError):
    """A Ray cluster that is not installed, does not answer, or fails."""
