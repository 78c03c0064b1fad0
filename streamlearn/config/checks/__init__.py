"""Constraints between the keys of a configuration, beyond the types in `structs`.

Each module checks some of the tables. A check takes the tables that its parameters name.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from streamlearn.config.checks import (
    columns,
    features,
    fleet,
    formats,
    labels,
    outputs,
    schemas,
    serving,
    sources,
    telemetry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamlearn.config.checks.values import Problems
    from streamlearn.config.problems import ConfigProblem

CHECKS: tuple[Callable[..., Problems], ...] = (
    *sources.CHECKS,
    *formats.CHECKS,
    *columns.CHECKS,
    *schemas.CHECKS,
    *features.CHECKS,
    *labels.CHECKS,
    *outputs.CHECKS,
    *fleet.CHECKS,
    *serving.CHECKS,
    *telemetry.CHECKS,
)


def check(
    tables: Mapping[str, Any], checks: Sequence[Callable[..., Problems]]
) -> list[ConfigProblem]:
    """Run the checks whose tables were all read, and return every problem found."""
    found: list[ConfigProblem] = []
    for one in checks:
        names = list(inspect.signature(one).parameters)
        if all(name in tables for name in names):
            found += one(*(tables[name] for name in names))
    return found
