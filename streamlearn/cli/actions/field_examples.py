"""What the fields of the first records become, for `check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.engine.events import Events
from streamlearn.errors import RegistryError, SchemaError, SourceError, TableMismatchError
from streamlearn.features import Names
from streamlearn.features.fields import Buckets
from streamlearn.stream.sources.prefetch import decode_records

if TYPE_CHECKING:
    from streamlearn.stream import Decoder

MOST_RECORDS = 1000
POLL_SECONDS = 0.25
MOST_FIELDS = 200  # that are shown
MOST_FEATURES = 6  # of one field


def examples(settings: config.Config) -> dict[str, dict[str, Any]]:
    """Return the kind of each field, and an example of what it becomes, by name."""
    spec = config.feature_reader(settings.features).fields
    names = Names(fields=spec)
    decoder = build.decoder(settings, names)
    found: dict[str, dict[str, Any]] = {name: {"kind": str(field)} for name, field in spec.items()}
    rows = first_rows(settings, decoder, names)
    roles = config.event_fields(settings.format).roles
    for name in decoder.field_names()[:MOST_FIELDS]:
        if name not in roles and not is_outer(name, decoder.field_names()):
            found.setdefault(name, {"kind": str(spec.of(name))})
    for name, one in found.items():
        features = next((some for row in rows if (some := of_field(name, row))), {})
        if features:
            one["example"] = features
        elif isinstance(spec.get(name), Buckets) and rows:
            one["example"] = "known after the warm-up"
    for name, kind in schema_types(settings, decoder).items():
        one = found.setdefault(name, {"kind": roles.get(name) or str(spec.of(name))})
        one["type"] = kind
        if one["kind"] == "auto" and "example" not in one:
            one["example"] = becomes(name, kind)
    return found


def schema_types(settings: config.Config, decoder: Decoder) -> dict[str, str]:
    """Return the types of fields that a schema tells; report a registry that does not answer."""
    source = settings.source
    found: dict[str, str] = {}
    for topic in getattr(source, "topics", ()) or ("",):
        try:
            found |= decoder.schema_fields(topic)
        except (RegistryError, SchemaError) as error:
            sys.stderr.write(f"warning: {error}\n")
            break
    return dict(list(found.items())[:MOST_FIELDS])


def becomes(name: str, kind: str) -> str:
    """Describe what a field of this type becomes, if it is not declared.

    >>> becomes("ad", "string or null"), becomes("price", "double"), becomes("icon", "bytes")
    ('ad=VALUE for each value', 'a number', 'nothing')
    """
    words = set(kind.split())
    if "bytes" in words or "fixed" in words:
        return "nothing"
    if "map" in words or "Struct" in words:
        return f"the fields {name}.KEY"
    if words & {"string", "enum", "uuid", "ListValue"}:
        return f"{name}=VALUE for each value"
    if "list" in words:
        return "an error: declare it as a list"
    return "any of these" if words & {"any", "Value"} else "a number"


def is_outer(name: str, names: list[str]) -> bool:
    """Return whether other fields are inside this one."""
    return any(other.startswith(f"{name}.") for other in names)


def first_rows(settings: config.Config, decoder: Decoder, names: Names) -> list[dict[Any, float]]:
    """Return the features of the first records; none if they cannot be read without waiting."""
    if not isinstance(settings.source, config.FileSourceConfig | config.SyntheticSourceConfig):
        return []
    source = build.source(settings.source, settings.format, sample=decoder.sample)
    events = Events()
    try:
        source.open({}, None)
        for records in source.poll(POLL_SECONDS)[:1]:
            first = records.part(0, MOST_RECORDS)
            decode_records(decoder, first, events)
    except TableMismatchError:
        raise
    except SourceError:
        return []
    finally:
        source.close()
    rows = [events.row_of(i) for i in range(len(events))]
    return [{names.name_of(slot): value for slot, value in row} for row in rows]


def of_field(name: str, row: dict[Any, float]) -> dict[str, float]:
    """Return the features of a row that are this field's."""
    starts = tuple(f"{name}{sign}" for sign in "=.~")
    found = [one for one in row if one == name or str(one).startswith(starts)]
    return {str(one): row[one] for one in found[:MOST_FEATURES]}
