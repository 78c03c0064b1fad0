"""Conversion of TOML tables to structs; unknown keys and wrong types are reported by path."""

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
    from collections.abc import Iterable, Mapping

UNIONS = {Union, types.UnionType}
BY_NAME = "module:callable"  # the kind of a table that names its code
LEAST, GREATEST = -(2**63), 2**63 - 1  # of integers
MISSING: Any = object()  # a value that could not be read; its problem is already reported
WORDS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    Secret: "a string",
    Struct: "a table",
    Any: "a value",
}
PLURALS: dict[Any, str] = {
    str: "strings",
    int: "integers",
    float: "numbers",
    bool: "booleans",
    Secret: "strings",
    Struct: "tables",
    Any: "values",
}


def read_table(kind: type[Struct], given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """Return the struct of a table, or MISSING.

    A key with a problem keeps its default, so that later checks find further problems.
    """
    values = read_fields(kind, given, path, problems)
    return MISSING if MISSING in values.values() else kind(**values)


def read_fields(
    kind: type[Struct], given: Any, path: str, problems: list[ConfigProblem]
) -> dict[str, Any]:
    """Return the fields that could be read, and placeholders for required ones that could not."""
    if not isinstance(given, dict):
        problems.append(ConfigProblem(path, f"expected a table, got {quoted(given)}"))
        given, reported = {}, True
    else:
        reported = False
    known = {item.encode_name: item for item in msgspec.structs.fields(kind)}
    tag = kind.__struct_config__.tag_field
    for key in given:
        if key not in known and key != tag:
            names = [*known, *([tag] if tag else [])]
            problems.append(
                ConfigProblem(join_path(path, key), f"unknown key; {nearest(key, names)}")
            )
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in given:
            found = read_value(item.type, given[name], join_path(path, name), problems)
            if found is not MISSING:
                values[item.name] = found
        elif item.required and not reported:
            problems.append(
                ConfigProblem(join_path(path, name), f"missing; expected {expected(item.type)}")
            )
        if item.required and item.name not in values:
            values[item.name] = placeholder(item.type)
    return values


def placeholder(kind: Any) -> Any:
    """Return a value of the type, in place of a required one that is missing."""
    inner = union_members(bare_type(kind))[0]
    if get_origin(inner) is Literal:
        return get_args(inner)[0]
    if get_origin(inner) is tuple:
        return ()
    return "" if inner is str else MISSING


def read_value(kind: Any, given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """Return one value of a table: a subtable, an array of tables, or a plain value."""
    inner = bare_type(kind)
    kinds = [member for member in union_members(inner) if is_struct(member)]
    if len(kinds) > 1:
        return read_tagged_table(kinds, given, path, problems)
    if kinds:
        return read_table(kinds[0], given, path, problems)
    if get_origin(inner) is tuple and is_struct(get_args(inner)[0]):
        if not isinstance(given, list):
            problems.append(ConfigProblem(path, f"expected tables [[{path}]], got {quoted(given)}"))
            return MISSING
        item = get_args(inner)[0]
        items = [read_table(item, one, f"{path}[{i}]", problems) for i, one in enumerate(given)]
        return tuple(items)
    return read_plain_value(kind, given, path, problems)


def read_tagged_table(
    kinds: list[type[Struct]], given: Any, path: str, problems: list[ConfigProblem]
) -> Any:
    """Return the table as the struct that its `kind` names."""
    by_tag = {str(kind.__struct_config__.tag or BY_NAME): kind for kind in kinds}
    tags = " or ".join(f'"{tag}"' for tag in by_tag)
    if not isinstance(given, dict):
        problems.append(ConfigProblem(path, f"expected a table, got {quoted(given)}"))
        return MISSING
    tag = given.get("kind")
    if isinstance(tag, str) and ":" in tag and BY_NAME in by_tag:
        return read_table(by_tag[BY_NAME], given, path, problems)
    if not isinstance(tag, str) or tag not in by_tag:
        text = f"missing; expected {tags}"
        if tag is not None:
            hint = nearest(str(tag), by_tag)
            text = f"expected {tags}, got {quoted(tag)}; {hint}"
        problems.append(ConfigProblem(join_path(path, "kind"), text))
        return MISSING
    return read_table(by_tag[tag], given, path, problems)


def read_plain_value(kind: Any, given: Any, path: str, problems: list[ConfigProblem]) -> Any:
    """Return a plain value: a number, a string, or a list of them."""
    kinds = union_members(bare_type(kind))
    if isinstance(given, datetime) and str in kinds:
        given = given.isoformat()
    if isinstance(given, float) and not math.isfinite(given):
        problems.append(ConfigProblem(path, f"expected {expected(kind)}, got {given}"))
        return MISSING
    try:
        if isinstance(given, Expanded):
            # values from the environment are strings, whatever the type of the key
            found = msgspec.convert(str(given), kind, strict=False, dec_hook=decode_secret)
        else:
            plain = masked(given) if kinds == [dict[str, Any]] else without_marks(given)
            found = msgspec.convert(plain, kind, dec_hook=decode_secret)
    except msgspec.ValidationError:
        if isinstance(given, dict) and get_origin(kinds[0]) is dict:
            of_values = get_args(kinds[0])[1]
            for key, value in given.items():
                read_plain_value(of_values, value, join_path(path, key), problems)
            return MISSING
        hint = ""
        names = [name for one in kinds if get_origin(one) is Literal for name in get_args(one)]
        if names and isinstance(given, str):
            hint = f"; {nearest(given, names)}"
        got = "another value" if Secret in kinds else quoted(given)
        problems.append(ConfigProblem(path, f"expected {expected(kind)}, got {got}{hint}"))
        return MISSING
    if kinds == [int] and found is not None and not LEAST <= found <= GREATEST:
        problems.append(ConfigProblem(path, f"expected an integer of 64 bits, got {found}"))
        return MISSING
    if is_empty(found, kind) and not path.endswith("password"):  # which may be empty
        problems.append(ConfigProblem(path, "is empty; leave it out if it is not to be set"))
        return MISSING
    return found


def is_empty(found: Any, kind: Any) -> bool:
    """Return whether a text is empty that need not be given, such as a token.

    >>> is_empty("", str | None), is_empty("", str), is_empty(Secret(""), Secret | None)
    (True, False, True)
    """
    return found in ("", Secret("")) and bare_type(kind) in (str | None, Secret | None)


def without_marks(given: Any) -> Any:
    """Return the value with strings instead of Expanded."""
    if isinstance(given, list):
        return [without_marks(item) for item in given]
    if isinstance(given, dict):
        return {key: without_marks(item) for key, item in given.items()}
    return str(given) if isinstance(given, Expanded) else given


def masked(given: Any) -> Any:
    """Return a table of any values, with those from the environment as secrets."""
    if isinstance(given, list):
        return [masked(item) for item in given]
    if isinstance(given, dict):
        return {key: masked(item) for key, item in given.items()}
    return Secret(str(given)) if isinstance(given, Expanded) else given


def from_environment(given: Any) -> bool:
    """Return whether the value contains text from the environment."""
    if isinstance(given, list):
        return any(map(from_environment, given))
    return isinstance(given, Expanded)


def decode_secret(kind: type[Any], given: Any) -> Any:
    """Convert a string to a Secret; called by msgspec."""
    if kind is Secret and isinstance(given, str):
        return Secret(given)
    raise ValueError("expected a string")


def bare_type(kind: Any) -> Any:
    """Return a type without its annotation."""
    return bare_type(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def union_members(kind: Any) -> list[Any]:
    """Return the members of a union except None."""
    members = get_args(kind) if get_origin(kind) in UNIONS else (kind,)
    return [bare_type(member) for member in members if member is not type(None)]


def is_struct(kind: Any) -> bool:
    """Return whether the type is a table."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def expected(kind: Any) -> str:
    """Describe a type.

    >>> expected(Annotated[int, Meta(ge=1)] | None)
    'an integer >= 1'
    >>> expected(Literal["even", "time"])
    '"even" or "time"'
    >>> expected(str | tuple[str | int | float, ...])
    'a string or a list of strings or numbers'
    """
    return " or ".join(described(kind, WORDS))


def described(kind: Any, words: Mapping[Any, str]) -> list[str]:
    """Describe each alternative of a type, with the given words for plain types."""
    if get_origin(kind) is Annotated:
        inner, *metas = get_args(kind)
        limits = [limit for meta in metas if isinstance(meta, Meta) for limit in limits_of(meta)]
        return ["".join([" or ".join(described(inner, words)), *limits])]
    if get_origin(kind) in UNIONS:
        members = [member for member in get_args(kind) if member is not type(None)]
        if float in members:  # an integer is a number
            members = [member for member in members if member is not int]
        texts = [text for member in members for text in described(member, words)]
        return list(dict.fromkeys(texts))
    if get_origin(kind) is Literal:
        names = [f'"{name}"' for name in get_args(kind)]
        return names if len(names) <= 2 else [f"one of {', '.join(names)}"]
    if get_origin(kind) is tuple:
        items = " or ".join(described(get_args(kind)[0], PLURALS))
        return [f"a list of {items}" if words is WORDS else f"lists of {items}"]
    if get_origin(kind) is dict:
        return [f"a table whose values are {' or '.join(described(get_args(kind)[1], PLURALS))}"]
    return [words[Struct if is_struct(kind) else kind]]


def limits_of(meta: Meta) -> Iterable[str]:
    """Describe the limits of a value."""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    found = [
        f"{sign} {getattr(meta, name)}"
        for name, sign in signs.items()
        if getattr(meta, name) is not None
    ]
    if found:
        yield " " + " and ".join(found)
    if meta.max_length:
        yield f" of {meta.max_length} character"
    elif meta.min_length:
        yield ", not empty"
    if meta.pattern:
        yield " of up to 64 letters, digits, _ . and -, the first a letter or digit"


def quoted(given: Any) -> str:
    """Return a value for a message; values from the environment are not printed."""
    if from_environment(given):
        return "another value (from the environment)"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, dict):
        return "a table"
    text = repr(given) if not isinstance(given, str) else '"' + given + '"'
    return text if len(text) <= 60 else text[:57] + ".."


def join_path(path: str, key: str) -> str:
    """Return the path of a key in a table."""
    return f"{path}.{key}" if path else key


def description(kind: Any) -> str:
    """Return the description in a key's type."""
    texts = [one.description for one in get_args(kind)[1:] if isinstance(one, Meta)]
    return "; ".join(text for text in texts if text)
