"""The labels that a stream may have: any, the declared ones, or the first ones.

An unintended label (the text "false" among booleans, a typing error) would become a class of its
own, and change the meaning of the other scores. So the labels of a stream close: from then on no
other label is learned. When they close depends only on the order of events.
"""

import msgspec

from streamlearn.core.labels import BOOLEAN_TEXTS, positive_last, spelled
from streamlearn.errors import InvalidEventError

from streamlearn.features.pieces import short_repr
from streamlearn.stream.formats.fields import Fields

PAIRS = ({0, 1}, {-1, 1})  # also of booleans, which equal 0 and 1
SHOWN = 5  # negative values that are kept for messages

cdef class LabelSet:
    """The labels of a stream.

    - Declared (`fields.labels`, `fields.positive`): only these.
    - Closing (`fields.warmup`): those of the first `warmup` labeled events, but at least two; a
      pair of booleans, of 0 and 1, or of -1 and 1 closes immediately.
    - Open, if neither is given.

    Unless they are open, one label has one spelling: if the first label is a boolean, "true" and
    "False" are booleans too. If labels are not declared, its type is that of all which can be
    written as such: after 1, "0" is the number; after "1", 0 is the text.
    Unless they are declared: `fields.max_classes` limits their number. `classes=False`: labels are
    numbers to predict, and are checked only if declared.

    >>> from streamlearn.stream import Fields
    >>> labels = LabelSet(Fields(warmup=1000))
    >>> labels.add(True), labels.closed, labels.add(False), labels.closed
    (None, False, None, True)
    >>> labels.labels, labels.positive
    ([True, False], True)
    >>> try:
    ...     labels.check("maybe")
    ... except InvalidEventError as error:
    ...     print(error)
    not one of the labels true, false; to add one declare all (format.labels, --labels)
    """

    def __init__(self, fields, *, classes=True):
        positive = fields.positive
        self.positive_values = positive
        self.positive_seen, self.negative_values = [], []
        self.allowed = fields.labels
        self.declared = positive is not None or fields.labels is not None
        may_close = classes and not self.declared
        self.warmup = fields.warmup if may_close else None
        self.due = -1 if self.warmup is None else self.warmup
        self.most = fields.max_classes if may_close else None
        self.allows_any = may_close and self.warmup is None and self.most is None or (
            not classes and not self.declared)
        if positive is not None:
            self.set_labels((False, True))
            self.detect_booleans(positive)
        else:
            self.set_labels(fields.labels or ())
        self.closed = self.declared

    @classmethod
    def complete(cls, labels):
        """Return a closed set of these labels, such as those of a model that no longer learns.

        >>> LabelSet.complete(["ham", "spam"]).positive
        'spam'
        """
        cdef LabelSet found = cls(Fields())
        found.set_labels(labels)
        found.declared = found.closed = True
        return found

    cdef int set_labels(self, labels) except -1:
        """Replace the known labels."""
        self.labels = list(labels)
        self.known = {label: label for label in self.labels}
        self.detect_booleans(self.labels)
        return 0

    cdef int detect_booleans(self, labels) except -1:
        """Read texts as booleans if the first of these labels is one and labels are not open."""
        self.booleans = (self.declared or self.warmup is not None) and (
            len(labels) > 0 and isinstance(labels[0], bool))
        return 0

    def __contains__(self, label):
        return label in self.known

    @property
    def order(self):
        """Declared labels, or the first two, with the positive one of two last.

        A later label does not change which of the first two is the positive one.
        """
        if self.declared and not all([isinstance(label, (int, float)) for label in self.labels]):
            return list(self.labels)
        return positive_last(self.labels[:2])

    @property
    def positive(self):
        """The last one of two closed labels in their order; None if open or not two."""
        return self.order[1] if self.closed and len(self.labels) == 2 else None

    cdef object normalized(self, object value):
        """Return the label for a field's value; InvalidEventError if it is not declared."""
        if self.booleans and isinstance(value, str):
            value = BOOLEAN_TEXTS.get(value.lower(), value)
        else:
            value = self.like_the_first(value)
        if self.allowed is not None and value not in self.allowed:
            raise self.refusal(self.allowed)
        if self.positive_values is None:
            return value
        positive = self.positive_as(value)
        if positive:
            if positive[0] not in self.positive_seen:
                self.positive_seen.append(positive[0])
            return True
        if len(self.negative_values) < SHOWN and value not in self.negative_values and (
                self.positive_unseen):
            self.negative_values.append(value)
        return False

    cdef list positive_as(self, object value):
        """Return the positive value that this one is, or writes as in a column of texts."""
        found = [one for one in self.positive_values if one == value]
        if found or not isinstance(value, str):
            return found
        try:
            number = float(value)
        except ValueError:
            return found
        return [one for one in self.positive_values if one == number]

    @property
    def positive_unseen(self):
        """The declared positive values that have not occurred."""
        return [one for one in self.positive_values or () if one not in self.positive_seen]

    cdef object like_the_first(self, object value):
        """Return a label of the first one's type that is written like this value, or the value."""
        if self.warmup is None or not self.labels or value in self.known or (
                isinstance(self.labels[0], str) == isinstance(value, str)):
            return value
        if isinstance(value, str):
            found = spelled(value)
            return value if found is None or isinstance(found, bool) else found
        for label in self.labels:  # which may be written "True", or "1.0"
            written = spelled(label) if isinstance(label, str) else None
            if isinstance(written, bool) == isinstance(value, bool) and written == value:
                return label
        return msgspec.json.encode(value).decode()

    def check(self, label):
        """Raise InvalidEventError if this new label may not be learned."""
        if self.closed:
            raise self.refusal(self.labels)
        if self.most is not None and len(self.labels) >= self.most:
            raise InvalidEventError(
                f"there are already {self.most} labels; allow more (format.max_classes,"
                " --max-classes), or use regression for numbers")

    cdef object refusal(self, labels):
        """Return the error for a label that is not one of these."""
        listed = ", ".join([msgspec.json.encode(label).decode() for label in labels[:10]])
        more = ", .." if len(labels) > 10 else ""
        return InvalidEventError(
            f"not one of the labels {listed}{more}; to add one declare all (format.labels,"
            " --labels)")

    def add(self, label=None):
        """Count a learned event, with this label if it is new; labels may close."""
        if label is not None and label not in self.known:
            self.labels.append(label)
            self.known[label] = label
            self.detect_booleans(self.labels)
        self.close()

    def count(self, events, positive_seen=(), negative_values=()):
        """Count learned events whose labels were checked elsewhere.

        `positive_seen`: the positive values that occurred; `negative_values`: some others.
        """
        self.events += events
        self.positive_seen += [one for one in positive_seen if one not in self.positive_seen]
        if self.positive_unseen:
            unseen = [one for one in negative_values if one not in self.negative_values]
            self.negative_values += unseen[:SHOWN - len(self.negative_values)]
        self.close()

    cdef int close(self) except -1:
        """Close the labels if this is due."""
        if self.closed or self.warmup is None or len(self.labels) < 2:
            return 0
        if self.events >= self.warmup or (len(self.labels) == 2 and set(self.labels) in PAIRS):
            self.closed = True
            self.closed_at = self.events
            if all([isinstance(label, str) for label in self.labels]):
                self.labels = positive_last(self.labels)  # as those that are declared
        return 0

    # What a checkpoint keeps

    def state(self):
        """Return the state, ready for JSON."""
        return {
            "labels": list(self.labels), "closed": self.closed, "events": self.events,
            "positive_seen": list(self.positive_seen),
        }

    def restore(self, state):
        """Restore a state that `state` returned; labels declared since then take precedence."""
        lost = [label for label in state["labels"] if self.declared and label not in self.known]
        if lost and self.positive_values is not None:
            raise InvalidEventError(
                f"the label {short_repr(lost[0])} was learned as it is, but positive values map"
                " labels to true or false: remove them (format.positive, --positive)")
        if lost:
            raise InvalidEventError(
                f"the label {short_repr(lost[0])} was learned, but is not declared; add it"
                " (format.labels, --labels)")
        self.events = state["events"]
        self.positive_seen = list(state["positive_seen"])
        if not self.declared:
            self.set_labels(state["labels"])
            self.closed = self.warmup is not None and state["closed"]
            self.close()
        self.closed_at = self.events if self.closed else 0
