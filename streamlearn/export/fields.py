"""The features that a model has learned, by the field that they come from."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlearn.errors import IncompatibleError
from streamlearn.features import Names
from streamlearn.features import fields as kinds
from streamlearn.features.fields.spec import OTHERS
from streamlearn.quality.importance import field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlearn.export.score import MixtureTerm
    from streamlearn.features import Reader
    from streamlearn.features.fields import Field

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PART_OF_TIME = re.compile(r"\.(hour|weekday|month)=(\w+)")
FLAGS = (kinds.Category, kinds.Buckets, kinds.Time, kinds.List)  # all their features have value 1


@dataclass
class LearnedField:
    """A field, and the slots of its features by the rest of their names."""

    name: str
    kind: Field
    slots: dict[str, int] = field(default_factory=dict)

    def is_flag(self, rest: str) -> bool:
        """Whether a feature has value 1 wherever it occurs."""
        return isinstance(self.kind, FLAGS) or (
            not isinstance(self.kind, kinds.Text) and "=" in rest
        )


def parts_of_time(field: LearnedField, target: str) -> dict[str, dict[int, int]]:
    """Return the slots of hours, weekdays (from 0) and months of a time, by these numbers."""
    kind = field.kind
    if not isinstance(kind, kinds.Time) or kind.order is not None:
        raise IncompatibleError(
            f"the field {field.name!r} is {str(kind)!r}: dates with an order cannot be exported to "
            f"{target}; export to json, or write them as 2026-01-31 and train again"
        )
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for rest, slot in field.slots.items():
        piece = PART_OF_TIME.fullmatch(rest)
        if piece is None:
            raise IncompatibleError(
                f"the feature {field.name + rest!r} cannot be exported to {target}; export to json"
            )
        part, value = piece.groups()
        found[part][WEEKDAYS.index(value) if part == "weekday" else int(value)] = slot
    return dict(found)


def learned_fields(reader: Reader, slots: Iterable[int], target: str) -> list[LearnedField]:
    """Return the fields of these slots; IncompatibleError if `target` cannot have them."""
    if not isinstance(reader, Names):
        raise IncompatibleError(
            f"{reader!r} keeps no names of features, which {target} needs; train with exact names, "
            "or export to json, whose weights are by hash"
        )
    if reader.fields.interactions:
        groups = ", ".join("^".join(group) for group in reader.fields.interactions)
        raise IncompatibleError(
            f"the interactions {groups} cannot be exported to {target}; export to json, or train "
            "without them"
        )
    declared = reader.fields
    found: dict[str, LearnedField] = {}
    for slot in slots:
        text = str(reader.name_of(slot))
        if text.startswith("#"):
            raise IncompatibleError(
                f"the table of names is full, and {text} stands for several features; train with a "
                "larger max_names"
            )
        name = field_of(text, declared)
        kind = declared.get(name, declared.get(OTHERS, kinds.Auto()))
        one = found.setdefault(name, LearnedField(name, kind))
        one.slots[text[len(name) :]] = slot
    for one in found.values():
        if isinstance(one.kind, kinds.Auto) and "" in one.slots and len(one.slots) > 1:
            raise IncompatibleError(
                f"the field {one.name!r} is a number in some events and text in others, which "
                f"{target} cannot tell apart; declare it, as in --field {one.name}=category"
            )
    return list(found.values())


def may_clip(member: MixtureTerm, fields: Sequence[LearnedField]) -> bool:
    """Return whether a sum may reach the ends where it is clipped."""
    if not member.clipped:
        return False
    size = 0.0
    for one in fields:
        terms = [(one.is_flag(rest), member.term(slot)) for rest, slot in one.slots.items()]
        flags = [abs(term.at(1.0)) for flag, term in terms if flag]
        others = [term.bound for flag, term in terms if not flag]
        several = isinstance(one.kind, kinds.List | kinds.Time)
        size += (sum(flags) if several else max(flags, default=0.0)) + sum(others)
    return not member.low < member.intercept - size <= member.intercept + size < member.high
