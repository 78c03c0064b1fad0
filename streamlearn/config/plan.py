"""The configuration with all its defaults, as `check` prints it and checkpoints remember it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.config.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.config.structs import Config, Section


def plain(table: Section) -> Any:
    """A table as plain data, secrets as stars."""
    return msgspec.to_builtins(table, enc_hook=masked)


def masked(value: Any) -> str:
    """Stars for a secret; called by msgspec."""
    if isinstance(value, Secret):
        return str(value)
    raise NotImplementedError


def text(config: Config) -> str:
    """The configuration as TOML; what is not set is left out."""
    return "\n".join(lines(plain(config), "")).strip() + "\n"


def lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Plain values first, then the tables below."""
    for name, value in table.items():
        if value is not None and not is_table(value):
            yield f"{name} = {toml(value)}"
    for name, value in table.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value:
            yield from ("", f"[{below}]", *lines(value, below))
        elif isinstance(value, list | tuple) and is_table(value):
            for item in value:
                yield from ("", f"[[{below}]]", *lines(item, below))


def is_table(value: Any) -> bool:
    """Whether TOML has a header for it."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], dict)
    return isinstance(value, dict)


def toml(value: Any) -> str:
    """A plain value as TOML.

    >>> toml(["a", 1, True])
    '["a", 1, true]'
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(item) for item in value)}]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return text.replace("${", "$${")  # or it would be looked up in the environment
