"""The configuration with all defaults, as `check` prints it and checkpoints store it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn.config.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.config.structs import Config, Section


def plain(table: Section) -> Any:
    """Return a table as plain data, with secrets masked."""
    return msgspec.to_builtins(table, enc_hook=masked)


def masked(value: Any) -> str:
    """Mask a secret; called by msgspec."""
    if isinstance(value, Secret):
        return str(value)
    raise NotImplementedError


def text(config: Config) -> str:
    """Return the configuration as TOML, without keys that are not set."""
    return "\n".join(lines(plain(config), "")).strip() + "\n"


def lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the lines of a table: plain values first, then subtables."""
    for name, value in table.items():
        if value is not None and not is_table(value):
            yield f"{key(name)} = {toml(value)}"
    for name, value in table.items():
        below = f"{path}.{key(name)}" if path else key(name)
        if isinstance(value, dict) and value:
            yield from ("", f"[{below}]", *lines(value, below))
        elif isinstance(value, list | tuple) and is_table(value):
            for item in value:
                yield from ("", f"[[{below}]]", *lines(item, below))


def is_table(value: Any) -> bool:
    """Return whether TOML writes the value as a table or an array of tables."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], dict)
    return isinstance(value, dict)


def key(name: str) -> str:
    """Return a key as TOML.

    >>> key("user_id"), key("user.id")
    ('user_id', '"user.id"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def toml(value: Any) -> str:
    """Return a plain value as TOML.

    >>> toml(["a", 1, True])
    '["a", 1, true]'
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(item) for item in value)}]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return text.replace("${", "$${")  # escaped, or it would be read as a reference
