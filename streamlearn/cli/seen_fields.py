"""Which fields, of a model or declared, were in no event, as after a renaming."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.features import Names
from streamlearn.features.fields import Ignore, Interaction
from streamlearn.features.fields.spec import OTHERS
from streamlearn.quality.importance import field_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.engine.events import Events
    from streamlearn.features import Reader

MIN_EVENTS = 100  # fewer may lack a field by chance
MAX_SHOWN = 10


class SeenFields:
    """Finds the fields of a model's features with a weight that no event had.

    >>> import streamlearn as sl
    >>> from streamlearn.stream import Events, JSONDecoder
    >>> model = sl.LinearClassifier()
    >>> model.learn_one({"price": 1.0, "user": "ann"}, True)
    >>> seen, events = SeenFields(model), Events()
    >>> JSONDecoder(model.reader).decode([b'{"Price": 2.0, "user": "ann"}'] * 100, events)
    >>> seen.add(events)
    >>> seen.absent()
    ['price']
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._events = 0
        self._seen = np.zeros(model.reader.size, dtype=bool)

    def add(self, events: Events) -> None:
        """Add decoded events."""
        self._events += len(events)
        slots = events.slots
        self._seen[slots[slots < len(self._seen)]] = True

    def absent(self) -> list[str]:
        """Return the fields that are absent; none of few events, or if hashes keep no names."""
        reader = self.model.reader
        if not isinstance(reader, Names) or self._events < MIN_EVENTS:
            return []
        weights = np.atleast_2d(self.model.coefficients())
        learned = np.flatnonzero(np.any(weights != 0.0, axis=0))
        interacts = bool(reader.fields.interactions)
        found: dict[str, bool] = {}
        for slot in learned.tolist():
            name = field_of(reader.name_of(slot), reader.fields, interacts=interacts)
            found[name] = found.get(name, False) or bool(self._seen[slot])
        return sorted(name for name, seen in found.items() if not seen)

    def report(self, command: str) -> None:
        """Print a note if fields are absent."""
        if absent := self.absent():
            more = f" and {len(absent) - MAX_SHOWN:,} more" if len(absent) > MAX_SHOWN else ""
            sys.stderr.write(
                f"streamlearn {command}: no event had what the model learned of "
                f"{', '.join(absent[:MAX_SHOWN])}{more}\n"
            )


def report_declared(command: str, reader: Reader, options: Options) -> None:
    """Print a note for each declared field that gave no feature."""
    for name in without_features(reader, options.field or ()):
        sys.stderr.write(
            f"streamlearn {command}: no event had a feature of the field {name!r} (--field)\n"
        )


def without_features(reader: Reader, declared: Iterable[str]) -> list[str]:
    """Return the declared fields that gave no feature; none if hashes keep no names."""
    if not isinstance(reader, Names):
        return []
    names = {name.strip() for one in declared for name in one.partition("=")[0].split(",")}
    given = {
        field_of(str(reader.name_of(slot)), reader.fields) for slot in range(reader.name_count)
    }
    silent = Ignore | Interaction | None
    return sorted(
        name for name in names - given - {OTHERS} if not isinstance(reader.fields.get(name), silent)
    )
