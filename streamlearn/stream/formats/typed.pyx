"""The base of formats whose values have types: labels, weights, ids and times."""

from libc.math cimport isfinite
from libc.stdint cimport uint64_t

from streamlearn.engine.events cimport BOOL, FLOAT, INT
from streamlearn.features.scalars cimport Scalar
from streamlearn.features.transforms cimport A_BOOL, A_TEXT, Value
from streamlearn.stream.formats.decoder cimport Decoder
from streamlearn.stream.formats.keys cimport ID, LABEL, WEIGHT, Role

cdef double EXACT = 9007199254740992.0  # 2**53: a float64 holds integers up to here


cdef class TypedDecoder(Decoder):
    """The base of formats whose values have types."""

    cdef int begin(self) except -1 nogil:
        """Begin a new event."""
        self.has_label = False
        return Decoder.begin(self)

    cdef int take_role(self, Role role, Scalar* scalar) except -1:
        """Take the value of a field with a role; the label waits for `set_label`."""
        cdef Value* value = &scalar.value
        if role == LABEL:
            self.label = scalar[0]
            self.has_label = True
        elif role == WEIGHT:
            self.take_weight(self.as_object(scalar))
        elif role == ID and value.kind == A_TEXT:
            self.tags.id = value.text
            self.tags.id_length = value.length
        elif role == ID:
            self.take_id(self.as_object(scalar))
        elif scalar.seconds:
            self.tags.time = value.number * scalar.seconds
        else:
            self.take_time(self.as_object(scalar))
        return 0

    cdef int set_label(self) except -1:
        """Set the label, after the weight is known."""
        cdef Value* value = &self.label.value
        if not self.has_label:
            return 0
        if value.kind == A_TEXT:
            return self.take_text(value.text, value.length)
        if self.mapped or not isfinite(value.number) or (
                self.label.is_whole and not -EXACT <= value.number <= EXACT):
            return self.take_label(self.as_object(&self.label))
        if value.kind == A_BOOL:
            return self.take_number(value.number, BOOL)
        return self.take_number(value.number, INT if self.label.is_whole else FLOAT)

    cdef object as_object(self, Scalar* scalar):
        cdef Value* value = &scalar.value
        if value.kind == A_TEXT:
            return value.text[:value.length].decode()
        if value.kind == A_BOOL:
            return value.number != 0.0
        if scalar.is_whole:
            return <uint64_t>scalar.whole if scalar.is_unsigned else scalar.whole
        return value.number
