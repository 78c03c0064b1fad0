"""Calls as text: what prints is read back, what is not ours is refused with the nearest that is."""

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

SPECS = [cls for cls in expressions.known().values() if issubclass(cls, Parameterized)]
SCHEDULES = expressions.known(sl.rules.schedules.Schedule)


@pytest.mark.parametrize("cls", SPECS, ids=lambda cls: cls.__name__)
def test_every_spec_is_read_back_from_what_it_prints(cls: type[Any]) -> None:
    examples = [cls(0.5)] if cls.__name__ in SCHEDULES else cls.examples()
    assert examples
    for spec in examples:
        assert expressions.parse(repr(spec), cls) == spec


@pytest.mark.parametrize("cls", expressions.known(Linear).values(), ids=lambda cls: cls.__name__)
def test_every_estimator_is_read_back_from_what_is_shown(cls: type[Any]) -> None:
    for model in (cls(), cls(seed=3, average="tail", features=sl.Hashing(7))):
        again = expressions.parse(expressions.shown(model), cls)
        assert expressions.shown(again) == expressions.shown(model)
        assert again.params == model.params
        assert repr(again.rules[0]) == repr(model.rules[0])


def test_all_public_specs_are_known() -> None:
    for family in (sl.rules, sl.losses, sl.penalties):
        bases = {"Rule", "Loss", "VectorLoss", "Penalty"}
        assert set(family.__all__) - bases <= set(expressions.known())


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("DualAveragin(gamma=5)", sl.rules.Rule, "did you mean DualAveraging?"),
        ("dual_averaging", sl.rules.Rule, "did you mean DualAveraging?"),
        ("L1(strenth=2)", None, "did you mean strength?"),
        ("Zero(1)", None, "takes 0 parameters (none), got 1"),
        ("Zero(a=1)", None, "it takes none"),
        ("Hinge()", sl.rules.Rule, "a loss, and a rule is expected"),
        ("Hashing(18)", AnyLoss, "features, and a loss is expected"),
        ("3", sl.rules.Rule, "a int, and a rule is expected"),
        ("AdaGradDualAveraging()", None, "it takes step, delta"),
        ("L1(1e-3", None, "was never closed"),
        ("L1(10**9)", None, "10 ** 9 is not understood"),
        ("L1(x)", None, "x is not understood"),
        ("L1(*[1])", None, "only literals"),
        ("L1(**{})", None, "no parameter **"),
        ("sl.rules.Pegasos()", None, "a name alone"),
        ("__import__('os').system('true')", None, "a name alone"),
        ("__import__('os')", None, "__import__ is not known"),
        ("(lambda: L1(1))()", None, "a name alone"),
        ("[L1(1) for _ in 'ab']", None, "not understood"),
        ("L1('\0')", None, "is not a call"),
        ("", None, "is not a call"),
        ("(" * 5000, None, "is not a call"),
        ("-" * 9000 + "1", None, "nested too deeply"),
        ("x" * 20_000, None, "at most 10000 characters"),
    ],
)
def test_what_is_not_ours_is_refused(text: str, kind: type[Any] | None, said: str) -> None:
    with pytest.raises(expressions.ExpressionError) as refusal:
        expressions.parse(text, kind)
    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 700


def test_what_a_class_refuses_is_said_in_its_words() -> None:
    with pytest.raises(ValueError, match="strength must be at least 0"):
        expressions.parse("L1(-1)")


@given(st.text(alphabet="()[]{},=.'\"*-:0123456789eLl1Paegsosinf \n\\_", max_size=40))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        expressions.parse(text)
