"""Calls as text: a repr parses to an equal object; anything else is rejected with a suggestion."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlearn as sl
from streamlearn.config import expressions
from streamlearn.core.parameters import Parameterized
from streamlearn.estimators.linear import Linear
from streamlearn.losses.loss import AnyLoss

SPECS = [cls for cls in expressions.known_classes().values() if issubclass(cls, Parameterized)]
SCHEDULES = expressions.known_classes(sl.rules.schedules.Schedule)


@pytest.mark.parametrize("cls", SPECS, ids=lambda cls: cls.__name__)
def test_the_repr_of_a_spec_parses_to_an_equal_spec(cls: type[Any]) -> None:
    examples = [cls(0.5)] if cls.__name__ in SCHEDULES else cls.examples()
    assert examples
    for spec in examples:
        assert expressions.parse(repr(spec), cls) == spec


@pytest.mark.parametrize(
    "cls", expressions.known_classes(Linear).values(), ids=lambda cls: cls.__name__
)
def test_an_unparsed_estimator_parses_to_an_equal_estimator(cls: type[Any]) -> None:
    for model in (cls(), cls(seed=3, average="tail", features=sl.Hashing(7))):
        again = expressions.parse(expressions.unparse(model), cls)
        assert expressions.unparse(again) == expressions.unparse(model)
        assert again.params == model.params
        assert repr(again.rules[0]) == repr(model.rules[0])


def test_all_public_specs_can_be_called() -> None:
    for family in (sl.rules, sl.losses, sl.penalties):
        bases = {"Rule", "Loss", "VectorLoss", "Penalty"}
        assert set(family.__all__) - bases <= set(expressions.known_classes())


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("DualAveragin(gamma=5)", sl.rules.Rule, "did you mean DualAveraging?"),
        ("dual_averaging", sl.rules.Rule, "did you mean DualAveraging?"),
        ("L1(strenth=2)", None, "did you mean strength?"),
        ("PegasosRegressor", sl.LinearClassifier, "did you mean PegasosClassifier?"),
        ("Hinge()", sl.rules.Rule, "expected a rule, got a loss"),
        ("Hashing(18)", AnyLoss, "expected a loss, got features"),
        ("AdaGradDualAveraging()", None, "its parameters are step, delta"),
    ],
)
def test_an_error_names_the_closest_valid_call(
    text: str, kind: type[Any] | None, hint: str
) -> None:
    with pytest.raises(expressions.ExpressionError) as error:
        expressions.parse(text, kind)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "Zero(1)",
        "Zero(a=1)",
        "L1(1e-3",
        "L1(10**9)",
        "L1(x)",
        "L1(*[1])",
        "L1(**{})",
        "sl.rules.Pegasos()",
        "__import__('os').system('true')",
        "__import__('os')",
        "(lambda: L1(1))()",
        "[L1(1) for _ in 'ab']",
        "L1('\0')",
        "",
        "(" * 5000,
        "-" * 9000 + "1",
        "x" * 20_000,
    ],
)
def test_anything_but_a_call_of_this_library_is_rejected(text: str) -> None:
    with pytest.raises(expressions.ExpressionError) as error:
        expressions.parse(text)
    assert len(str(error.value)) < 700


def test_a_literal_is_not_a_rule() -> None:
    assert expressions.parse("3") == 3
    with pytest.raises(expressions.ExpressionError):
        expressions.parse("3", sl.rules.Rule)


def test_an_error_of_a_constructor_is_raised_unchanged() -> None:
    with pytest.raises(ValueError, match="strength") as error:
        expressions.parse("L1(-1)")
    assert not isinstance(error.value, expressions.ExpressionError)


@given(st.text(alphabet="()[]{},=.'\"*-:0123456789eLl1Paegsosinf \n\\_", max_size=40))
def test_any_text_has_a_value_or_raises_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        expressions.parse(text)
