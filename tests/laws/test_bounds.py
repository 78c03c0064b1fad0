"""The regret is below the paper's bound wherever a bound is given; elsewhere a reason is."""

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from tests.support.members import (
    N,
    Vector,
    allowed,
    brief,
    dense,
    estimator,
    know_all,
    pairs,
    stream_for,
    turn,
)

LOSSES = [
    sl.losses.Logistic(),
    sl.losses.Hinge(),
    sl.losses.Hinge(2.5),
    sl.losses.SquaredHinge(),
    sl.losses.Squared(),
    sl.losses.Absolute(),
    sl.losses.Novelty(),
]
BOUNDED = {
    *("Pegasos", "Adaptive", "Proximal", "DualAveraging", "PNormDualAveraging"),
    *("ExponentiatedDualAveraging", "PrimalGradient"),
}
PAIRS = pairs(*LOSSES)
each_pair = pytest.mark.parametrize(("rule", "penalty"), PAIRS, ids=brief)


def brought(penalty: Any, v: Vector, step: float) -> Vector:
    """Return points closer to the penalty's minimum (by the prox, where it is fast)."""
    if isinstance(penalty, sl.penalties.LpSquared):
        return np.asarray(v / (1.0 + step * penalty.strength))
    if isinstance(penalty, sl.penalties.Entropy):
        return np.asarray(v / max(1.0, (1.0 + step) * np.abs(v).sum() / penalty.radius))
    return np.asarray(penalty.prox(v, step))


def best(penalty: Any, loss: Any, X: Vector, y: Vector, w: Vector, free: bool) -> list[Vector]:
    """Return points of proximal gradient steps on the objective; column 0 may be unpenalized."""
    total = float(w.sum())
    step = 1.0 / (total * max(float(np.mean(np.sum(X**2, axis=1))), 0.1))
    u = np.zeros(X.shape[1])
    u[free:] = brought(penalty, u[free:], 1.0)
    points = []
    for k in range(1, 31):
        g = (w * loss.slope(X @ u, y)) @ X
        rate = 3.0 * step / np.sqrt(k)
        v = u - rate * g
        u = v.copy()
        u[free:] = brought(penalty, v[free:], rate * np.count_nonzero(w))
        if k % 10 == 0:
            points.append(u)
    return points


def candidates(
    penalty: Any, loss: Any, X: Vector, y: Vector, w: Vector, free: bool
) -> list[Vector]:
    found = best(penalty, loss, X, y, w, free)
    rng = np.random.default_rng(2)
    n = X.shape[1]
    for v in [*rng.normal(size=(4, n)), np.zeros(n)]:
        z = v.copy()
        z[free:] = brought(penalty, v[free:], 0.1)
        found.append(z)
    if penalty.on_simplex:
        return found + list(np.eye(n)[:3])
    return [u * scale for u in found for scale in (1.0, 0.5, 0.1)]


def check(rule: Any, penalty: Any, loss: Any, fit_intercept: Any, seed: int) -> int:
    """The number of points compared with the regret."""
    # the reference's steps for Entropy are slow
    events = 25 if isinstance(penalty, sl.penalties.Entropy) else 50
    data = stream_for(loss, events=events, seed=seed)
    model = estimator(rule, penalty, loss, fit_intercept=fit_intercept)
    know_all(model)
    spent = 0.0
    for i in range(len(data)):
        worth = model.penalty_value
        p = model.progressive_rows(data.rows[i : i + 1], data.y[i : i + 1], data.w[i : i + 1])[0]
        if data.w[i] > 0.0:
            spent += worth + data.w[i] * loss.value(float(p), data.y[i])
    X = data.X
    free = fit_intercept is True and rule.intercept == "free"
    if fit_intercept:
        X = np.hstack([np.ones((len(X), 1)), X])
    counted = 0
    for u in candidates(penalty, loss, X, data.y, data.w, free):
        b, weights = (float(u[0]), u[1:]) if fit_intercept else (0.0, u)
        bound = model.regret_bound(weights, b)
        reason = model.why_no_bound(weights, b)
        assert (bound is None) == (reason is not None)
        if bound is None:
            assert len(str(reason).split()) > 4
            continue
        psi = penalty.value(u[1:] if free else u)
        regret = spent - model.steps * psi - float(data.w @ loss.value(X @ u, data.y))
        assert regret <= bound * (1 + 1e-9) + 1e-9
        counted += 1
        if not fit_intercept and not penalty.on_simplex:
            geometry = penalty.params.get("p", rule.params.get("p", 2.0))
            norm = 1.0 if isinstance(penalty, sl.penalties.Entropy) else geometry
            if norm is not None and "rho" not in rule.params:
                by_norm = model.regret_bound(float(np.linalg.norm(weights, norm)))
                assert by_norm is None or by_norm >= bound * (1 - 1e-9)
    return counted


@each_pair
def test_regret_is_below_the_bound(rule: Any, penalty: Any) -> None:
    if type(rule).__name__ not in BOUNDED and type(rule).bound is sl.rules.Rule.bound:
        return
    place = turn(rule, penalty)
    found = [loss for loss in LOSSES if allowed(rule, penalty, loss)]
    wishes = (False,) if penalty.on_simplex else (False, "penalized", True)
    for k, wish in enumerate(wishes):
        check(rule, penalty, found[(place + k) % len(found)], wish, place)


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (sl.rules.Pegasos(), sl.penalties.L2(0.5)),
        (sl.rules.Pegasos(False), sl.penalties.L2(0.1)),
        (sl.rules.Adaptive(0.4, None, 0.4), sl.penalties.L2(0.1)),
        (sl.rules.Adaptive(2.0, 4.0, 2.0), sl.penalties.Zero()),
        (sl.rules.Proximal(0.4, None, 0.4), sl.penalties.Zero()),
        (sl.rules.Proximal(2.0, 4.0, 2.0, 72), sl.penalties.L2(0.1)),
        *(
            (sl.rules.DualAveraging(gamma, 0.0, schedule), penalty)
            for gamma in (0.1, 1.0)
            for schedule in ("sqrt", "constant", "log")
            for penalty in (
                sl.penalties.Zero(),
                sl.penalties.L1(0.02),
                sl.penalties.ElasticNet(0.01, 0.5),
                sl.penalties.L1Ball(0.5),
                sl.penalties.LpSquared(0.2, 1.4),
            )
        ),
        (sl.rules.DualAveraging(0.3, 0.05), sl.penalties.L1(0.01)),
        (sl.rules.DualAveraging(schedule="zero"), sl.penalties.L2(0.5)),
        (sl.rules.DualAveraging(schedule="zero"), sl.penalties.KL(0.2)),
        (sl.rules.PNormDualAveraging(0.3), sl.penalties.L1(0.01)),
        (sl.rules.ExponentiatedDualAveraging(0.3), sl.penalties.Simplex()),
        (sl.rules.PrimalGradient(), sl.penalties.LpSquared(0.3, 1.5)),
        (sl.rules.PrimalGradient(), sl.penalties.Entropy(0.3, 0.8)),
        (sl.rules.PrimalGradient(0.3), sl.penalties.LpSquared(0.3, 1.5)),
    ],
    ids=brief,
)
def test_proved_combinations_have_a_bound(rule: Any, penalty: Any) -> None:
    for seed, loss in enumerate((sl.losses.Logistic(), sl.losses.Hinge(), sl.losses.Absolute())):
        assert check(rule, penalty, loss, False, seed) > 3


L2 = [sl.penalties.L2(0.5), sl.penalties.L2(0.1)]
PLAIN = [*L2, sl.penalties.Zero(), sl.penalties.L1(0.02), sl.penalties.ElasticNet(0.01, 0.5)]
SUMMED: list[tuple[Any, Any]] = [
    *((sl.rules.Pegasos(project), penalty) for project in (True, False, 2.0) for penalty in L2),
    *((kind(*given), penalty)
      for kind in (sl.rules.Adaptive, sl.rules.Proximal)
      for given in ((0.4, None, 0.4), (2.0, 40.0, 2.0))
      for penalty in (*L2, sl.penalties.Zero())),
    *((sl.rules.Proximal(2.0, 40.0, 2.0, horizon), penalty)
      for horizon in (9, 500) for penalty in (*L2, sl.penalties.Zero())),
    *((sl.rules.DualAveraging(gamma, rho, schedule), penalty)
      for gamma, rho in ((0.1, 0.0), (2.0, 0.0), (0.7, 0.05))
      for schedule in ("sqrt", "constant", "log")
      for penalty in PLAIN
      if rho == 0.0 or penalty == sl.penalties.L1(0.02)),
    *((sl.rules.DualAveraging(schedule="zero"), penalty) for penalty in L2),
    *((sl.rules.PrimalGradient(radius), sl.penalties.LpSquared(0.3, p))
      for radius in (None, 0.3) for p in (1.2, 1.5, 2.0)),
]  # fmt: skip


def summed(rule: Any, penalty: Any, loss: Any, u: Vector) -> float:
    """The theorems' sums over the events of a stream, from the dense reference of the rule."""
    data = stream_for(loss)
    steps: Any = dense(rule, penalty, loss)
    l2, name, total, largest = penalty.l2, type(rule).__name__, 0.0, 0.0
    betas, curvature = [], 0.0
    q = 2.0 if name != "PrimalGradient" else penalty.p / (penalty.p - 1.0)
    for x, y, weight in zip(data.X, data.y, data.w, strict=True):
        if weight == 0.0:
            continue
        before = steps.w.copy()
        gradient = weight * loss.slope(float(x @ before), y) * x
        if name in {"Pegasos", "Adaptive", "Proximal"}:
            gradient += l2 * before
        size = float(np.linalg.norm(gradient, q))
        largest = max(largest, size)
        steps.step(x, y, weight)
        t = steps.t
        if name == "Pegasos":
            total += largest**2 / (2.0 * l2 * t)
        elif name == "PrimalGradient":
            total += size**2 / (2.0 * t * penalty.strength)
        elif name == "DualAveraging":
            betas.append(beta(rule, t))
        else:
            tau, curvature = steps.tau_sum - curvature, steps.tau_sum
            G = largest if rule.gradient_bound is None else rule.gradient_bound
            step = 0.0 if l2 * t + curvature == 0.0 else G**2 / (l2 * t + curvature)
            total += (1.5 if name == "Adaptive" else 2.0) * tau * rule.radius**2
            total += step if name == "Adaptive" else 0.5 * step
    if name == "DualAveraging":  # [Xiao10] Theorem 1
        first = max(l2, betas[0])
        total = sum(1.0 / (l2 * k + b) for k, b in enumerate([first, *betas[:-1]]))
        total = (
            0.5 * largest**2 * total + 2.0 * (first - betas[0]) * (largest / (betas[0] + l2)) ** 2
        )
        total += betas[-1] * (0.5 * float(u @ u) + rule.rho * float(np.abs(u).sum()))
    return total


def beta(rule: Any, t: int) -> float:
    known = {"sqrt": np.sqrt(t), "constant": 1.0, "log": 1.0 + np.log(t), "zero": 0.0}
    return float(rule.gamma * known[rule.schedule])


@pytest.mark.parametrize(("rule", "penalty"), SUMMED, ids=brief)
@pytest.mark.parametrize("loss", [sl.losses.Hinge(), sl.losses.Squared()], ids=brief)
def test_the_bound_is_the_sum_of_the_theorem(rule: Any, penalty: Any, loss: Any) -> None:
    data, model = stream_for(loss), estimator(rule, penalty, loss)
    know_all(model)
    model.learn_rows(data.rows, data.y, data.w)
    u = np.random.default_rng(4).normal(size=N)
    u *= 0.25 / np.linalg.norm(u, 1)  # inside each ball
    assert model.regret_bound(u) == pytest.approx(summed(rule, penalty, loss, u), rel=1e-9)


@pytest.mark.parametrize("kind", [sl.rules.Adaptive, sl.rules.Proximal])
@pytest.mark.parametrize("radius", [0.4, 1.0, 2.0])
def test_a_bound_holds_only_on_the_ball_of_the_radius(kind: Any, radius: float) -> None:
    for project in (None, False, True, 0.3, radius):
        rule = kind(radius, None, project)
        model = estimator(rule, sl.penalties.L2(1.0), sl.losses.Hinge())
        data = stream_for(sl.losses.Hinge())
        model.learn_rows(data.rows, data.y, data.w)
        proved = project is radius
        assert (model.regret_bound() is not None) == proved
        assert (model.regret_bound(0.999 * radius) is not None) == proved
        assert model.regret_bound(1.001 * radius) is None


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (rule, penalty)
        for rule, penalty in PAIRS
        if penalty.on_simplex or rule.params.get("p", 2.0) is None
    ],
    ids=brief,
)
def test_a_domain_that_grows_has_no_bound(rule: Any, penalty: Any) -> None:
    """Its auxiliary function is not that of the theorem: slots are added after the first event."""
    loss = next(loss for loss in LOSSES if allowed(rule, penalty, loss))
    data = stream_for(loss)
    for width in (N, N - 1):
        model = estimator(rule, penalty, loss)
        model.learn_rows(data.X[:9, :width], data.y[:9], data.w[:9])
        proved = model.regret_bound(1.0) is not None
        model.learn_rows(data.X[9:], data.y[9:], data.w[9:])
        assert (model.regret_bound(1.0) is not None) == (proved and width == N)


@each_pair
def test_unproved_combinations_have_a_reason(rule: Any, penalty: Any) -> None:
    if type(rule).__name__ not in BOUNDED and penalty.value(np.zeros(N)) == 0.0:
        loss = sl.losses.Logistic()
        if allowed(rule, penalty, loss):
            model = estimator(rule, penalty, loss)
            assert model.regret_bound(1.0) is None or model.why_no_bound(1.0) is None
            assert (model.regret_bound() is None) == isinstance(model.why_no_bound(), str)
