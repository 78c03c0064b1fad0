"""The roles of an event's fields: label, weight, id, time; all others may be features.

Fields have the same names as features: `user`, or with dots for nested ones, `context.device`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from streamlearn.errors import InvalidEventError
from streamlearn.features.fields import Auto, FieldSpec, Ignore

Label = bool | int | float | str
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
ROLES = ("label", "weight", "id", "time")
DATA = "data"  # of a CloudEvent


class Learns(Protocol):
    """A learner that can check whether it can learn labels, and is told their order."""

    @property
    def learns(self) -> Literal["classes", "numbers", "restricted numbers"]:
        """The kind of labels that it learns."""

    def check_labels(self, labels: list[Any]) -> None:
        """Raise InvalidEventError unless these distinct labels can be learned in this order."""

    def order_labels(self, labels: list[Any]) -> None:
        """Say which of two classes is the positive one: the last of these labels."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The roles of an event's fields.

    Parameters
    ----------
    label
        The field of the label; None: events have none. An event without it, or where it is null,
        is predicted but not learned.
    positive
        The label's values that mean True; all others mean False. A number may also be written as
        text, as in a column of CSV that has other texts.
    labels
        The allowed values of the label; an event with another one is invalid. None: any.
    warmup
        Without `labels` and `positive`: classes close after this many labeled events with at least
        two labels; from then on an event with another label is invalid. None: never.
    max_classes
        Maximum number of classes if they are not declared; None: unlimited.
    weight
        The field of the event's weight, a finite number >= 0; 1 where it is missing.
    kept
        The share of the negative events that the stream has, if the others were left out at random:
        each weighs 1 / kept, so that losses and probabilities are those of all events. Labels are
        true and false, 0 and 1, or -1 and 1, or `positive` maps them to true and false.
    id
        The field of its id, a string or an integer.
    time
        The field of its time: a number of `time_unit` since 1970, or a string in ISO 8601.
    time_unit
        `"s"`, `"ms"`, `"us"` or `"ns"`.
    time_is_feature
        The time is a feature, too. Decoders set it if their reader declares the field.
    ignored
        Fields with a role elsewhere, such as the label where nothing is learned; not features.
    root
        The field that holds the event; all others are left out. None: the record is the event.
    cloudevents
        Records are CloudEvents: the event is the `data`, or the whole record if its attributes are
        in headers. Id and time are attributes, unless `id` and `time` name fields of the event.

    Examples
    --------
    >>> fields = Fields(label="clicked", ignored=("bought",))
    >>> fields.split({"clicked": True, "ad": "shoes", "bought": False})
    ({'ad': 'shoes'}, {'label': True})
    """

    label: str | None = "label"
    positive: tuple[Label, ...] | None = None
    labels: tuple[Label, ...] | None = None
    warmup: int | None = None
    max_classes: int | None = None
    weight: str | None = None
    kept: float = 1.0
    id: str | None = None
    time: str | None = None
    time_unit: str = "s"
    time_is_feature: bool = False
    ignored: tuple[str, ...] = ()
    root: str | None = None
    cloudevents: bool = False

    def __post_init__(self) -> None:
        for name in ("positive", "labels", "ignored"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checked(name, value))
        if self.time_unit not in UNITS:
            raise ValueError(f"time_unit={self.time_unit!r}: expected one of {', '.join(UNITS)}")
        if not 0.0 < self.kept <= 1.0:
            raise ValueError(f"kept={self.kept!r}: expected a share of the negatives, as 0.05")
        roles = self.roles
        if len(roles) < sum(getattr(self, role) is not None for role in ROLES):
            raise ValueError("label, weight, id and time must be different fields")
        if self.labels is not None and len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels={self.labels!r}: two of them are equal, as 1 and True are")
        if self.positive is not None and self.labels is not None:
            extra = [value for value in self.positive if value not in self.labels]
            if extra:
                raise ValueError(f"positive has {extra[0]!r}, which is not in labels: add it there")

    @cached_property
    def roles(self) -> dict[str, str]:
        """The role of each field that has one."""
        named = {role: getattr(self, role) for role in ROLES}
        return {name: role for role, name in named.items() if name is not None}

    @cached_property
    def aside(self) -> frozenset[str]:
        """The fields that are not features because of their role, here or elsewhere."""
        kept = {self.time} if self.time_is_feature else frozenset()
        return frozenset([*self.roles, *self.ignored]) - kept

    @cached_property
    def root_path(self) -> tuple[str, ...]:
        """The names of the fields, one in the other, of which the last holds the event."""
        root = DATA if self.cloudevents else self.root
        return () if root is None else tuple(root.split("."))

    @cached_property
    def outer_roles(self) -> dict[str, str]:
        """The role of each field outside of the event that has one."""
        if not self.cloudevents:
            return {}
        return {role: role for role in ("id", "time") if getattr(self, role) is None}

    def enter(self, record: Any) -> tuple[Any, dict[str, Any]]:
        """Return the event in a record, and the values of the roles outside of it.

        >>> Fields(root="data").enter({"data": {"ad": "shoes"}, "source": "web"})
        ({'ad': 'shoes'}, {})
        """
        found = {}
        if isinstance(record, Mapping):
            roles = self.outer_roles
            found = {role: record[name] for name, role in roles.items() if name in record}
        for name in self.root_path:
            record = record.get(name) if isinstance(record, Mapping) else None
        if not isinstance(record, Mapping):
            root = ".".join(self.root_path)
            raise InvalidEventError(f"the record has no object in the field {root!r}", root)
        return record, found

    @cached_property
    def flat(self) -> bool:
        """Whether none of these fields is nested."""
        return not any("." in name for name in (*self.roles, *self.ignored))

    def has_nested(self, name: str) -> bool:
        """Whether one of these fields is nested in this one."""
        return any(other.startswith(name + ".") for other in (*self.roles, *self.ignored))

    def unlabeled(self) -> Fields:
        """Return the roles where nothing is learned.

        >>> Fields(label="clicked", id="key").unlabeled().split({"clicked": True, "ad": "shoes"})
        ({'ad': 'shoes'}, {})
        """
        given = [name for name in (self.label, self.weight) if name is not None]
        return replace(
            self, label=None, positive=None, labels=None, warmup=None, max_classes=None,
            weight=None, ignored=(*self.ignored, *given),
        )  # fmt: skip

    def declared(self, spec: FieldSpec) -> Fields:
        """Return the roles where these declarations hold.

        >>> fields = Fields(time="at").declared(FieldSpec({"at": "time(hour)"}))
        >>> fields.split({"at": 0})
        ({'at': 0}, {'time': 0})
        """
        is_feature = not isinstance(spec.get(self.time or ""), Auto | Ignore | None)
        return replace(self, time_is_feature=True) if is_feature else self

    def split(self, event: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the features of an event, and the values of the roles."""
        found: dict[str, Any] = {}
        if not self.flat:
            return self._split(event, None, found), found
        features = dict(event.items())
        for name, role in self.roles.items():
            if name in features:
                keeps = role == "time" and self.time_is_feature
                found[role] = features[name] if keeps else features.pop(name)
        for name in self.ignored:
            features.pop(name, None)
        return features, found

    def _split(
        self, event: Mapping[str, Any], path: str | None, found: dict[str, Any]
    ) -> dict[str, Any]:
        features: dict[str, Any] = {}
        for key, value in event.items():
            name = key if path is None else f"{path}.{key}"
            role = self.roles.get(name)
            if role is not None:
                found[role] = value
            if role is not None and not (role == "time" and self.time_is_feature):
                continue
            if isinstance(value, Mapping) and self.has_nested(name):
                features[key] = self._split(value, name, found)
            elif name not in self.ignored:
                features[key] = value
        return features


def checked(name: str, value: Any) -> tuple[Any, ...]:
    """Return a list of values as a tuple; ValueError if it is not a list."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ValueError(f"{name}={value!r}: expected a list")
    values = tuple(value)
    kinds = str if name == "ignored" else bool | int | float | str
    for item in values:
        if not isinstance(item, kinds):
            raise ValueError(f"{name}: {item!r} is of type {type(item).__name__}")
    return values
