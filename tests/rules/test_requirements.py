"""Which penalties and losses each rule supports: the laws check only what rules accept."""

from __future__ import annotations

from typing import Any

import pytest

import streamlearn as sl
from tests.support.members import LOSSES, PENALTIES, RULES, VECTOR_LOSSES, allowed, brief

# one of each kind, with effect
OF_KIND = {type(one).__name__: one for one in reversed(PENALTIES) if 0.0 not in one.params.values()}
OF_KIND["ElasticNet"] = sl.penalties.ElasticNet(0.01, 0.3)
STRENGTHS = {"Zero", "L1", "L2", "ElasticNet"}
SIMPLE = STRENGTHS | {"Ball"}
COORDINATES = STRENGTHS | {"Berhu"}
EUCLIDEAN = SIMPLE | COORDINATES | {"L1Ball", "LInfinity"}
OWN = {"Entropy", "LpSquared"}
ON_SIMPLEX = {"KL", "Simplex"}
PLAIN = {"Zero", "L2"}

SMOOTH = {"Huber", "Logistic", "Squared", "SquaredHinge", "MultiSquared", "Softmax"}
VECTORS = {"MultiSquared", "MulticlassHinge", "Softmax"}
EVERY = {type(loss).__name__ for loss in [*LOSSES, *VECTOR_LOSSES]}
SCALAR = EVERY - VECTORS

SUPPORTED: dict[type, tuple[set[str], set[str]]] = {
    sl.rules.AROW: ({"Zero"}, {"Hinge"}),
    sl.rules.AcceleratedDualAveraging: (EUCLIDEAN, SMOOTH),
    sl.rules.AdaGrad: (COORDINATES, EVERY),
    sl.rules.AdaGradDualAveraging: (COORDINATES, EVERY),
    sl.rules.Adaptive: (PLAIN, EVERY),
    sl.rules.BaseRate: (STRENGTHS, SCALAR),
    sl.rules.CoinBetting: (STRENGTHS, SCALAR),
    sl.rules.DiagonalNewton: (STRENGTHS, SCALAR),
    sl.rules.DualAveraging: (EUCLIDEAN | OWN | ON_SIMPLEX, EVERY),
    sl.rules.ExponentiatedDualAveraging: (ON_SIMPLEX, SCALAR),
    sl.rules.FTRLProximal: (COORDINATES, EVERY),
    sl.rules.ForwardBackward: (SIMPLE, EVERY),
    sl.rules.GradientDescent: (SIMPLE, EVERY),
    sl.rules.MirrorDescent: (STRENGTHS, SCALAR),
    sl.rules.Mixture: (STRENGTHS, SCALAR),
    sl.rules.NormalizedAdaptive: (STRENGTHS, SCALAR),
    sl.rules.OptimisticProximal: (PLAIN, EVERY),
    sl.rules.PNormDualAveraging: ({"Zero", "L1"}, EVERY),
    sl.rules.PassiveAggressive: ({"Zero"}, {"Hinge", "EpsilonInsensitive"}),
    sl.rules.Pegasos: ({"L2"}, EVERY),
    sl.rules.PolynomialAverage: (STRENGTHS, SCALAR),
    sl.rules.PrimalGradient: (OWN, EVERY),
    sl.rules.Proximal: (PLAIN, EVERY),
    sl.rules.TruncatedGradient: ({"Zero", "L1"}, EVERY),
}


def supported(rule: Any) -> tuple[set[str], set[str]]:
    """What a rule supports, with these parameters."""
    penalties, losses = SUPPORTED[type(rule)]
    given = rule.params
    if isinstance(rule, sl.rules.AcceleratedDualAveraging) and given["smoothness"] is not None:
        losses = EVERY  # that have any curvature: all examples here, but for a threshold of 0
    if isinstance(rule, sl.rules.Adaptive) and given["radius"] is None:
        penalties = {"L2"}
    if isinstance(rule, sl.rules.OptimisticProximal) and given["accuracy"] > 0.0:
        penalties = {"L2"}
    if isinstance(rule, sl.rules.Mixture) and rule == sl.rules.Mixture():
        penalties = penalties | {"TargetNonzero"}
    if type(rule) is sl.rules.DualAveraging:
        if given["rho"]:
            penalties = EUCLIDEAN
        if given["schedule"] == "zero":
            penalties = {"L2", "ElasticNet", "KL", *OWN}
        if given["gamma"] == "auto":
            penalties = SIMPLE
    return penalties, losses


@pytest.mark.parametrize("rule", RULES, ids=brief)
def test_each_rule_supports_what_it_says(rule: Any) -> None:
    penalties, losses = supported(rule)
    for name, penalty in OF_KIND.items():
        found = {
            type(loss).__name__
            for loss in [*LOSSES, *VECTOR_LOSSES]
            if allowed(rule, penalty, loss)
        }
        expected = losses if name in penalties else set()
        if name in ON_SIMPLEX:
            expected = expected - VECTORS  # several outputs would share one weight vector
        assert found == expected, name


def test_all_rules_are_in_the_table() -> None:
    assert SUPPORTED.keys() == {type(rule) for rule in RULES}


def test_a_loss_that_is_flat_at_zero_is_learned_on_a_simplex_only() -> None:
    for loss in (sl.losses.Novelty(0.0), sl.losses.SquaredHinge(0.0)):
        fit = {
            name for name, one in OF_KIND.items() if allowed(sl.rules.DualAveraging(), one, loss)
        }
        assert fit == ON_SIMPLEX
