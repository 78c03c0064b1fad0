"""Tables of a file to structs; every unknown key and wrong type is told by its path."""

from __future__ import annotations

import math
import types
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from streamlearn.config.environment import Expanded
from streamlearn.config.problems import ConfigProblem
from streamlearn.config.secret import Secret
from streamlearn.core.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

UNIONS = {Union, types.UnionType}
MISSING: Any = object()  # what could not be read; its problem has been noted
WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def table(kind: type[Struct], given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """The struct that the table describes.

    Where a problem was noted the default stands in, so that what else is wrong is found too.
    """
    values = fields(kind, given, path, problems)
    return MISSING if MISSING in values.values() else kind(**values)


def fields(
    kind: type[Struct], given: Any, path: str, problems: list[ConfigProblem]
) -> dict[str, Any]:
    """The fields of the struct that could be read, and something for those that must be there."""
    if not isinstance(given, dict):
        problems.append(ConfigProblem(path, f"expected a table, got {shown(given)}"))
        given, told = {}, True
    else:
        told = False
    known = {item.encode_name: item for item in msgspec.structs.fields(kind)}
    tag = kind.__struct_config__.tag_field
    for key in given:
        if key not in known and key != tag:
            names = [*known, *([tag] if tag else [])]
            problems.append(ConfigProblem(joined(path, key), f"unknown key; {nearest(key, names)}"))
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in given:
            found = value(item.type, given[name], joined(path, name), problems)
            if found is not MISSING:
                values[item.name] = found
        elif item.required and not told:
            problems.append(
                ConfigProblem(joined(path, name), f"missing; expected {expected(item.type)}")
            )
        if item.required and item.name not in values:
            values[item.name] = anything(item.type)
    return values


def anything(kind: Any) -> Any:
    """A value that stands for one that must be there and is not."""
    inner = alternatives(plain(kind))[0]
    if get_origin(inner) is Literal:
        return get_args(inner)[0]
    if get_origin(inner) is tuple:
        return ()
    return "" if inner is str else MISSING


def value(kind: Any, given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """One value of a table: a table again, an array of them, or a leaf."""
    inner = plain(kind)
    choices = [one for one in alternatives(inner) if is_struct(one)]
    if len(choices) > 1:
        return tagged(choices, given, path, problems)
    if choices:
        return table(choices[0], given, path, problems)
    if get_origin(inner) is tuple and is_struct(get_args(inner)[0]):
        if not isinstance(given, list):
            problems.append(ConfigProblem(path, f"expected tables [[{path}]], got {shown(given)}"))
            return MISSING
        item = get_args(inner)[0]
        items = [table(item, one, f"{path}[{i}]", problems) for i, one in enumerate(given)]
        return tuple(items)
    return leaf(kind, given, path, problems)


def tagged(kinds: list[type[Struct]], given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """The table of the kind that it names."""
    by_tag = {str(kind.__struct_config__.tag): kind for kind in kinds}
    one_of = " or ".join(f'"{tag}"' for tag in by_tag)
    if not isinstance(given, dict):
        problems.append(ConfigProblem(path, f"expected a table, got {shown(given)}"))
        return MISSING
    tag = given.get("kind")
    if not isinstance(tag, str) or tag not in by_tag:
        wrong = f"missing; expected {one_of}"
        if tag is not None:
            hint = nearest(str(tag), by_tag)
            wrong = f"expected {one_of}, got {shown(tag)}; {hint}"
        problems.append(ConfigProblem(joined(path, "kind"), wrong))
        return MISSING
    return table(by_tag[tag], given, path, problems)


def leaf(kind: Any, given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """A number, a text, a list of them."""
    kinds = alternatives(plain(kind))
    if isinstance(given, datetime) and str in kinds:
        given = given.isoformat()
    if isinstance(given, float) and not math.isfinite(given):
        problems.append(ConfigProblem(path, f"expected {expected(kind)}, got {given}"))
        return MISSING
    try:
        if isinstance(given, Expanded):
            # a value of the environment is text, whatever is wanted
            return msgspec.convert(str(given), kind, strict=False, dec_hook=secret)
        return msgspec.convert(bare(given), kind, dec_hook=secret)
    except msgspec.ValidationError:
        hint = ""
        names = [name for one in kinds if get_origin(one) is Literal for name in get_args(one)]
        if names and isinstance(given, str):
            hint = f"; {nearest(given, names)}"
        got = "another" if Secret in kinds else shown(given)
        problems.append(ConfigProblem(path, f"expected {expected(kind)}, got {got}{hint}"))
        return MISSING


def bare(given: Any) -> Any:
    """The value with plain texts in it."""
    if isinstance(given, list):
        return [bare(item) for item in given]
    if isinstance(given, dict):
        return {key: bare(item) for key, item in given.items()}
    return str(given) if isinstance(given, Expanded) else given


def expanded(given: Any) -> bool:
    """Whether there is something of the environment in it."""
    if isinstance(given, list):
        return any(map(expanded, given))
    return isinstance(given, Expanded)


def secret(kind: type[Any], given: Any) -> Any:
    """Make a Secret of a text; called by msgspec."""
    if kind is Secret and isinstance(given, str):
        return Secret(given)
    raise ValueError("expected text")


def plain(kind: Any) -> Any:
    """A type without its annotation."""
    return plain(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def alternatives(kind: Any) -> list[Any]:
    """What a type is a union of, None left out."""
    members = get_args(kind) if get_origin(kind) in UNIONS else (kind,)
    return [plain(member) for member in members if member is not type(None)]


def is_struct(kind: Any) -> bool:
    """Whether the type is a table."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def expected(kind: Any) -> str:
    """A type in words.

    >>> expected(Annotated[int, Meta(ge=1)] | None)
    'a whole number >= 1'
    >>> expected(Literal["even", "time"])
    '"even" or "time"'
    """
    if get_origin(kind) is Annotated:
        inner, *metas = get_args(kind)
        limits = [limit for meta in metas if isinstance(meta, Meta) for limit in limited(meta)]
        return expected(inner) + "".join(limits)
    if get_origin(kind) in UNIONS:
        members = [expected(one) for one in get_args(kind) if one is not type(None)]
        return " or ".join(dict.fromkeys(members))
    if get_origin(kind) is Literal:
        names = [f'"{name}"' for name in get_args(kind)]
        return " or ".join(names) if len(names) <= 2 else f"one of {', '.join(names)}"
    if get_origin(kind) is tuple:
        return f"a list of {expected(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return f"a table of names, each with {expected(get_args(kind)[1])}"
    return "a table" if is_struct(kind) else WORDS.get(kind, "text")


def limited(meta: Meta) -> Iterable[str]:
    """The limits of a value in words."""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    found = [
        f"{sign} {getattr(meta, name)}"
        for name, sign in signs.items()
        if getattr(meta, name) is not None
    ]
    if found:
        yield " " + " and ".join(found)
    if meta.min_length:
        yield ", not empty"
    if meta.max_length:
        yield f", of at most {meta.max_length} characters"
    if meta.pattern:
        yield ", of letters, digits, _ . and -"


def shown(given: Any) -> str:
    """A value in a message; what came from the environment is not printed."""
    if expanded(given):
        return "another (from the environment)"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, dict):
        return "a table"
    text = repr(given) if not isinstance(given, str) else '"' + given + '"'
    return text if len(text) <= 60 else text[:57] + ".."


def joined(path: str, key: str) -> str:
    """The path of a key in a table."""
    return f"{path}.{key}" if path else key


def description(kind: Any) -> str:
    """What the key of such a type means."""
    texts = [one.description for one in get_args(kind)[1:] if isinstance(one, Meta)]
    return "; ".join(text for text in texts if text)
