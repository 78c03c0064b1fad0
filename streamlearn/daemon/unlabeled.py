"""Events without a label where one is expected: its field is misspelled, or was renamed."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn.daemon.log import Log
    from streamlearn.stream import Decoder

MANY = 1000  # events in a row
NAMES = 1000  # fields that are compared with the label's


class Unlabeled:
    """Logs that many events in a row had no label, once until there is one again."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.logged = False

    def look(self, events: int, decoder: Decoder) -> None:
        """So many events have come since the last one with a label."""
        if events < MANY:
            self.logged = False
        elif not self.logged:
            self.logged = True
            self.log.limited("no labels", "warning", "no labels", events=events, **about(decoder))


def about(decoder: Decoder) -> dict[str, Any]:
    """The label's field, and the fields of records whose names are nearest to it."""
    label = decoder.fields.label
    names = list(islice(decoder.field_names(), NAMES))
    if label is None or label in names:
        return {"field": label}
    near = difflib.get_close_matches(label, names, 3)
    return {"field": label, "nearest": near} if near else {"field": label, "fields": names[:20]}
