"""A model as a SQL expression of the fields, in the dialect of DuckDB."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streamlearn.errors import IncompatibleError
from streamlearn.export.fields import LearnedField, learned_fields, may_clip, parts_of_time
from streamlearn.export.score import outputs_of
from streamlearn.features import fields as kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlearn.estimators.linear import Linear
    from streamlearn.export.score import MixtureTerm, Output, Term
    from streamlearn.features.fields import Field

TARGET = "SQL"
PARTS = {"hour": "hour({})", "weekday": "isodow({}) - 1", "month": "month({})"}
OFFSET = r":.*(Z|[+-][0-9:]+)$"  # of a time
FEW = 8  # cases
WORDS = r"[\p{L}\p{N}_]+"


def expression(model: Linear) -> str:
    """Return the score as a SQL expression; with several outputs, a struct by label or target.

    A column is a field. NULL is a missing value. For text, the words are runs of letters, digits
    and underscores as in training.

    >>> import streamlearn as sl
    >>> model = sl.PegasosClassifier(l2=0.1, fit_intercept=False)
    >>> model.learn_one({"price": 0.5}, True)
    >>> expression(model)
    '(coalesce(3.162277660168379e0 * CAST("price" AS DOUBLE), 0.0))'
    """
    outputs = outputs_of(model)
    slots = sorted({slot for output in outputs for slot in output.used.tolist()})
    fields = learned_fields(model.reader, slots, TARGET)
    texts = [output_sql(output, fields) for output in outputs]
    if len(outputs) == 1:
        return texts[0]
    pairs = (f"{text(str(output.name))}: {sql}" for output, sql in zip(outputs, texts, strict=True))
    return "{" + ", ".join(pairs) + "}"


def output_sql(output: Output, fields: Sequence[LearnedField]) -> str:
    """Return the score of an output."""
    # clipped sums cannot be added up beforehand, unless no event reaches their ends
    plain = [one for one in output.members if not may_clip(one, fields)]
    parts = [number(output.offset)] if output.offset else []
    if plain:
        parts += sum_of(plain, fields)
    for one in output.members:
        if one not in plain:
            inner = " + ".join(sum_of([one], fields, share=1.0)) or "0.0"
            clipped = f"greatest({number(one.low)}, least({number(one.high)}, {inner}))"
            parts.append(f"{number(one.share)} * {clipped}")
    return f"({' + '.join(parts) or '0.0'})"


def sum_of(
    members: Sequence[MixtureTerm], fields: Sequence[LearnedField], share: float | None = None
) -> list[str]:
    """Return the parts of the sum of members; `share` instead of their own ones."""
    shares = [one.share if share is None else share for one in members]
    constant = math.fsum(s * one.intercept for s, one in zip(shares, members, strict=True))
    parts = [number(constant)] if constant else []

    def flag(slot: int) -> str:
        values = (s * one.term(slot).at(1.0) for s, one in zip(shares, members, strict=True))
        return number(math.fsum(values))

    def product(slot: int, x: str) -> str:
        terms = [(s, one.term(slot)) for s, one in zip(shares, members, strict=True)]
        simple = math.fsum(s * term.weight for s, term in terms if math.isinf(term.largest))
        found = [f"{number(simple)} * {x}"] if simple else []
        found += [limited(s, term, x) for s, term in terms if not math.isinf(term.largest)]
        return " + ".join(one for one in found if one) or "0.0"

    for one in fields:
        parts += FieldExpression(one, flag, product).parts()
    return parts


def limited(share: float, term: Term, x: str) -> str:
    """Return a term that treats values beyond `largest` in another way; "" if it adds nothing."""
    weight, largest = share * term.weight, number(term.largest)
    inside = f"{number(weight)} * {x}"
    if term.wealth is None:
        # greatest and least would ignore NULL
        low, high = f"WHEN {x} < -{largest} THEN -{largest}", f"WHEN {x} > {largest} THEN {largest}"
        return f"{number(weight)} * CASE {low} {high} ELSE {x} END" if weight else ""
    if not term.wealth and not weight:
        return ""
    below = f"abs({x}) * ({number(term.absolute)} + {number(term.beta)} * abs({x}))"
    beyond = f"{number(share * term.wealth)} * {x} / ({below} + {number(term.ridge)})"
    return f"CASE WHEN abs({x}) <= {largest} THEN {inside} ELSE {beyond} END"


class FieldExpression:
    """Writes what a field adds."""

    def __init__(
        self,
        field: LearnedField,
        flag: Callable[[int], str],
        product: Callable[[int, str], str],
    ) -> None:
        self.field = field
        self.kind = field.kind
        self.column = '"' + field.name.replace('"', '""') + '"'
        self.flag = flag
        self.product = product

    def parts(self) -> list[str]:
        """Return the parts of the sum."""
        kind = self.kind
        if isinstance(kind, kinds.Number) or "" in self.field.slots:
            return self.number_parts()
        if isinstance(kind, kinds.Time):
            return self.time_parts(kind)
        return [self.part(kind)]

    def part(self, kind: Field) -> str:
        """Return the only part of the sum."""
        if isinstance(kind, kinds.Auto):
            return self.cases(f"CAST({self.column} AS VARCHAR)")
        if isinstance(kind, kinds.Category):
            return self.cases(canonical(self.column))
        if isinstance(kind, kinds.Buckets):
            return self.bucket_part()
        if isinstance(kind, kinds.List):
            return self.list_part(kind)
        if isinstance(kind, kinds.Text):
            return self.text_part(kind)
        raise self.refused(f"is a {kind.kind}")

    def refused(self, what: str) -> IncompatibleError:
        """Return the error of a field that SQL cannot express."""
        return IncompatibleError(
            f"the field {self.field.name!r} {what}, which cannot be exported to {TARGET}; export "
            "to json, or train with --field "
            f"{self.field.name}=ignore"
        )

    def cases(self, value: str) -> str:
        """Return what the category `value` adds."""
        slots = self.field.slots.items()
        return looked_up(value, {text(rest[1:]): self.flag(slot) for rest, slot in slots})

    def number_parts(self) -> list[str]:
        """Return what a number, other values and the indicator that it is missing add."""
        kind = self.kind if isinstance(self.kind, kinds.Number) else kinds.Number()
        value = f"CAST({self.column} AS DOUBLE)"
        if kind.invalid != "refuse":
            value = f"TRY_{value}"
            value = f"CASE WHEN isfinite({value}) THEN {value} END"
        x = value
        if kind.clip is not None:
            low, high = kind.clip
            x = x if math.isinf(high) else f"least({number(high)}, {x})"
            x = x if math.isinf(low) else f"greatest({number(low)}, {x})"
            x = f"CASE WHEN {value} IS NOT NULL THEN {x} END"
        x = f"ln(1.0 + {x})" if kind.log1p else x
        x = f"({x} - {number(kind.center)})" if kind.center else x
        parts, slots = [], dict(self.field.slots)
        if (slot := slots.pop("", None)) is not None:
            parts.append(or_zero(self.product(slot, x)))
        if kind.indicator and (slot := slots.get("=missing")) is not None:
            # where other values are categories, the text "missing" is one that has the same weight
            absent = self.column if kind.invalid == "category" else value
            parts.append(f"CASE WHEN {absent} IS NULL THEN {self.flag(slot)} ELSE 0.0 END")
        if slots and kind.invalid == "category":
            weights = {text(rest[1:]): self.flag(slot) for rest, slot in slots.items()}
            other = looked_up(canonical(self.column), weights)
            parts.append(f"CASE WHEN {value} IS NULL THEN {other} ELSE 0.0 END")
        return parts

    def bucket_part(self) -> str:
        """Return what the interval of a number adds."""
        ends = {}
        for rest, slot in self.field.slots.items():
            low, _, high = rest[2:-1].partition(",")
            ends[float(low), float(high)] = self.flag(slot)
        x = f"CAST({self.column} AS DOUBLE)"
        cases = "".join(
            f" WHEN {x} >= {number(low)} AND {x} < {number(high)} THEN {weight}"
            for (low, high), weight in sorted(ends.items())
        )
        return f"CASE{cases} ELSE 0.0 END"

    def time_parts(self, kind: kinds.Time) -> list[str]:
        """Return what the parts of a time add."""
        value = f"CAST({self.column} AS VARCHAR)"
        scale = {"s": "1e0", "ms": "1e-3", "us": "1e-6", "ns": "1e-9"}[kind.unit]
        seconds = f"floor(TRY_CAST({value} AS DOUBLE) * {scale})"
        offset = f"CASE WHEN regexp_matches({value}, {text(OFFSET)}) THEN '' ELSE '+00' END"
        cast = "CAST" if kind.invalid == "refuse" else "TRY_CAST"
        clock = f"CASE WHEN contains({value}, ':') THEN '' ELSE ' 00:00:00' END"
        instant = (
            f"CASE WHEN TRY_CAST({value} AS DOUBLE) IS NOT NULL THEN to_timestamp({seconds}) "
            f"ELSE {cast}({value} || {clock} || {offset} AS TIMESTAMPTZ) END"
        )
        moment = f"timezone({text(kind.zone)}, {instant})"
        return [
            case(
                f"({PARTS[part].format(moment)})",
                {str(n): self.flag(slot) for n, slot in slots.items()},
            )
            for part, slots in parts_of_time(self.field, TARGET).items()
        ]

    def list_part(self, kind: kinds.List) -> str:
        """Return what the items of a text add."""
        value = f"CAST({self.column} AS VARCHAR)"
        items = f"list_distinct(string_split({value}, {text(kind.separator)}))"
        weights = self.cases(canonical("item"))
        return or_zero(f"list_sum(list_transform({items}, lambda item: {weights}))")

    def text_part(self, kind: kinds.Text) -> str:
        """Return what the words of a text add."""
        if kind.ngrams > 1 or kind.chars is not None or kind.normalized:
            raise self.refused("is a text with ngrams, chars or normalized")
        words = f"regexp_extract_all(lower(CAST({self.column} AS VARCHAR)), {text(WORDS)})"
        count = f"CAST(len(list_filter({words}, lambda other: other = word)) AS DOUBLE)"
        x = "1.0" if kind.binary else count
        cases = {text(rest[1:]): self.product(slot, x) for rest, slot in self.field.slots.items()}
        weights = case("word", cases)
        return or_zero(f"list_sum(list_transform(list_distinct({words}), lambda word: {weights}))")


def canonical(value: str) -> str:
    """Return a category in its one form, as in training: 12.0 is 12, True is true."""
    v = f"CAST({value} AS VARCHAR)"
    whole = f"regexp_full_match({v}, '-?[0-9]+\\.0+')"
    zeros = f"regexp_replace({v}, '\\.0+$', '')"
    short = f"CASE WHEN {whole} THEN {zeros} ELSE {v} END"
    truth = f"CASE WHEN lower({v}) IN ('true', 'false') THEN lower({v}) ELSE {short} END"
    return f"CASE WHEN regexp_full_match({v}, '-0(\\.0+)?') THEN '0' ELSE {truth} END"


def case(value: str, weights: dict[str, str]) -> str:
    """Return the weight of a value."""
    cases = "".join(f" WHEN {name} THEN {weight}" for name, weight in weights.items())
    return f"CASE {value}{cases} ELSE 0.0 END"


def looked_up(value: str, weights: dict[str, str]) -> str:
    """Return the constant weight of a value; a map is searched faster than many cases."""
    if len(weights) <= FEW:
        return case(value, weights)
    return or_zero(f"MAP {{{', '.join(f'{key}: {one}' for key, one in weights.items())}}}[{value}]")


def or_zero(value: str) -> str:
    """Return a value, or 0 for a missing one."""
    return f"coalesce({value}, 0.0)"


def number(value: float) -> str:
    """Return a number as a DOUBLE.

    >>> number(0.1), number(1e-30), number(float("inf"))
    ('0.1e0', '1e-30', "'inf'::DOUBLE")
    """
    if math.isinf(value):
        return f"'{'-' if value < 0 else ''}inf'::DOUBLE"
    shown = repr(value)
    return shown if "e" in shown else f"{shown}e0"  # without an exponent it would be a DECIMAL


def text(value: str) -> str:
    """Return a text as a literal.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"
