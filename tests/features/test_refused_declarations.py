"""Declarations of fields that are refused, and those that just are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.features import fields as kinds
from streamlearn.features.fields import Buckets, FieldSpec, Number, Time, parse
from streamlearn.features.fields.text import MOST_CHARS, MOST_NGRAMS
from tests.support.refusals import raised, unreached

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "number" + " " * (20_000 - len("number"))
REFUSED: list[object] = [
    # texts
    "numbr",
    "5",
    "number @",
    "number(center=1",
    "number(clip(0, 1)",
    "number(log1p) binary",
    "number(5)",
    "number(",
    "number(,)",
    "number(log2p)",
    "auto(log1p)",
    "number(center=1, center=1)",
    "number(log1p=5)",
    "number(log1p=yes)",
    "number(center)",
    "number(center=)",
    "number(center=",
    "number(clip(0,",
    LONG + " ",
    # values
    "number(invalid=ignore)",
    "category(invalid=category)",
    "number(center=inf)",
    "number(center=a)",
    lambda: Number(center=True),
    lambda: Number(center=float("nan")),
    "number(clip(0))",
    "number(clip(0, 1, 2))",
    "number(clip=5)",
    "number(clip(1, 1))",
    "number(clip(-inf, inf))",
    lambda: Buckets(()),
    lambda: Buckets(tuple(map(float, range(1000)))),
    "buckets(0, inf)",
    "buckets(0, 1, 1)",
    "buckets(1)",
    "buckets(1001)",
    lambda: Buckets(True),
    lambda: Buckets(10, warmup=100.0),  # type: ignore[arg-type]
    "buckets(10, warmup=9)",
    "buckets(10, warmup=100001)",
    "text(ngrams=0)",
    f"text(ngrams={MOST_NGRAMS + 1})",
    "text(chars=1)",
    f"text(chars={MOST_CHARS + 1})",
    "time(order=dym)",
    "time(unit=h)",
    "time(zone='Europe/Atlantis')",
    lambda: Time(zone=5),  # type: ignore[arg-type]
    "list(separator='')",
    "list(separator=', ')",
    "map(separator='·')",
    # several
    5,
    {5: "auto"},
    {"a": 5},
    {"a": kinds.Field()},
    {"*": "buckets(10)"},
    {"*": "number(indicator)"},
    {"a": "interaction"},
    {"a^": "interaction"},
    {"a^b^a": "interaction"},
    {"^".join("abcdefghi"): "interaction"},
    {"a^b": "interaction", "b^a": "interaction"},
]
ACCEPTED: list[object] = [
    LONG,
    "number(clip(0, inf), log1p=false, center=-1.5)",
    "number(clip(-inf, 0))",
    lambda: Buckets(tuple(map(float, range(999)))),
    "buckets(1.0)",
    "buckets(2, warmup=10)",
    "buckets(1000, warmup=100000)",
    "text(ngrams=1)",
    f"text(ngrams={MOST_NGRAMS})",
    "text(chars=2)",
    f"text(chars={MOST_CHARS})",
    "list(separator=';')",
    {},
    {"*": "buckets(1.0)", "a": "number(indicator)"},
    {"*": "number"},
    {"^".join("abcdefgh"): "interaction"},
    {"a^b": "interaction", "a^c": "interaction"},
]


def made(given: Any) -> Callable[[], object]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    return lambda: parse(given) if isinstance(given, str) else FieldSpec(given)


@pytest.mark.parametrize("given", REFUSED)
def test_an_invalid_declaration_is_refused(given: object) -> None:
    raised(made(given), ValueError)


@pytest.mark.parametrize("given", [one for one in REFUSED if isinstance(one, str)])
def test_the_error_of_a_text_names_its_field(given: str) -> None:
    with pytest.raises(ValueError, match="'price'"):
        FieldSpec({"price": given})


@pytest.mark.parametrize("given", ACCEPTED)
def test_a_declaration_that_is_just_valid_is_accepted(given: object) -> None:
    made(given)()


def test_every_refusal_has_a_row() -> None:
    reached = {site for given in REFUSED for site in raised(made(given), ValueError)}
    reached |= raised(lambda: FieldSpec({"a": "numbr"}), ValueError)
    assert unreached(["streamlearn.features.fields"], reached) == set()
