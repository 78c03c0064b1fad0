"""Which labels the events of a stream may have: any, those declared, or those met first.

A label that was never meant (the text "false" among booleans, a typing error) would become a class
of its own, and change what the scores of the others mean. So the labels of a stream close: no other
label is learned from then on. Only the order of events decides when that is.
"""

import msgspec

from streamlearn.errors import InvalidEventError

from streamlearn.features.pieces import shown
from streamlearn.stream.formats.fields import Fields

PAIRS = ({0, 1}, {-1, 1})  # of booleans too: they equal 0 and 1
SHOWN = 5  # values that are compared with the positive ones
BOOLEAN_TEXTS = {"true": True, "false": False}


cdef class LabelSet:
    """The labels of a stream.

    - Declared (`fields.labels`, `fields.positive`): these and no others.
    - Closing (`fields.warmup`): those of the first `warmup` labeled events, of two at least; a pair
      of booleans, of 0 and 1, or of -1 and 1 is complete by itself.
    - Open, if neither is given.

    Unless they are open: where the first label is a boolean, "true" and "False" are booleans too.
    Unless they are declared: `fields.max_classes` bounds how many there are. `classes=False`:
    labels are numbers to be predicted, of which only declared ones are checked.

    >>> from streamlearn.stream import Fields
    >>> labels = LabelSet(Fields(warmup=1000))
    >>> labels.meet(True), labels.closed, labels.meet(False), labels.closed
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
        self.negative_values = []
        self.allowed = fields.labels
        self.declared = positive is not None or fields.labels is not None
        closes = classes and not self.declared
        self.warmup = fields.warmup if closes else None
        self.due = -1 if self.warmup is None else self.warmup
        self.most = fields.max_classes if closes else None
        self.anything = closes and self.warmup is None and self.most is None or (
            not classes and not self.declared)
        if positive is not None:
            self.set_labels((False, True))
            self.detect_booleans(positive)
        else:
            self.set_labels(fields.labels or ())
        self.closed = self.declared

    @classmethod
    def complete(cls, labels):
        """These labels, closed: those of a model that learns no more.

        >>> LabelSet.complete(["ham", "spam"]).positive
        'spam'
        """
        cdef LabelSet found = cls(Fields())
        found.set_labels(labels)
        found.declared = found.closed = True
        return found

    cdef int set_labels(self, labels) except -1:
        """These labels are known."""
        self.labels = list(labels)
        self.known = dict.fromkeys(self.labels)
        self.detect_booleans(self.labels)
        return 0

    cdef int detect_booleans(self, labels) except -1:
        """Texts are booleans too if the first of these labels is one; never if labels are open."""
        self.booleans = (self.declared or self.warmup is not None) and (
            len(labels) > 0 and isinstance(labels[0], bool))
        return 0

    def __contains__(self, label):
        return label in self.known

    @property
    def positive(self):
        """Of two closed labels the greater number, or else the last one; None: not two, or open.
        """
        if not self.closed or len(self.labels) != 2:
            return None
        numbers = all([isinstance(label, (int, float)) for label in self.labels])
        return max(self.labels) if numbers else self.labels[1]

    cdef object taken(self, object value):
        """The label that a field's value stands for; InvalidEventError if it is not declared."""
        if self.booleans and isinstance(value, str):
            value = BOOLEAN_TEXTS.get(value.lower(), value)
        if self.allowed is not None and value not in self.allowed:
            raise self.refused(self.allowed)
        if self.positive_values is None:
            return value
        if value in self.positive_values:
            self.positive_seen = True
            return True
        if not self.positive_seen and len(self.negative_values) < SHOWN and (
                value not in self.negative_values):
            self.negative_values.append(value)
        return False

    def check(self, label):
        """InvalidEventError if this label, which is not known, may not be learned."""
        if self.closed:
            raise self.refused(self.labels)
        if self.most is not None and len(self.labels) >= self.most:
            raise InvalidEventError(
                f"there are {self.most} labels already; allow more (format.max_classes,"
                " --max-classes), or learn numbers by regression")

    cdef object refused(self, labels):
        """The refusal of another label than these."""
        listed = ", ".join([msgspec.json.encode(label).decode() for label in labels[:10]])
        more = ", .." if len(labels) > 10 else ""
        return InvalidEventError(
            f"not one of the labels {listed}{more}; to add one declare all (format.labels,"
            " --labels)")

    def meet(self, label=None):
        """A labeled event was learned, with this label if it is new; they may close by it."""
        if label is not None and label not in self.known:
            self.labels.append(label)
            self.known[label] = None
            self.detect_booleans(self.labels)
        self.close()

    cdef int close(self) except -1:
        """Close them if it is time."""
        if self.closed or self.warmup is None or len(self.labels) < 2:
            return 0
        if self.events >= self.warmup or (len(self.labels) == 2 and set(self.labels) in PAIRS):
            self.closed = True
            self.closed_at = self.events
        return 0

    # What a checkpoint keeps

    def state(self):
        """Ready for JSON."""
        return {
            "labels": list(self.labels), "closed": self.closed, "events": self.events,
            "positive_seen": self.positive_seen,
        }

    def restore(self, state):
        """Take over a state that `state` gave; what was declared since holds."""
        lost = [label for label in state["labels"] if self.declared and label not in self.known]
        if lost and self.positive_values is not None:
            raise InvalidEventError(
                f"the label {shown(lost[0])} was learned as it is, and positive values make labels"
                " true or false: leave them out (format.positive, --positive)")
        if lost:
            raise InvalidEventError(
                f"the label {shown(lost[0])} was learned, and is not among those declared; add it"
                " (format.labels, --labels)")
        self.events = state["events"]
        self.positive_seen = state["positive_seen"]
        if not self.declared:
            self.set_labels(state["labels"])
            self.closed = self.warmup is not None and state["closed"]
            self.close()
        self.closed_at = self.events if self.closed else 0
