"""Substitution of `${NAME}` and `${file:PATH}` in the strings of a configuration.

Both may have a default: `${NAME:-default}`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.config.problems import ConfigProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

# "$${" is an escaped "${"
REFERENCE = re.compile(r"\$\$\{|\$\{((?:file:)?[^}:]*)(?:(:-)([^}]*))?\}|\$\{")
FILE = "file:"


class Expanded(str):
    """A string with values from the environment or files: never printed, and possibly a number."""

    __slots__ = ()


def expand(value: Any, environ: Mapping[str, str], path: str, problems: list[ConfigProblem]) -> Any:
    """Replace all references in `value`; a variable that is not set is a problem.

    >>> expand(["${USER:-nobody}", 5], {"USER": "ann"}, "", [])
    ['ann', 5]
    """
    if isinstance(value, dict):
        return {
            key: expand(item, environ, f"{path}.{key}" if path else key, problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [expand(item, environ, f"{path}[{i}]", problems) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value

    def replacement(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name = found[1] or ""
        try:
            given = content(name) if name.startswith(FILE) else variable(name, environ)
        except ValueError as error:
            problems.append(ConfigProblem(path, str(error)))
            return ""
        # as in a shell, the default after :- also replaces an empty value
        if given or (given is not None and found[2] is None):
            return given
        if found[2] is None:
            problems.append(ConfigProblem(path, missing(name)))
        return found[3] or ""

    return Expanded(REFERENCE.sub(replacement, value))


def variable(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of an environment variable, None if it is not set."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            "expected ${NAME} or ${file:PATH}, or with a default ${NAME:-default}; write $${ for a "
            "literal ${"
        )
    return environ.get(name)


def content(name: str) -> str | None:
    """Return the text of a file without its last line break, None if it does not exist."""
    path = Path(name.removeprefix(FILE))
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ValueError(f"the file {path} cannot be read: {reason}") from None


def missing(name: str) -> str:
    """Describe a reference without a value."""
    if name.startswith(FILE):
        return f"the file {name.removeprefix(FILE)} does not exist; create it, or use a default"
    return f"the environment variable {name} is not set; set it or use ${{{name}:-default}}"
