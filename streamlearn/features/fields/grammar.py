r"""The text of a field, the same in configurations and on the command line.

    field     = kind [ "(" [ argument { "," argument } ] ")" ]
    argument  = flag | value | name "=" value | name "(" value { "," value } ")"
    value     = number | "'" text "'" | word

`log1p` alone is the flag `log1p=true`; values without a name belong to the kind's first parameter.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from streamlearn.core.nearest import nearest
from streamlearn.features.fields.field import Field

TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]inf\b)"
    r"|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\""
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>[(),=]))"
)
LONGEST = 20_000  # characters: a thousand edges


def parse(text: str) -> Field:
    """Return the field that a text declares; ValueError if it is none.

    >>> parse("number(log1p, clip(0, 1e6))"), parse("buckets(1, 5, 10)")
    (Number(log1p=True, clip=(0.0, 1000000.0)), Buckets(edges=(1.0, 5.0, 10.0)))
    >>> str(parse("text( ngrams = 2,binary )"))
    'text(ngrams=2, binary)'
    >>> parse("numbr")
    Traceback (most recent call last):
    ...
    ValueError: unknown kind 'numbr'; did you mean number?
    """
    if len(text) > LONGEST:
        raise ValueError(f"a field of {len(text)} characters: at most {LONGEST} are allowed")
    return _Parser(text).field()


class _Parser:
    """A parser of one text, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = ""
        self.token: tuple[str, Any] = ("end", "")
        self.advance()

    def advance(self) -> tuple[str, Any]:
        """Return the token and read the next one."""
        token = self.token
        found = TOKEN.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :].strip()
            if rest:
                raise ValueError(f"{self.text!r}: {rest[:20]!r} is not understood")
            self.token = ("end", "")
            return token
        self.at = found.end()
        name = found.lastgroup or ""
        value: Any = found[name]
        if name == "number":
            value = float(value) if re.search(r"[.eEi]", value) else int(value)
        elif name in {"single", "double"}:
            name, value = "text", re.sub(r"\\(.)", r"\1", value)
        self.token = (name, value)
        return token

    def accept(self, sign: str) -> bool:
        """Skip this sign; return whether it was there."""
        if self.token != ("sign", sign):
            return False
        self.advance()
        return True

    def expect(self, sign: str) -> None:
        """Skip this sign, which must be there."""
        if not self.accept(sign):
            found = self.token[1] or "the end"
            raise ValueError(f"{self.text!r}: expected {sign!r} before {found!r}")

    def field(self) -> Field:
        """Read the whole text."""
        name, kind = self.advance()
        kinds = Field.kinds()
        if name != "word" or kind not in kinds:
            raise ValueError(f"unknown kind {kind!r}; {nearest(str(kind), kinds)}")
        self.kind = kind
        made = kinds[kind]
        parameters = {one.name: one.type for one in fields(made)}
        first: list[Any] = []
        given: dict[str, Any] = {}
        if self.accept("(") and not self.accept(")"):
            self.argument(parameters, first, given)
            while self.accept(","):
                self.argument(parameters, first, given)
            self.expect(")")
        if self.token[0] != "end":
            raise ValueError(f"{self.text!r}: {self.token[1]!r} after the end of the field")
        if first:
            if made.first is None:
                raise ValueError(
                    f"{self.text!r}: {kind} has no parameter for {first[0]!r};"
                    f" it has {', '.join(parameters) or 'none'}"
                )
            given[made.first] = first[0] if len(first) == 1 else tuple(first)
        return made(**given)

    def argument(self, parameters: dict[str, Any], first: list[Any], given: dict[str, Any]) -> None:
        """Read one argument."""
        kind, name = self.advance()
        if kind in {"sign", "end"}:
            raise ValueError(f"{self.text!r}: expected an argument before {name or 'the end'}")
        if kind != "word":
            first.append(name)
        elif name not in parameters:
            hint = nearest(name, parameters) if parameters else "it has none"
            raise ValueError(f"{self.kind} has no parameter {name!r}; {hint}")
        elif name in given:
            raise ValueError(f"{self.text!r}: {name} is given twice")
        elif self.accept("("):
            given[name] = self.values()
        else:
            given[name] = self.flag(name) if parameters[name] == "bool" else self.named(name)

    def flag(self, name: str) -> bool:
        """Read what follows the name of a flag."""
        value = self.value() if self.accept("=") else True
        if not isinstance(value, bool):
            raise ValueError(f"{self.kind}: {name} is true or false, not {value!r}")
        return value

    def named(self, name: str) -> Any:
        """Read the value of a parameter."""
        if not self.accept("="):
            raise ValueError(f"{self.kind}: {name} needs a value, as in {name}=...")
        return self.value()

    def values(self) -> tuple[Any, ...]:
        """Read values up to the closing parenthesis."""
        found = [self.value()]
        while self.accept(","):
            found.append(self.value())
        self.expect(")")
        return tuple(found)

    def value(self) -> Any:
        """Read a value; a word is text."""
        kind, value = self.advance()
        if kind in {"sign", "end"}:
            raise ValueError(f"{self.text!r}: expected a value before {value or 'the end'}")
        if kind == "word" and value in {"true", "false"}:
            return value == "true"
        if kind == "word" and value == "inf":
            return float("inf")
        return value
