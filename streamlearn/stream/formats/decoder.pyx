"""The base of all formats: decode records into events, or reject them one by one.

A format is a `Decoder` with its own `record`. Every record is checked completely, with its label,
before any of its names is looked up, so a rejected record changes nothing.
"""

import math
from collections.abc import Mapping

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport INFINITY, NAN, isfinite, isnan
from libc.string cimport memcmp

from streamlearn.core.times import timestamp
from streamlearn.core.weights import MAX_WEIGHT
from streamlearn.errors import NO_ID, NO_TIME, InvalidEventError

from streamlearn.engine.events cimport BOOL, CLASS, FLOAT, INT, UNLABELED, Events, Kind
from streamlearn.features.reader cimport Reader
from streamlearn.stream.formats.label_set cimport LabelSet
from streamlearn.core.numbers cimport Decimal, is_exact

from streamlearn.features.pieces import short_repr
from streamlearn.stream.formats.fields import UNITS, Fields

cdef str CLOUD_EVENT = "ce_"  # before the names of attributes in headers
cdef double EXACT = 9007199254740992.0  # 2**53: a float64 holds integers up to here
cdef double LARGEST_WEIGHT = MAX_WEIGHT
cdef object LEAST = -(1 << 63)  # integer labels have 64 bits, as in Arrow, Avro and Java
cdef object GREATEST = (1 << 63) - 1
cdef str NO_NEGATIVE = (
    "with `kept`, labels are true and false, 0 and 1, or -1 and 1; say which is positive"
    " (format.positive, --positive)")
cdef Py_ssize_t LONGEST = 1024  # maximum characters of a label, as all labels are kept


cdef class Decoder:
    """The base of all formats.

    `reader` has the features that all learners share, `fields` the roles of other fields.
    `learners` check whether they can learn a label, `labels` whether the stream may have it. Events
    without a label are only predicted, so their new names are not kept, as in `predict_one`, unless
    `grow_always` is set, for labels that come in other events than the features. With `needs_id` a
    record without an id is invalid, as it joins labels to features.

    A label is a bool, a number, or a string of at most 1,024 characters; integers are exact, with
    at most 64 bits. An id is a string, or an integer of any size.
    """

    def __init__(self, reader, fields=None, learners=(), grow_always=False):
        if not isinstance(reader, Reader):
            raise ValueError(f"reader={reader!r}: expected Names() or Hashing()")
        self.reader = reader
        self.fields = (Fields() if fields is None else fields).declared(self.reader.fields)
        self.grow_always = grow_always
        self.classes = []
        self.class_codes = {}
        self.class_learners = [one for one in learners if one.learns == "classes"]
        self.number_learners = [one for one in learners if one.learns != "classes"]
        self.labels = LabelSet(self.fields, classes=len(self.class_learners) > 0)
        if self.labels.declared:
            self.order_labels()
        self.accepts_any_number = self.labels.allows_any and all(
            [one.learns == "numbers" for one in learners])
        self.known_texts = []
        self.mapped = self.fields.positive is not None
        self.kept = self.fields.kept
        self.time_scale = UNITS[self.fields.time_unit]
        self.earliest, self.before = -INFINITY, INFINITY
        self.time_is_feature = self.fields.time_is_feature
        self.has_root = len(self.fields.root_path) > 0
        self.reads_headers = self.fields.cloudevents

    def use_window(self, double earliest=-INFINITY, double before=INFINITY):
        """Decode only the events with a time in [earliest, before), in seconds since 1970.

        The others leave no trace but `Events.outside`. An event without a time is invalid.
        """
        self.earliest, self.before = earliest, before

    def share_labels(self, Decoder other):
        """Number labels as another decoder of the same stream does, and have one set of them."""
        self.classes, self.class_codes = other.classes, other.class_codes
        self.labels = other.labels

    def decode(self, values, Events events, order=None, headers=None):
        """Append the events of these records; null is a tombstone.

        `order`: the places in `values` to decode, in this order. `headers`: those of each record;
        only a decoder that `reads_headers` needs them.
        """
        cdef bytes value
        self.own(events)
        places = None if order is None else order.tolist()
        self.headers = following = None
        if headers is not None and self.reads_headers:
            following = iter(headers if places is None else map(headers.__getitem__, places))
        for value in values if places is None else map(values.__getitem__, places):
            if following is not None:
                self.headers = next(following)
            if value is None:
                events.tombstones += 1
            else:
                events.byte_count += PyBytes_GET_SIZE(value)
                try:
                    self.begin()
                    if self.has_root:
                        self.take_attributes()
                    self.record(value, events)
                except InvalidEventError as error:
                    events.refuse(error)
            events.records += 1

    cdef int own(self, Events events) except -1:
        """Attach the events to this decoder's labels."""
        if events.classes is not self.classes:
            if len(events):
                raise ValueError("these events belong to another decoder: call clear() first")
            events.classes = self.classes
        return 0

    cdef int record(self, bytes value, Events events) except -1:
        raise NotImplementedError

    cdef int begin(self) except -1 nogil:
        """Begin a new event."""
        if self.new_label is not None:
            with gil:
                self.new_label = None
        self.tags.kind = UNLABELED
        self.tags.label = NAN
        self.tags.weight = 1.0
        self.tags.time = NAN
        self.tags.id = NULL
        self.tags.id_length = 0
        return 0

    cdef int take_attributes(self) except -1:
        """Take the attributes of a CloudEvent that are in headers."""
        self.is_bare = False
        if not self.fields.cloudevents:
            return 0
        for name, value in self.headers or ():
            if not name.startswith(CLOUD_EVENT):
                continue
            self.is_bare = True
            role = self.fields.outer_roles.get(name[len(CLOUD_EVENT):])
            if role is not None and value is not None:
                text = value.decode(errors="replace")
                self.take_id(text) if role == "id" else self.take_time(text)
        return 0

    cdef int take_event(self, object event, Events events) except -1:
        """Append an event given as Python objects."""
        if not (isinstance(event, dict) or isinstance(event, Mapping)):
            raise InvalidEventError(
                f"an event must be an object with field names and values, not {short_repr(event)}")
        outer = {}
        if self.has_root and not self.is_bare:
            event, outer = self.fields.enter(event)
        self.latest = event
        features, roles = self.fields.split(event)
        roles.update(outer)
        if "weight" in roles:
            self.take_weight(roles["weight"])
        if "label" in roles:
            self.take_label(roles["label"])
        if "id" in roles:
            self.take_id(roles["id"])
        if "time" in roles:
            self.take_time(roles["time"])
        self.reader.read(features, self.grows())
        return self.push(events)

    cdef bint grows(self) noexcept nogil:
        """Whether the event is learned, so that its names are kept."""
        if self.needs_id and self.tags.id == NULL or self.is_outside():
            return False
        return self.grow_always or (self.tags.kind != UNLABELED and self.tags.weight != 0.0)

    cdef bint is_outside(self) noexcept nogil:
        """Whether the event is outside the window, or has no time to tell."""
        return (
            (self.earliest > -INFINITY or self.before < INFINITY)
            and not self.earliest <= self.tags.time < self.before)

    cdef bint learned(self) noexcept nogil:
        """Whether its label is learned; with `grow_always` the weight may be of another event."""
        return self.grow_always or self.tags.weight != 0.0

    cdef int push(self, Events events) except -1 nogil:
        if self.needs_id and self.tags.id == NULL:
            with gil:
                raise InvalidEventError(NO_ID, code="id")
        if self.tags.weight > LARGEST_WEIGHT:
            with gil:
                raise self.refusal(
                    "weight", f"is {self.tags.weight:g}: a weight is at most {LARGEST_WEIGHT:g}")
        if self.is_outside():
            if isnan(self.tags.time):
                with gil:
                    raise InvalidEventError(NO_TIME, code="time")
            events.outside += 1
            return 0
        if self.kept < 1.0 and self.tags.kind != UNLABELED and self.tags.label <= 0.0:
            self.tags.weight /= self.kept
        events.append(&self.reader.row, &self.tags, self.reader.size)
        if self.tags.kind != UNLABELED and self.learned():
            self.labels.events += 1
            if self.new_label is not None or self.labels.events == self.labels.due:
                with gil:
                    self.add_label()
        return 0

    # Labels

    def resolve_label(self, value):
        """Return the label that an event with this value would have, and add it."""
        self.begin()
        self.take_label(value)
        kind, label = self.tags.kind, self.tags.label
        if self.new_label is not None:
            self.add_label()
        if kind == CLASS:
            return self.classes[<Py_ssize_t>label]
        if kind == BOOL:
            return label != 0.0
        return int(label) if kind == INT else label

    def admit(self, label):
        """Add a label that `resolve_label` returned; InvalidEventError if it is not allowed."""
        self.check(label)
        self.note_label(label)

    cdef int take_label(self, object value) except -1:
        if value is None:
            self.tags.kind = UNLABELED
            return 0
        if not isinstance(value, (bool, int, float, str)):
            raise self.refusal(
                "label", f"is {short_repr(value)}: a label is a bool, a number or a string")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refusal("label", f"is {value}: a label is finite")
        try:
            value = self.labels.normalized(value)
        except InvalidEventError as error:
            raise self.refusal("label", f"is {short_repr(value)}: {error}") from None
        if isinstance(value, bool):
            return self.take_number(value, BOOL)
        if isinstance(value, float):
            return self.take_number(value, FLOAT)
        if isinstance(value, int) and -EXACT <= value <= EXACT:
            return self.take_number(value, INT)
        if isinstance(value, int) and not LEAST <= value <= GREATEST:
            raise self.refusal(
                "label", "is an integer of more than 64 bits: write it as a string, or as a float")
        if isinstance(value, int) and self.number_learners and not self.class_learners:
            return self.take_number(value, FLOAT)  # classes would be kept
        if self.kept < 1.0:
            raise self.refusal("label", f"is {short_repr(value)}: {NO_NEGATIVE}")
        code = self.class_codes.get(value)
        if code is None:
            if not self.learned():  # so it need not be learnable
                self.tags.kind = UNLABELED
                return 0
            if isinstance(value, str) and len(value) > LONGEST:
                raise self.refusal(
                    "label", f"is {short_repr(value)}: a label has at most {LONGEST} characters")
            self.check(value)
            code = len(self.classes)
            self.new_label = value
        self.tags.kind = CLASS
        self.tags.label = code
        return 0

    cdef int take_number(self, double value, int kind) except -1 nogil:
        cdef int i
        if self.kept < 1.0 and value != 0.0 and value != 1.0 and value != -1.0:
            with gil:
                raise self.refusal("label", f"is {value:g}: {NO_NEGATIVE}")
        self.tags.kind = <Kind>kind
        self.tags.label = value
        if self.accepts_any_number or not (self.learned() or self.labels.declared):
            return 0
        for i in range(self.numbers):
            if self.number[i] == value and self.number_kind[i] == kind:
                return 0
        return self.take_new_number(value, kind)

    cdef int take_new_number(self, double value, int kind) except -1 with gil:
        label = value
        if kind == BOOL:
            label = bool(value)
        elif kind == INT:
            label = int(value)
        known = self.labels.known.get(label, label)  # 0 also if this is false, or 0.0
        if type(known) is not type(label):
            return self.take_label(known)
        text = self.labels.like_the_first(label)
        if isinstance(text, str):
            return self.take_label(text)
        self.check(label)
        self.new_label = label
        return 0

    cdef int take_decimal(self, Decimal* d, double x) except -1 nogil:
        """Set a label of a text file, which is a number; -1 and 1 remain classes."""
        if isfinite(x) and not self.mapped and (is_exact(d) or not d.whole):
            return self.take_number(x, INT if d.whole else FLOAT)
        with gil:
            if not isfinite(x):
                raise self.refusal("label", "is too large for a float: scale it down")
            if not d.whole:
                return self.take_label(x)
            return self.take_label(-int(d.digits) if d.negative else int(d.digits))

    cdef bint find_known(self, const char* text, Py_ssize_t length) noexcept nogil:
        """Whether a label in UTF-8 is known; then set it."""
        cdef Py_ssize_t i
        for i in range(self.known_count):
            if self.spoken[i].length == length and memcmp(
                    self.spoken[i].text, text, length) == 0:
                self.tags.label = self.spoken[i].label
                self.tags.kind = <Kind>self.spoken[i].kind
                return True
        return False

    cdef int take_text(self, const char* text, Py_ssize_t length) except -1:
        """Set a label in UTF-8; known labels are recognized by their bytes."""
        cdef Py_ssize_t n = self.known_count
        cdef bytes kept
        if self.find_known(text, length):
            return 0
        kept = text[:length]
        self.take_label(kept.decode())
        if self.new_label is None and n < 16 and self.learned():
            self.known_texts.append(kept)
            self.spoken[n] = KnownLabel(
                PyBytes_AS_STRING(kept), length, self.tags.label, self.tags.kind)
            self.known_count += 1
        return 0

    cdef int check(self, object label) except -1:
        """Raise InvalidEventError if the stream or a learner does not allow this label."""
        try:
            for learner in self.number_learners:
                learner.check_labels([label])
            if label not in self.labels:
                self.labels.check(label)
                for learner in self.class_learners:
                    learner.check_labels([*self.labels.labels, label])
        except InvalidEventError as error:
            raise self.refusal("label", f"is {short_repr(label)}: {error}") from None
        return 0

    cdef int note_label(self, object label) except -1:
        """Count a learned event, with this label if it is new."""
        if self.class_learners:
            self.labels.add(label)
            if label is not None:
                self.order_labels()
        return 0

    cdef int order_labels(self) except -1:
        """Tell learners which of two labels is the positive one."""
        for learner in self.class_learners:
            learner.order_labels(self.labels.order)
        return 0

    cdef int add_label(self) except -1:
        """Add the new label of a valid event; labels may close after any event."""
        label, self.new_label = self.new_label, None
        self.note_label(label)
        if label is None:
            return 0
        if self.tags.kind == CLASS:
            self.class_codes[label] = len(self.classes)
            self.classes.append(label)
        elif self.numbers < 16:
            self.number[self.numbers] = self.tags.label
            self.number_kind[self.numbers] = self.tags.kind
            self.numbers += 1
        return 0

    # Weight, id and time

    cdef int take_weight(self, object value) except -1:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refusal("weight", f"is {short_repr(value)}: a weight is a number")
        try:
            self.tags.weight = float(value)
        except OverflowError:
            self.tags.weight = NAN
        if not (isfinite(self.tags.weight) and self.tags.weight >= 0.0):
            raise self.refusal("weight", f"is {short_repr(value)}: a weight is finite and >= 0")
        return 0

    cdef int take_id(self, object value) except -1:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise self.refusal("id", f"is {short_repr(value)}: an id is a string or an integer")
        try:
            self.kept_id = str(value).encode()
        except ValueError:  # a lone surrogate, or more digits than Python writes
            raise self.refusal("id", f"is {short_repr(value)}: it is not valid Unicode") from None
        self.tags.id = self.kept_id
        self.tags.id_length = len(self.kept_id)
        return 0

    cdef int take_time(self, object value) except -1:
        if value is None:
            return 0
        self.tags.time = NAN
        if isinstance(value, str):
            try:
                self.tags.time = timestamp(value)
            except ValueError:
                raise self.refusal(
                    "time", f"is {short_repr(value)}: a time is a number of"
                    f" {self.fields.time_unit!r} since 1970, or in ISO 8601") from None
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                self.tags.time = float(value) * self.time_scale
            except OverflowError:
                pass
        if not isfinite(self.tags.time):
            raise self.refusal(
                "time", f"is {short_repr(value)}: a time is a finite number of"
                f" {self.fields.time_unit!r} since 1970, or a string in ISO 8601")
        if not is_date(self.tags.time):  # every label would be late
            raise self.refusal(
                "time", f"is {short_repr(value)}: as a number of {self.fields.time_unit!r} since"
                " 1970 that is no date; set its unit (format.time_unit)")
        return 0

    def refusal(self, role, problem):
        """Return an InvalidEventError that names the field of this role."""
        name = getattr(self.fields, role) or role
        shown_name = f"field {name!r} ({role})" if name != role else f"the {role}"
        return InvalidEventError(f"{shown_name} {problem}", name, role)

    def schema_fields(self, topic):
        """Return the types of a topic's fields by name, as its schema has them."""
        return {}

    def take_schema_counts(self):
        """Return the number of records by the id of their schema, since the last call."""
        return {}

    @property
    def sample(self):
        """The number of first records that should be decoded together."""
        return 0

    def field_names(self):
        """Return the known fields of records, with dots for nested ones."""
        return [] if self.latest is None else paths(self.latest, "")

    # What a checkpoint keeps

    def state(self):
        """Return the labels, ready for JSON; the reader's state is kept apart."""
        return {"classes": list(self.classes), "labels": self.labels.state()}

    def restore(self, state):
        """Restore a state that `state` returned."""
        self.classes = list(state["classes"])
        self.class_codes = {label: code for code, label in enumerate(self.classes)}
        self.labels.restore(state["labels"])
        self.order_labels()
        self.known_texts = []
        self.known_count = self.numbers = 0


def paths(event, before):
    """Return the names of an event's fields, with dots for nested ones.

    >>> paths({"user": {"id": 3, "age": 41}, "ad": "shoes"}, "")
    ['user', 'user.id', 'user.age', 'ad']
    """
    found = []
    for name, value in event.items():
        found.append(f"{before}{name}")
        if isinstance(value, Mapping):
            found += paths(value, f"{before}{name}.")
    return found
