"""Declared fields that change while a model learns.

A slot belongs to the name of a feature. So a field may be added, dropped or ignored; but a field
that becomes another kind would give the same names another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streamlearn.features.fields import CheckedField, Field, Ignore, Number, parse
from streamlearn.features.fields.spec import OTHERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FIELDS = "features.fields"


@dataclass
class FieldChanges:
    """The declared fields that differ."""

    added: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)  # in what keeps the meaning of slots
    refused: list[str] = field(default_factory=list)  # the reasons

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped or self.changed or self.refused)


def split(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the fields among input settings, and the other settings."""
    start = f"{FIELDS}."
    fields = {
        name.removeprefix(start): text for name, text in settings.items() if name.startswith(start)
    }
    return fields, {name: text for name, text in settings.items() if not name.startswith(start)}


def compare(
    old: Mapping[str, str], new: Mapping[str, str], names: Collection[Any] = ()
) -> FieldChanges:
    """Compare declarations; `names` are the names of features that were learned, if known.

    >>> changes = compare({"a": "category"}, {"a": "category", "b": "number(log1p)"})
    >>> changes.added, changes.refused
    ({'b': 'number(log1p)'}, [])
    >>> compare({"a": "category"}, {"a": "text"}).refused
    ["field 'a' is category in the checkpoint, and now text"]
    """
    found = FieldChanges()
    for name in {**old, **new}:
        before, now = old.get(name), new.get(name)
        if before == now:
            continue
        if not keeps_meaning(name, before, now, names):
            found.refused.append(
                f"field {name!r} is {before or 'not declared'} in the checkpoint, and now"
                f" {now or 'not declared'}"
            )
        elif before is None:
            found.added[name] = str(now)
        elif now is None:
            found.dropped[name] = before
        else:
            found.changed[name] = f"{before} -> {now}"
    return found


def keeps_meaning(name: str, before: str | None, now: str | None, names: Collection[Any]) -> bool:
    """Return whether no feature's name gets another meaning."""
    old, new = (None if text is None else parse(text) for text in (before, now))
    if isinstance(new, Ignore) or isinstance(old, Ignore):
        return name != OTHERS
    if old is not None and new is not None:
        return meaning(old) == meaning(new)
    if name == OTHERS:
        return False
    # an undeclared number has the name of a declared one, without its transforms
    changed = any(isinstance(one, Number) and meaning(one) != Number() for one in (old, new))
    return not changed or (old is None and name not in names)


def meaning(one: Field) -> Field:
    """Return the field without what does not change the meaning of its features."""
    if isinstance(one, Number):
        one = replace(one, indicator=False)
    return replace(one, invalid="refuse") if isinstance(one, CheckedField) else one
