"""JSON: what is read straight from the bytes is what is read through Python objects.

A record in which a field occurs twice is read through Python objects. So each record has a twin
that begins with `"-": null` twice, of which no feature comes: both mean the same, or both are
refused for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.stream import Events, Fields, JSONDecoder

SCALARS = [
    "null", "true", "false", "0", "-0", "7", "-12", "1e3", "0.5", "-2.5e-3", "-0.0", "1e999",
    "12345678901234567890", "9007199254740993", "-9223372036854775808", "1767619800",
    '""', '"a"', '"é€𝄞"', r'"\u00e9\ud834\udd1e\u0000\n\t\r\b\f\/\\\""', '"12.0"', '"-3.5"',
    '"TRUE"', '"2026-01-31T13:05:00Z"', '"a b, a:2 c:-1"', '"label"',
]  # fmt: skip
NESTED = [
    "[]", "[ ]", '["a"]', '["b","a","b",null]', '[true,false,1,-0,2.0,"a","\\u0061",null]',
    "[1e999]", "[[]]", "[{}]", "{}", "{ }", '{"k":1}', '{"k":"v","z":{"y":2,"k":null}}',
    '{"k":[1]}', '{"k":true,"k":false}',
]  # fmt: skip
VALUES = SCALARS + NESTED
KINDS = [
    "auto", "ignore", "number", "number(indicator)", "number(log1p, invalid=missing)",
    "number(clip(-1, 1), invalid=category)", "category", "buckets(-1, 0.5)", "text",
    "text(chars=2, invalid=missing)", "time", "time(hour, order=dmy, invalid=missing)", "list",
    "list(invalid=missing)", "map", "map(invalid=missing)",
]  # fmt: skip
ROLES: list[dict[str, Any]] = [
    {"label": "f"},
    {"label": "f", "labels": ("a", 7, True, 0.5)},
    {"label": "f", "positive": ("a", 7, True)},
    {"label": "f", "positive": (0,), "kept": 0.25},
    {"label": "f", "warmup": 3},
    {"weight": "f"},
    {"id": "f"},
    {"time": "f"},
    {"time": "f", "time_unit": "ms"},
]
BLANKS = ["", " ", "\n\t\r "]


def records(value: str) -> list[str]:
    """Records with the field f: alone, among others, in another field, with blanks."""
    found = [f'{{"f":{value}}}', f'{{"f":{value},"g":2,"label":1}}', f'{{"o":{{"f":{value}}}}}']
    found += [f'{{ "g" :"x"{blank},{blank}"f":{blank}{value}{blank}}}' for blank in BLANKS]
    return found


def twin(record: str) -> str:
    more = record.removeprefix("{")
    return '{"-":null,"-":null' + ("" if more.lstrip().startswith("}") else ",") + more


def outcome(decoder: Any, lines: list[str]) -> Any:
    """All that becomes of records, the words of refusals aside."""
    events = Events()
    decoder.decode([line.encode() for line in lines], events)
    rows = [
        [(decoder.reader.name_of(slot), value) for slot, value in events.row_of(k)]
        for k in range(len(events))
    ]
    labels = [events.label_of(k) for k in range(len(events))]
    times = [None if np.isnan(moment) else moment for moment in events.times]
    return {
        "rows": rows, "labels": [(type(one), one) for one in labels], "times": times,
        "weights": events.weights.tolist(), "ids": events.ids, "places": events.index.tolist(),
        "refused": [(bad.number, bad.field, bad.code) for bad in events.invalid],
        "names": decoder.reader.state(),
    }  # fmt: skip


def agree(lines: list[str], spec: dict[str, str] | None = None, **fields: Any) -> None:
    made = [
        JSONDecoder(sl.Names(spec), Fields(**fields), [sl.LinearClassifier()], True)
        for _ in range(2)
    ]
    quick, slow = outcome(made[0], lines), outcome(made[1], [twin(line) for line in lines])
    for part, found in quick.items():
        assert found == slow[part], part


LINES = [line for value in VALUES for line in records(value)]


@pytest.mark.parametrize("kind", KINDS)
def test_declared_fields(kind: str) -> None:
    agree(LINES, {"f": kind, "o.f": kind})
    if kind not in {"ignore", "auto", "number(indicator)"}:
        agree(LINES, {"*": kind})
    if kind not in {"ignore", "auto"}:
        agree(LINES, {"o": kind, "f^g": "interaction", "f": kind})


def test_undeclared_fields() -> None:
    agree(LINES, label=None)
    agree(LINES, {"f^g": "interaction", "o^*": "interaction", "o.f^g": "interaction"})


@pytest.mark.parametrize("roles", ROLES, ids=str)
@pytest.mark.parametrize("place", ["", "o."])
@pytest.mark.parametrize("root", [None, "o"])
def test_fields_with_a_role(roles: dict[str, Any], place: str, root: str | None) -> None:
    given: dict[str, Any] = {"label": "label", "root": root, **roles}
    given |= {role: f"{place}f" for role, name in roles.items() if name == "f"}
    agree(LINES, **given)
    agree(LINES, {"g": "category", "o.g": "ignore"}, **given)
    if "time" in roles:  # which may be a feature as well
        agree(LINES, {given["time"]: "time(hour)"}, **given)


@pytest.mark.parametrize("spec", [{}, {"f": "list", "g": "map", "o.f": "text"}, {"f": "ignore"}])
def test_records_that_end_early(spec: dict[str, str]) -> None:
    for value in VALUES:
        line = f'{{"o": {{"f":{value}}},"f":{value} ,"g": {{"k": {value}}}}}'
        agree([*(line[:n] for n in range(1, len(line))), line], spec)


@pytest.mark.parametrize("sign", list('{}[],:"\\0et \x01\x7f'))
def test_records_with_a_sign_too_many_or_too_few(sign: str) -> None:
    for value in NESTED + SCALARS[-9:]:
        line = f'{{"o":{{"f":{value}}},"f":{value},"s":{value}}}'
        lines = [line[:n] + sign + line[n:] for n in range(1, len(line) + 1)]
        lines += [line[:n] + sign + line[n + 1 :] for n in range(1, len(line))]
        agree(lines, {"f": "list", "s": "ignore"})


# Values that take the slow path: they are refused there, or more exact.
UNUSUAL = ("1e999", "01234567890", '"k":true,"k"')
USUAL = [line for line in LINES if not any(part in line for part in UNUSUAL)]
EACH: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({}, {"f": kind, "o.f": kind}) for kind in KINDS if "invalid" not in kind
]
EACH += [({role: "f"}, {}) for role in ("label", "weight", "id", "time")]


@pytest.mark.parametrize(("roles", "spec"), EACH, ids=str)
def test_usual_values_create_no_objects(
    roles: dict[str, Any], spec: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoder() -> JSONDecoder:
        return JSONDecoder(sl.Names(spec), Fields(**{"label": None, **roles}), (), True)

    every = outcome(decoder(), USUAL)
    taken = [USUAL[place] for place in every["places"]]
    if roles:  # exact integers, and ids and times that are null, are read there
        exact = ("-0", "90071", "92233", *(["null"] if roles.keys() & {"id", "time"} else []))
        taken = [line for line in taken if not any(part in line for part in exact)]
    assert len(taken) > 20
    monkeypatch.setattr("streamlearn.stream.formats.json.msgspec", None)
    assert len(outcome(decoder(), taken)["places"]) == len(taken)
