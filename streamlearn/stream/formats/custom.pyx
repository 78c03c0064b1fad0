"""Custom formats: a function from the bytes of a record to an event."""

from streamlearn.errors import InvalidEventError

from streamlearn.engine.events cimport Events
from streamlearn.stream.formats.decoder cimport Decoder


cdef class CustomDecoder(Decoder):
    """Decode records with a function.

    It returns the fields of an event as a mapping, or None for a record without an event; `fields`
    names its label, weight, id and time. If it raises an error, the record is invalid, with the
    error as the reason.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events
    >>> def pair(record):
    ...     name, label = record.decode().split()
    ...     return {"name": name, "label": int(label)}
    >>> decoder, events = CustomDecoder(pair, Names()), Events()
    >>> decoder.decode([b"ann 1", b"bob"], events)
    >>> decoder.reader.names(), events.invalid[0].reason
    (['name=ann'], 'ValueError: not enough values to unpack (expected 2, got 1)')
    """

    cdef object function

    def __init__(self, function, reader, fields=None, learners=(), grow_always=False):
        if not callable(function):
            raise ValueError(f"{function!r}: expected a function from bytes to an event")
        Decoder.__init__(self, reader, fields, learners, grow_always)
        self.function = function

    cdef int record(self, bytes value, Events events) except -1:
        try:
            event = self.function(value)
        except InvalidEventError:
            raise
        except Exception as error:
            raise InvalidEventError(f"{type(error).__name__}: {error}") from error
        if event is None:
            events.blank += 1
            return 0
        return self.take_event(event, events)
