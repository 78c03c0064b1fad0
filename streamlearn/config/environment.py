"""Substitution of `${NAME}` and `${NAME:-default}` in the strings of a configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from streamlearn.config.problems import ConfigProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

# "$${" is an escaped "${"
REFERENCE = re.compile(r"\$\$\{|\$\{([^}:]*)(?:(:-)([^}]*))?\}|\$\{")


class Expanded(str):
    """A string with values from the environment: never printed, and possibly a number."""

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
        name = found[1]
        if not name or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            problems.append(
                ConfigProblem(
                    path, "expected ${NAME} or ${NAME:-default}; write $${ for a literal ${"
                )
            )
            return ""
        # as in a shell, the default after :- also replaces an empty variable
        given = environ.get(name, "")
        if given or (found[2] is None and name in environ):
            return given
        if found[2] is None:
            problems.append(
                ConfigProblem(
                    path,
                    f"the environment variable {name} is not set; "
                    f"set it or use ${{{name}:-default}}",
                )
            )
        return found[3] or ""

    return Expanded(REFERENCE.sub(replacement, value))
