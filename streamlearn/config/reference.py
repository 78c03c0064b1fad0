"""The configuration reference: every table and key, from the structs themselves.

python -m streamlearn.config.reference > docs/configuration.md
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

from streamlearn.config import plan, reading
from streamlearn.config.structs import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Struct
    from msgspec.structs import FieldInfo

INTRODUCTION = """\
# Configuration

Made from the code by `python -m streamlearn.config.reference`; a test keeps the two equal.

A configuration is one TOML file. It is read as a whole before anything starts: `streamlearn check
FILE` names every unknown key (with the nearest that is known), wrong type and impossible
combination, and prints the plan with all defaults filled in and secrets masked. Only `[source]`
must be there:

```toml
[source]
kind = "synthetic"
events = 100_000
```

- `${NAME}` and `${NAME:-default}` in a text take the value from the environment; `$${` is `${`.
- `--set KEY=VALUE` on the command line stands before the file: `--set source.events=5`.
- Relative paths are seen from the working directory.
- A rule, loss, penalty or model is written as the call that makes it: `"L1(1e-3)"`.
- A key whose default is - is not set; what then holds is said beside it.
"""


def text() -> str:
    """The reference, in Markdown."""
    parts = [INTRODUCTION]
    for item in msgspec.structs.fields(Config):
        inner = reading.plain(item.type)
        several = get_origin(inner) is tuple
        kinds = reading.alternatives(get_args(inner)[0] if several else inner)
        name = f"[[{item.encode_name}]]" if several else f"[{item.encode_name}]"
        for kind in kinds:
            parts += section(kind, name, item.encode_name)
    return "\n".join(parts)


def section(kind: type[Struct], name: str, path: str) -> Iterator[str]:
    """A table of the file, and after it those in it."""
    tag = kind.__struct_config__.tag
    title = name if tag is None else f"{name} kind = {plan.toml(tag)}"
    yield f"## `{title}`\n\n{inspect.getdoc(kind)}\n"
    yield "| key | value | default | |\n|---|---|---|---|"
    below = []
    for item in msgspec.structs.fields(kind):
        inner = reading.alternatives(reading.plain(item.type))[0]
        if reading.is_struct(inner):
            below.append((inner, f"{path}.{item.encode_name}"))
        yield row(item)
    yield ""
    for inner, where in below:
        yield from section(inner, f"[{where}]", where)


def row(item: FieldInfo) -> str:
    """A key: what it may be, what it is if nothing is said, and what it means."""
    cells = [
        f"`{item.encode_name}`",
        reading.expected(item.type),
        default(item),
        reading.description(item.type),
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def default(item: FieldInfo) -> str:
    """What holds if nothing is said."""
    if item.required:
        return "must be given"
    value = item.default
    if item.default_factory is not msgspec.NODEFAULT:
        value = item.default_factory()
    return "-" if value is None or isinstance(value, msgspec.Struct) else f"`{written(value)}`"


def written(value: Any) -> str:
    """A value as TOML has it, long numbers in groups.

    >>> written(1_000_000), written({}), written(())
    ('1_000_000', '{}', '[]')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    return plan.toml(value)


if __name__ == "__main__":
    sys.stdout.write(text())
