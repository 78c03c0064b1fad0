from libc.math cimport fabs
from libc.stdint cimport uint8_t

from streamlearn.engine.events cimport Events, Tags
from streamlearn.features.reader cimport Reader
from streamlearn.stream.formats.label_set cimport LabelSet
from streamlearn.core.numbers cimport Decimal

cdef inline bint is_date(double seconds) noexcept nogil:
    """Whether a time is before the year 10,000: beyond, it is a number of another unit."""
    return fabs(seconds) < 253402300800.0


cdef struct KnownLabel:  # a label that is known by its text
    const char* text
    Py_ssize_t length
    double label
    int kind


cdef class Decoder:
    cdef readonly Reader reader
    cdef readonly object fields
    cdef readonly bint grow_always
    cdef public bint needs_id
    cdef readonly bint reads_headers  # whether `decode` needs the headers of records
    cdef bint has_root  # the event is inside of the record
    cdef bint entered  # the event of this record was found
    cdef bint is_bare  # but not of this one: its attributes are in headers
    cdef object headers  # of the current record, if they are given
    cdef readonly list classes
    cdef dict class_codes
    cdef list number_learners, class_learners  # learners of numbers, and of classes
    cdef readonly LabelSet labels
    cdef object latest  # the last event read as Python objects
    cdef bint accepts_any_number
    cdef double kept  # share of the negative events that the stream has
    cdef object new_label  # a label that is not known yet
    cdef double[16] number  # known labels
    cdef uint8_t[16] number_kind
    cdef int numbers
    cdef Tags tags
    cdef object kept_id
    cdef bint mapped  # labels are mapped to true or false
    cdef KnownLabel[16] spoken
    cdef Py_ssize_t known_count
    cdef list known_texts  # that `known` points into
    cdef bint time_is_feature
    cdef double time_scale
    cdef double earliest, before  # the window of times

    cdef int own(self, Events events) except -1
    cdef int begin(self) except -1 nogil
    cdef int take_attributes(self) except -1
    cdef bint is_outside(self) noexcept nogil
    cdef bint learned(self) noexcept nogil
    cdef int record(self, bytes value, Events events) except -1
    cdef int take_event(self, object event, Events events) except -1
    cdef int take_label(self, object value) except -1
    cdef int note_label(self, object label) except -1
    cdef int order_labels(self) except -1
    cdef int take_number(self, double value, int kind) except -1 nogil
    cdef int take_new_number(self, double value, int kind) except -1 with gil
    cdef int take_weight(self, object value) except -1
    cdef int take_id(self, object value) except -1
    cdef int take_time(self, object value) except -1
    cdef int take_decimal(self, Decimal* d, double x) except -1 nogil
    cdef bint find_known(self, const char* text, Py_ssize_t length) noexcept nogil
    cdef int take_text(self, const char* text, Py_ssize_t length) except -1
    cdef int check(self, object label) except -1
    cdef int add_label(self) except -1
    cdef bint grows(self) noexcept nogil
    cdef int push(self, Events events) except -1 nogil
