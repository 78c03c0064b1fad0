"""Which method `auto` chooses, and what happens when the first one stalls."""

import itertools
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.hindsight import Solution, Step, solve
from streamlearn.hindsight.auto import TRIAL, merged

L, P = sl.losses, sl.penalties
RNG = np.random.default_rng(7)
ALIKE = RNG.normal(size=(60, 5))
# features of different scale: single dual steps hardly move
UNLIKE = ALIKE * [1.0, 1e-2, 1e2, 1e4, 1.0]
SIGNS = np.where(ALIKE[:, 0] + ALIKE[:, 3] + 0.3 * RNG.normal(size=60) > 0, 1, -1)


@pytest.mark.parametrize(
    ("X", "loss", "penalty", "method"),
    [
        (ALIKE, L.Logistic(), P.L2(0.1), "sdca"),
        (ALIKE, L.Hinge(), P.L2(0.1), "sdca"),
        (ALIKE, L.Logistic(), P.L1(0.1), "newton"),
        (ALIKE, L.Hinge(), P.L1(0.1), "bundle-ls"),
        (ALIKE, L.Softmax(), P.L2(0.1), "lbfgs"),
        (ALIKE, L.Softmax(), P.L1(0.1), "newton"),
        (ALIKE, L.MultiSquared(), P.L1(0.1), "owlqn"),
        (UNLIKE, L.Logistic(), P.L2(1e-6), "sdca, newton"),
        (UNLIKE, L.Logistic(), P.ElasticNet(1e-3, 1e-6), "sdca, newton"),
        (UNLIKE, L.Hinge(), P.L2(0.1), "sdca, bundle-ls"),
    ],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_auto_chooses_this_method(
    X: Any, loss: Any, penalty: Any, method: str, fit_intercept: bool
) -> None:
    steps: list[Step] = []
    y = ALIKE[:, :2] if loss.kind == "multitarget" else SIGNS
    found = solve(X, y, loss, penalty, gap=1e-6, fit_intercept=fit_intercept, callback=steps.append)
    assert found.method == method
    assert found.gap <= 1e-6
    assert not found.interrupted
    assert steps == found.history
    assert found.iterations == steps[-1].iteration
    for one, next_one in itertools.pairwise(steps):
        assert one.iteration <= next_one.iteration
        assert one.objective >= next_one.objective
        assert one.lower_bound <= next_one.lower_bound
        assert one.seconds <= next_one.seconds


def test_the_first_method_bounds_the_objective_not_the_risk() -> None:
    X, penalty = ALIKE * [1.0, 1.0, 10.0, 1.0, 1.0], P.L2(0.01)
    found = solve(X, SIGNS, L.Hinge(), penalty, gap=1e-7)
    alone = solve(X, SIGNS, L.Hinge(), penalty, gap=1e-7, method="bundle-ls")
    assert found.method == "sdca, bundle-ls"
    assert found.objective == pytest.approx(alone.objective, abs=2e-7)
    assert found.lower_bound <= alone.objective


def test_max_iter_below_the_trial_is_respected() -> None:
    found = solve(UNLIKE, SIGNS, L.Logistic(), P.L2(1e-6), gap=1e-9, max_iter=TRIAL // 2)
    assert found.method == "sdca"
    assert found.iterations <= TRIAL // 2
    more = solve(UNLIKE, SIGNS, L.Logistic(), P.L2(1e-6), gap=1e-14, max_iter=TRIAL + 2)
    assert more.iterations <= TRIAL + 2


@pytest.mark.parametrize("after", [1, 5, TRIAL + 4])
def test_a_stopped_run_does_not_try_the_second_method(after: int) -> None:
    def stop(step: Step) -> bool:
        return step.iteration >= after

    def interrupt(step: Step) -> None:
        if step.iteration >= after:
            raise KeyboardInterrupt

    for callback in (stop, interrupt):
        found = solve(UNLIKE, SIGNS, L.Logistic(), P.L2(1e-6), gap=1e-14, callback=callback)
        assert found.interrupted
        assert after <= found.iterations <= after + TRIAL
        assert found.method == ("sdca" if after <= TRIAL else "sdca, newton")
        assert np.isfinite(found.w).all()


def test_a_bound_is_never_above_its_objective() -> None:
    """The two come from two methods, which round differently."""
    below = float(np.nextafter(1.0, 0.0))
    tried, found = (
        Solution(np.zeros(2), 0.0, top, low, top - low, 1, [Step(1, top, low, 0.0)], "some")
        for top, low in ((1.0, 1.0), (below, 0.5))
    )
    both = merged(tried, found)
    assert both.lower_bound == both.objective == below
    assert both.gap == both.history[-1].gap == 0.0


@pytest.mark.parametrize("penalty", [P.L1(1e-3), P.ElasticNet(1e-3, 1e-6), P.L2(1e-6)])
@pytest.mark.parametrize("intercept", [False, True])
def test_huber_with_labels_far_beyond_its_delta(penalty: Any, intercept: bool) -> None:
    """Nearly all rows are where the loss has no curvature."""
    X = RNG.normal(size=(500, 8))
    y = 1e5 * (X @ RNG.normal(size=8)) + 3e5 * intercept + 1e4 * RNG.normal(size=500)
    found = solve(X, y, L.Huber(1.0), penalty, gap=5.0, fit_intercept=intercept)
    assert found.gap <= 5.0
    assert found.iterations < 500
    other = solve(X, y, L.Huber(1.0), penalty, gap=5.0, fit_intercept=intercept, method="bundle-ls")
    assert found.objective == pytest.approx(other.objective, abs=10.0)
