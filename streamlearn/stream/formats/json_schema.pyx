"""JSON records whose schemas are in a registry: JSON behind the id of a schema.

The schema is fetched and counted; values are read as any JSON, and not validated against it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from streamlearn.engine.events cimport Events
from streamlearn.stream.formats.framing cimport Framing
from streamlearn.stream.formats.json cimport JSONDecoder


cdef class JSONSchemaDecoder(JSONDecoder):
    """JSON records with the id of a schema."""

    cdef Framing framing

    def __init__(self, schemas, reader, fields=None, learners=(), grow_always=False):
        JSONDecoder.__init__(self, reader, fields, learners, grow_always)
        self.framing = Framing(schemas)
        self.reads_headers = True

    cdef int record(self, bytes value, Events events) except -1:
        cdef const char* first = PyBytes_AS_STRING(value)
        cdef Py_ssize_t length = self.framing.read(
            first, first + PyBytes_GET_SIZE(value), self.headers, False)
        return JSONDecoder.record(self, value[length:] if length else value, events)

    def schema_fields(self, topic):
        """Return the types of a topic's fields by name, as its schema has them."""
        return self.framing.schemas.fields(topic)

    def take_schema_counts(self):
        """Return the number of records by the id of their schema, since the last call."""
        return self.framing.take_counts()
