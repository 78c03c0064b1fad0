"""Events without a label, or a positive one: a field or a value is misspelled, or was renamed."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn.daemon.process.log import Log
    from streamlearn.stream import Decoder
    from streamlearn.stream.formats.label_set import LabelSet

UNLABELED_RUN = 1000  # events in a row
MAX_FIELDS = 1000  # fields that are compared with the label's


class LabelMonitor:
    """Logs that many events in a row had no label, or none a positive one; once until one has."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.logged = False
        self.logged_negative = False

    def check_run(self, events: int, decoder: Decoder) -> None:
        """So many events have come since the last one with a label."""
        if events < UNLABELED_RUN:
            self.logged = False
        elif not self.logged:
            self.logged = True
            self.log.rate_limited(
                "no labels", "warning", "no labels", events=events, **label_hint(decoder)
            )

    def check_positive(self, labels: LabelSet, least: int = UNLABELED_RUN) -> None:
        """At least so many labels, and none of the declared positive ones: logged once."""
        wanted = labels.positive_values
        if wanted is None or labels.positive_seen or labels.events < least or self.logged_negative:
            return
        self.logged_negative = True
        self.log.warning(
            "no positive labels",
            events=labels.events,
            positive=wanted,
            labels=labels.negative_values,
        )


def label_hint(decoder: Decoder) -> dict[str, Any]:
    """The label's field, and the fields of records whose names are nearest to it."""
    label = decoder.fields.label
    names = list(islice(decoder.field_names(), MAX_FIELDS))
    if label is None or label in names:
        return {"field": label}
    near = difflib.get_close_matches(label, names, 3)
    return {"field": label, "nearest": near} if near else {"field": label, "fields": names[:20]}
