"""Objects that a configuration names, as `module:name`."""

from __future__ import annotations

import importlib
from typing import Any


def import_path(path: str) -> Any:
    """Import `module:name`; ValueError if this fails.

    >>> import_path("json:loads")("[1]")
    [1]
    """
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} cannot be imported: {error}") from error
    return found
