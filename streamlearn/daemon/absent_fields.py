"""Fields of weights, ids and times that no event has, as after a misspelling."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamlearn.engine.events import Events
    from streamlearn.stream import Decoder

MAX_FIELDS = 1000  # field names compared with the absent one
MAX_SHOWN = 20


class AbsentFields:
    """Finds the fields with a role that no event had; labels have `LabelMonitor`.

    >>> from streamlearn.features import Names
    >>> from streamlearn.stream import Events, Fields, JSONDecoder
    >>> decoder, events = JSONDecoder(Names(), Fields(weight="wieght", id="id")), Events()
    >>> decoder.decode([b'{"id": 1, "weight": 2.5}'] * 2, events)
    >>> absent = AbsentFields(decoder)
    >>> absent.add(events)
    >>> absent.events, absent.found()
    (2, {'weight': 'wieght'})
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.events = 0
        self._missing = [role for role in SIGNS if getattr(decoder.fields, role) is not None]

    def add(self, events: Events) -> None:
        """Add decoded events."""
        self.events += len(events)
        if self._missing and len(events):
            self._missing = [role for role in self._missing if not SIGNS[role](events)]

    def found(self) -> dict[str, str]:
        """Return the absent field of each role; a weight of 1 throughout may be in the records."""
        names = {role: getattr(self.decoder.fields, role) for role in self._missing}
        known = self.decoder.field_names() if names else ()
        return {role: name for role, name in names.items() if name not in known}

    def end(self) -> None:
        """Look no further."""
        self._missing = []


# whether an event may have the field
SIGNS: Mapping[str, Callable[[Events], bool]] = {
    "weight": lambda events: bool((events.weights != 1.0).any()),
    "id": lambda events: any(events.id_of(i) is not None for i in range(len(events))),
    "time": lambda events: not bool(np.isnan(events.times).all()),
}


def field_hint(name: str | None, decoder: Decoder) -> dict[str, Any]:
    """Return a field, and the most similar field names of the records if they do not have it."""
    names = list(islice(decoder.field_names(), MAX_FIELDS))
    if name is None or name in names:
        return {"field": name}
    similar = difflib.get_close_matches(name, names, 3)
    return {"field": name, **({"similar": similar} if similar else {"fields": names[:MAX_SHOWN]})}
