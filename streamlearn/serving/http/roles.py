"""The fields of a request's events that are no features: id, time, label, and who it is for."""

from __future__ import annotations

import secrets
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from streamlearn.stream.formats.fields import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NULL = b"null"


class Roles:
    """Read, and complete, the fields of events that have a role.

    Parameters
    ----------
    fields
        The names of the fields `id`, `time` and `label`, and the `time_unit`.
    by
        The field that decides the arm of an A/B test.

    Examples
    --------
    >>> roles = Roles({"id": "id", "time": "at", "label": "clicked"}, by="user.name")
    >>> event = b'{"id": "e1", "user": {"name": "ann"}, "clicked": true}'
    >>> roles.user_of(event)
    'ann'
    >>> roles.completed(event, "e1", 1700000000.25)
    b'{"id":"e1","user":{"name":"ann"},"at":1700000000.250}'
    >>> roles.completed(b'{"id": "e1"}', "e1", 1700000000.25)
    b'{"at":1700000000.250,"id": "e1"}'
    """

    def __init__(self, fields: Mapping[str, Any], by: str | None = None) -> None:
        self.id, self.time, self.label = (fields.get(name) for name in ("id", "time", "label"))
        self.scale = 1.0 / UNITS[fields.get("time_unit", "s")]
        self.by = None if by is None else finder(by)
        named = {"id": self.id, "time": self.time, "label": self.label}
        self.ids = new_ids()
        self.known = {role: name for role, name in named.items() if name is not None}
        self.flat = not any("." in name for name in self.known.values())
        self.prefixes = [
            (role, msgspec.json.encode(field) + b":") for role, field in self.known.items()
        ]
        wanted = [(role, Raw | msgspec.UnsetType, UNSET) for role in self.known]
        self.decoder = msgspec.json.Decoder(
            msgspec.defstruct("Roles", wanted, rename=self.known, gc=False)
        )

    def user_of(self, record: bytes) -> str | None:
        """Return the text of the field that decides the arm; None if the event has none."""
        if self.by is None:
            return None
        try:
            found = self.by.decode(record)
            while isinstance(found, msgspec.Struct):
                found = found.value  # type: ignore[attr-defined]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None  # the event is invalid, and refused by who decodes it
        if found is UNSET or found is None:
            return None
        return found if isinstance(found, str) else msgspec.json.encode(found).decode()

    def completed(self, record: bytes, name: str, now: float) -> bytes:
        """Return a valid event with an id and a time, and without a label, as it is logged."""
        if not self.flat:
            return self.rewritten(record, name, now)
        try:
            found = self.decoder.decode(record)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self.rewritten(record, name, now)
        more = b""
        for role, prefix in self.prefixes:
            value = getattr(found, role)
            if value is UNSET and role != "label":
                more += prefix + self.default(role, name, now) + b","
            elif value is not UNSET and (role == "label" or bytes(value) == NULL):
                return self.rewritten(record, name, now)
        if not more:
            return record
        body = record.lstrip(b" \t\r\n")[1:]
        return b"{" + (more[:-1] if body.lstrip(b" \t\r\n")[:1] == b"}" else more) + body

    def timed(self, record: bytes, now: float) -> bytes:
        """Return an event with a time, which is a feature: it is predicted as it is logged.

        >>> Roles({"time": "at"}).timed(b'{"ad": "shoes"}', 1700000000.25)
        b'{"ad":"shoes","at":1700000000.250}'
        """
        try:
            event = msgspec.json.decode(record)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return record  # the event is invalid, and refused by who decodes it
        if not isinstance(event, dict) or look_up(event, self.known["time"]) is not None:
            return record
        place(event, self.known["time"], Raw(self.default("time", "", now)))
        return msgspec.json.encode(event)

    def default(self, role: str, name: str, now: float) -> bytes:
        """Return the value of a field that an event lacks."""
        if role == "id":
            return msgspec.json.encode(name)
        return b"%.3f" % now if self.scale == 1.0 else b"%d" % (self.scale * now)

    def rewritten(self, record: bytes, name: str, now: float) -> bytes:
        """Do what `completed` does for any event, through Python objects."""
        event = msgspec.json.decode(record)
        if self.label is not None:
            place(event, self.label, None)
        for role in ("id", "time"):
            field = self.known.get(role)
            if field is not None and look_up(event, field) is None:
                place(event, field, Raw(self.default(role, name, now)))
        return msgspec.json.encode(event)


def new_ids() -> Iterator[str]:
    """Yield ids for events that have none: a random number of the process, and a count.

    >>> ids = new_ids()
    >>> first, second = next(ids), next(ids)
    >>> len(first), first[:-1] == second[:-1], first[-1] + second[-1]
    (18, True, '01')
    """
    process = secrets.token_hex(8)
    for number in count():
        yield f"{process}-{number:x}"


def finder(path: str) -> Any:
    """Return a decoder that finds a field, with dots for nested ones, and skips all others."""
    kind: Any = str | int | float | bool | None
    for name in reversed(path.split(".")):
        found = msgspec.defstruct(
            "Found", [("value", kind | msgspec.UnsetType, UNSET)], rename={"value": name}
        )
        kind = found
    return msgspec.json.Decoder(kind)


def look_up(event: Any, path: str) -> Any:
    """Return the value of a field, with dots for nested ones; None if there is none."""
    for name in path.split("."):
        if not isinstance(event, dict):
            return None
        event = event.get(name)
    return event


def place(event: dict[str, Any], path: str, value: Any) -> None:
    """Set the value of a field; None removes it."""
    *tables, name = path.split(".")
    for table in tables:
        inner = event.setdefault(table, {})
        if not isinstance(inner, dict):
            return
        event = inner
    if value is None:
        event.pop(name, None)
    else:
        event[name] = value
