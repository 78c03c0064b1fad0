"""Constraints of [features]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.config.problems import ConfigProblem
from streamlearn.config.structs import (
    FeaturesConfig,
    FormatConfig,
)
from streamlearn.core.nearest import nearest
from streamlearn.features.fields import Auto, FieldSpec, Ignore, Interaction, parse
from streamlearn.features.fields.interaction import fields_of
from streamlearn.features.fields.spec import OTHERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.config.checks.values import Problems


def field_kinds(features: FeaturesConfig, format: FormatConfig) -> Problems:  # noqa: A002 - the table's name
    """Check the declarations of fields."""
    roles = {getattr(format, role): role for role in ("label", "weight", "id")}
    for name, text in features.fields.items():
        path = f"features.fields.{name}"
        problem = field_problem(name, text)
        if problem is not None:
            yield ConfigProblem(path, problem)
            continue
        field = parse(text)
        for one in fields_of(name) if isinstance(field, Interaction) else (name,):
            if one in roles and not isinstance(field, Ignore):
                yield ConfigProblem(path, f"{one!r} is the {roles[one]}, not a feature; remove it")
            elif one == format.time and one not in features.fields:
                yield ConfigProblem(path, f"{one!r} is the time: declare it, as 'time(hour)' say")
            elif one == format.time and isinstance(field, Auto):
                yield ConfigProblem(path, f"{one!r} is the time; what is it as a feature?")
            elif format.kind == "csv" and format.columns and one not in {*format.columns, OTHERS}:
                yield ConfigProblem(path, f"no column {one!r}; {nearest(one, format.columns)}")


def field_problem(name: str, text: str) -> str | None:
    """Return why this declaration of a field is invalid; None if it is valid."""
    try:
        FieldSpec({name: text})
    except ValueError as error:
        return str(error).removeprefix(f"field {name!r}: ")
    return None


def feature_limits(features: FeaturesConfig) -> Problems:
    """Check which limits apply to hashing and which to names."""
    hashed = features.kind == "hashing"
    for name in ("max_names", "max_bytes"):
        if hashed and getattr(features, name) not in {0, getattr(FeaturesConfig(), name)}:
            yield ConfigProblem(
                f"features.{name}", 'requires kind = "names"; `bits` is the limit of hashing'
            )
    if 0 < features.max_bytes < 10_000:
        yield ConfigProblem("features.max_bytes", "expected at least 10000, or 0 for no limit")
    if not hashed and features.max_names is None and features.bits != FeaturesConfig().bits:
        yield ConfigProblem(
            "features.bits", 'requires kind = "hashing", or `max_names` with on_full = "hash"'
        )


CHECKS: tuple[Callable[..., Problems], ...] = (
    field_kinds,
    feature_limits,
)
