"""JSON: one object a record."""

import msgspec

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from streamlearn.errors import BadEvent

from streamlearn.engine.events cimport Events
from streamlearn.stream.decoder cimport Decoder


cdef class JSONDecoder(Decoder):
    """Objects in JSON: what `json.loads` gives, as features read it.

    Payloads of a schema registry are recognised by their first byte: JSON in them is unwrapped.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> events = Events()
    >>> decoder = JSONDecoder(Names(), Fields(label="clicked"))
    >>> decoder.decode([b'{"ad": "shoes", "hour": 9, "clicked": true}', b'{"hour": "'], events)
    >>> decoder.reader.names(), events.labels, events.row_of(0)
    (['ad=shoes', 'hour'], array([1.]), [(0, 1.0), (1, 9.0)])
    >>> events.bad
    [(1, None, 'no JSON: Input data was truncated')]
    """

    cdef int record(self, bytes value, Events events) except -1:
        return self.slowly(self.unwrapped(value), events)

    cdef bytes unwrapped(self, bytes value):
        """The payload without the framing of a schema registry: a zero, and four bytes of id."""
        cdef const char* at = PyBytes_AS_STRING(value)
        cdef Py_ssize_t n = PyBytes_GET_SIZE(value)
        if n == 0 or at[0] != 0:
            return value
        if n > 5 and (at[5] == b"{" or at[5] == b" " or at[5] == b"\n"):
            return value[5:]
        raise BadEvent(
            "a schema registry's framing (a zero byte first) around something that is no JSON"
            " object: produce JSON, or name a decoder of your own, format.kind = 'module:callable'")

    cdef int slowly(self, bytes value, Events events) except -1:
        """Through Python objects: the meaning that a quicker way must have too."""
        try:
            event = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadEvent(f"no JSON: {error}") from None
        return self.take_event(event, events)
