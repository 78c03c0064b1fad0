"""The reference against mathematics.

Optimality of every prox and argmin, slopes against numeric derivatives, and identities between the
papers' algorithms.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from . import REFERENCE, averages, losses, penalties
from .proximal import best_tau
from .rule import Rule

N = 6
PRIOR = np.arange(1.0, N + 1.0) / np.sum(np.arange(1.0, N + 1.0))

PENALTIES = {
    "zero": penalties.Zero(),
    "l1": penalties.L1(0.3),
    "l2": penalties.L2(0.5),
    "elastic": penalties.ElasticNet(0.2, 0.4),
    "berhu": penalties.Berhu(0.3, 0.4),
    "linf": penalties.LInfinity(0.7),
    "ball": penalties.Ball(0.8),
    "l1ball": penalties.L1Ball(0.9),
    "simplex": penalties.Simplex(),
    "kl": penalties.KL(0.3, PRIOR),
    "kl-uniform": penalties.KL(2.0),
    "lp": penalties.LpSquared(0.6, 1.3),
    "l2-as-lp": penalties.LpSquared(0.6, 2.0),
    "entropy": penalties.Entropy(0.4, 1.5, 0.5),
    "entropy-wide": penalties.Entropy(0.4, 100.0, 2.0),
}
OWN_H = (penalties.KL, penalties.LpSquared, penalties.Entropy)

LABELED = [
    *[losses.Hinge(1.0), losses.Hinge(0.0), losses.SquaredHinge(1.0), losses.SquaredHinge(0.0)],
    *[losses.Logistic(), losses.Exponential(), losses.Novelty(0.5)],
]
REAL = [
    *[losses.Squared(), losses.Absolute(), losses.Quantile(0.2), losses.EpsilonInsensitive(0.3)],
    *[losses.Huber(0.7), losses.Poisson()],
]


def own_h(penalty: penalties.Penalty, w: Any, rho: float) -> float:
    if isinstance(penalty, OWN_H):
        return penalty.value(w) / penalty.strength
    return float(0.5 * w @ w + rho * np.sum(np.abs(w)))


def neighbors(penalty: penalties.Penalty, w: Any, rng: Any) -> list[Any]:
    """Feasible points around w: along axes, between pairs of axes, at random, and through 0."""
    eye = np.eye(len(w))
    around = [eye[i] for i in range(len(w))]
    around += [eye[i] - eye[j] for i in range(len(w)) for j in range(i)]
    around += [*rng.normal(size=(8, len(w))), w]
    simplex = isinstance(penalty, penalties.Simplex | penalties.KL)
    points = []
    for size in (1e-5, 0.3):
        for direction in (*around, *(-np.array(around))):
            z = w + size * direction
            if simplex:
                z = penalties.Simplex().project(z)
            elif isinstance(penalty, penalties.L1Ball | penalties.Ball):
                z = penalty.project(z)
            elif isinstance(penalty, penalties.Entropy):
                z = penalties.L1Ball(penalty.radius).project(z)
            points.append(z)
    return points


def assert_subgradient(f: Any, w: Any, slope: Any, points: list[Any]) -> None:
    """f(z) >= f(w) + <slope, z - w> everywhere: w minimizes f - <slope, .>."""
    assert np.isfinite(f(w))
    for z in points:
        gap = f(z) - f(w) - slope @ (z - w)
        assert gap >= -1e-13 * (1.0 + abs(f(w)) + abs(f(z)) + float(np.abs(slope) @ np.abs(z - w)))


@pytest.mark.parametrize("name", PENALTIES)
def test_prox_is_the_minimizer(name: str) -> None:
    penalty, rng = PENALTIES[name], np.random.default_rng(1)
    for step in (0.2, 1.0, 3.0):
        v = rng.normal(size=N)
        w = penalty.prox(v, step)
        points = neighbors(penalty, w, rng)
        assert_subgradient(lambda z, c=step: c * penalty.value(z), w, v - w, points)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("rho", [0.0, 0.4])
def test_argmin_is_the_minimizer(name: str, rho: float) -> None:
    penalty, rng = PENALTIES[name], np.random.default_rng(2)
    for a, b in ((1.0, 1.0), (7.0, 2.5), (0.0, 1.0)):
        s = 3.0 * rng.normal(size=N)
        w = penalty.argmin(s, a, b, rho)

        def f(z: Any, a: float = a, b: float = b) -> float:
            # 0 * infinity: outside the domain also for a = 0
            return (a * penalty.value(z) if a else 0.0) + b * own_h(penalty, z, rho)

        assert_subgradient(f, w, -s, neighbors(penalty, w, rng))


@pytest.mark.parametrize("name", PENALTIES)
def test_start_minimizes(name: str) -> None:
    penalty, rng = PENALTIES[name], np.random.default_rng(3)
    w = penalty.start(N)
    points = neighbors(penalty, w, rng)
    assert_subgradient(partial(own_h, penalty, rho=0.1), w, np.zeros(N), points)
    assert all(penalty.value(w) <= penalty.value(z) + 1e-12 for z in points)


def test_roots_are_exact() -> None:
    v = np.random.default_rng(4).normal(size=N)
    kl, lp = penalties.KL(0.3, PRIOR), penalties.LpSquared(0.6, 1.3)
    w = kl.prox(v, 2.0)
    multiplier = v - w - 0.6 * np.log(w / PRIOR)
    assert np.ptp(multiplier) < 1e-13
    assert abs(np.sum(w) - 1.0) < 1e-15
    w = lp.prox(v, 2.0)
    gradient = penalties.pnorm(w, 1.3) ** 0.7 * np.sign(w) * np.abs(w) ** 0.3 * 4.0
    np.testing.assert_allclose(w + gradient, v, rtol=1e-12)
    for radius in (0.5, 100.0):
        entropy = penalties.Entropy(0.4, radius, 0.5)
        w = entropy.prox(v, 2.0)
        left = np.abs(v) - np.abs(w) - 0.8 * np.log1p(np.abs(w) / 0.5)
        assert np.ptp(left[w != 0]) < 1e-13
        assert np.all(left[w == 0] <= np.max(left) + 1e-13)
        assert np.sum(np.abs(w)) <= radius * (1.0 + 1e-15)
    wide = penalties.Entropy(0.4, 1e9, 0.5)
    np.testing.assert_allclose(wide.argmin(-v, 0.0, 1.0), np.sign(v) * 0.5 * np.expm1(np.abs(v)))


def test_dual_map_inverts_the_gradient() -> None:
    theta = np.random.default_rng(5).normal(size=N)
    for p in (1.1, 1.5, 2.0):
        w = penalties.dual_map(theta, p)
        back = penalties.pnorm(w, p) ** (2 - p) * np.sign(w) * np.abs(w) ** (p - 1) / (p - 1)
        np.testing.assert_allclose(back, theta, rtol=1e-12)


@pytest.mark.parametrize("loss", [*LABELED, *REAL], ids=lambda loss: type(loss).__name__)
def test_slopes_and_curvatures(loss: losses.Loss) -> None:
    h = 1e-6
    for y in (-1.0, 1.0) if loss in LABELED else (0.0, 0.4, 2.0):
        for p in np.linspace(-2.03, 2.11, 15):
            assert loss.slope(p, y) == pytest.approx(
                (loss.value(p + h, y) - loss.value(p - h, y)) / (2 * h), abs=1e-8
            )
            numeric = (loss.slope(p + h, y) - loss.slope(p - h, y)) / (2 * h)
            assert loss.curvature(p, y) == pytest.approx(numeric, abs=1e-8)
            assert loss.smoothness is None or numeric <= loss.smoothness + 1e-8


def test_slopes_at_kinks() -> None:
    assert losses.Hinge(1.0).slope(1.0, 1.0) == 0.0
    assert losses.Hinge(0.0).slope(0.0, 1.0) == -1.0
    assert losses.Novelty(1.0).slope(1.0, 1.0) == 0.0
    assert losses.Absolute().slope(2.0, 2.0) == 0.0
    assert losses.Quantile(0.9).slope(2.0, 2.0) == -0.9
    assert losses.EpsilonInsensitive(0.5).slope(2.5, 2.0) == 0.0


@pytest.mark.parametrize("loss", [*LABELED, *REAL], ids=lambda loss: type(loss).__name__)
def test_flow_is_the_gradient_flow(loss: losses.Loss) -> None:
    jumps = (losses.Hinge, losses.Novelty, losses.Absolute, losses.Quantile)
    smooth = not isinstance(loss, (*jumps, losses.EpsilonInsensitive))
    for y, p, time in ((1.0, -1.3, 0.7), (1.0, 0.6, 3.0), (-1.0, 0.4, 0.2), (1.0, 2.5, 1.5)):
        label = abs(y) * 1.7 if isinstance(loss, losses.Poisson) else y
        q, h = p, time / 1000
        for _ in range(1000):  # midpoint rule; past a jump of the slope it trembles by its step
            q -= h * float(loss.slope(q - 0.5 * h * loss.slope(q, label), label))
        assert loss.flow(p, label, time) == pytest.approx(q - p, abs=1e-5 if smooth else 2 * h)
    assert losses.Poisson().flow(0.3, 0.0, 2.0) == pytest.approx(-np.log1p(2.0 * np.exp(0.3)))


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (losses.Softmax(), 1),
        (losses.MulticlassHinge(), 1),
        (losses.MulticlassHinge([[0, 1, 4], [2, 0, 1], [1, 3, 0]], rescale=0.5), 2),
        (losses.MultiSquared([[2, 1, 0], [1, 2, 0], [0, 0, 1]]), np.array([1.0, 0.0, 2.0])),
    ],
    ids=lambda v: type(v).__name__,
)
def test_vector_slopes(loss: Any, y: Any) -> None:
    p, h = np.array([0.3, -0.2, 0.7]), 1e-6
    numeric = [(loss.value(p + h * e, y) - loss.value(p - h * e, y)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(loss.slope(p, y), numeric, atol=1e-8)


L1, L2, ZERO = penalties.L1(0.02), penalties.L2(0.1), penalties.Zero()
LOGISTIC = losses.Logistic()
CASES: dict[str, list[tuple[penalties.Penalty, dict[str, Any]]]] = {
    "Pegasos": [(L2, {}), (L2, {"project": 0.1}), (L2, {"project": False})],
    "Adaptive": [(L2, {}), (ZERO, {"radius": 2.0, "gradient_bound": 3.0, "project": 2.0})],
    "Proximal": [
        *[(L2, {}), (ZERO, {}), (L2, {"radius": 1.0})],
        (ZERO, {"radius": 1.0, "gradient_bound": 2.0, "horizon": 40, "project": 1.0}),
    ],
    "OptimisticProximal": [
        *[(L2, {"accuracy": 0.01}), (ZERO, {"gradient_bound": 2.0})],
        (L2, {"restrained": True}),
    ],
    "DualAveraging": [
        *[(penalty, {"gamma": 2.0}) for penalty in PENALTIES.values()],
        *[(L2, {"schedule": name}) for name in ("constant", "log", "zero")],
    ],
    "PNormDualAveraging": [(L1, {}), (ZERO, {"p": 1.2})],
    "AcceleratedDualAveraging": [(L1, {}), (penalties.Simplex(), {"smoothness": 2.0})],
    "ExponentiatedDualAveraging": [(penalties.Simplex(), {}), (penalties.KL(0.2, PRIOR), {})],
    "PrimalGradient": [
        *[(penalties.LpSquared(0.3, p), {"radius": 0.5}) for p in (1.2, 2.0)],
        (penalties.Entropy(0.3, 1.5), {}),
    ],
    "GradientDescent": [
        (L1, {"step": ("inverse_sqrt", 0.3)}),
        (penalties.Ball(0.3), {"step": 1.0}),
    ],
    "TruncatedGradient": [(L1, {"step": 0.1, "every": 3, "ceiling": 0.2})],
    "ForwardBackward": [(penalty, {"step": ("inverse", 1.0)}) for penalty in PENALTIES.values()],
    "AdaGrad": [(L1, {"step": 0.1}), (penalties.Berhu(0.1, 0.2), {"step": 0.1})],
    "AdaGradDualAveraging": [(L1, {"step": 0.1, "delta": 0.0}), (L2, {"step": 0.1})],
    "FTRLProximal": [(penalties.ElasticNet(0.1, 0.1), {}), (penalties.Berhu(0.1, 0.2), {})],
    "NormalizedAdaptive": [
        (ZERO, {"update": update, "size": size})
        for update in ("explicit", "implicit", "invariant")
        for size in ("largest", "typical")
    ],
    "DiagonalNewton": [
        (one, {"size": size}) for one in (ZERO, L1) for size in ("largest", "typical")
    ],
    "PolynomialAverage": [(one, {"rule": REFERENCE["MirrorDescent"]}) for one in (ZERO, L1)],
}


def stream(rows: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    X = 3.0 * rng.normal(size=(rows, N)) * (rng.random((rows, N)) < 0.5)
    return X, np.where(X @ rng.normal(size=N) + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)


def rule_of(name: str, loss: losses.Loss, penalty: penalties.Penalty, **parameters: Any) -> Any:
    return REFERENCE[name](N, loss, penalty, **parameters)


def iterates(rule: Rule, rows: int = 60) -> Any:
    X, y = stream(rows)
    path = [rule.w]
    for x, label in zip(X, y, strict=True):
        rule.step(x, label)
        path.append(rule.w)
    return np.stack(path)


@pytest.mark.parametrize("name", REFERENCE)
def test_rules_run(name: str) -> None:
    for penalty, parameters in CASES.get(name, [(ZERO, {})]):
        rule = rule_of(name, LOGISTIC, penalty, **parameters)
        path = iterates(rule)
        assert rule.t == 60
        assert np.all(np.isfinite(path))
        assert np.any(path[-1] != path[0]) or name == "BaseRate"  # which moves the intercept only
        assert np.isfinite(penalty.value(rule.w))
        before = rule.w.copy()
        rule.step(np.ones(N), 1.0, 0.0)
        assert rule.t == 60
        assert np.array_equal(rule.w, before)


@pytest.mark.parametrize("name", [name for name in REFERENCE if REFERENCE[name].batches])
def test_batch_of_one_row_repeated(name: str) -> None:
    penalty, parameters = CASES.get(name, [(ZERO, {})])[0]
    one = rule_of(name, LOGISTIC, penalty, **parameters)
    three = rule_of(name, LOGISTIC, penalty, **parameters)
    for x, y in zip(*stream(20), strict=True):
        one.step(x, y)
        three.step([x, x, np.ones(N), x], [y, y, y, y], [1.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(one.w, three.w, rtol=1e-12, atol=1e-15)


def test_dual_averaging_without_h_is_pegasos() -> None:
    for loss in (losses.Hinge(), LOGISTIC):
        dual = iterates(rule_of("DualAveraging", loss, L2, schedule="zero"))
        primal = iterates(rule_of("Pegasos", loss, L2, project=False))
        np.testing.assert_allclose(dual, primal, rtol=1e-9, atol=1e-14)


def test_forward_backward_is_truncated_gradient() -> None:
    step = ("inverse_sqrt", 0.4)
    forward = iterates(rule_of("ForwardBackward", LOGISTIC, L1, step=step))
    truncated = iterates(rule_of("TruncatedGradient", LOGISTIC, L1, step=step))
    np.testing.assert_allclose(forward, truncated, rtol=1e-13)
    assert np.any(forward[1:] == 0)


def test_enhanced_dual_averaging_is_algorithm_2() -> None:
    gamma, rho, X, y = 0.5, 0.1, *stream()
    rule = rule_of("DualAveraging", LOGISTIC, L1, gamma=gamma, rho=rho)
    w, mean = np.zeros(N), np.zeros(N)
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        mean = (t - 1) / t * mean + LOGISTIC.slope(x @ w, label) * x / t
        threshold = L1.l1 + gamma * rho / np.sqrt(t)
        w = -np.sqrt(t) / gamma * (mean - threshold * np.sign(mean))
        w[np.abs(mean) <= threshold] = 0.0
        rule.step(x, label)
        np.testing.assert_allclose(rule.w, w, rtol=1e-10, atol=1e-15)


def test_p_norm_with_p_2_is_dual_averaging() -> None:
    pnorm = iterates(rule_of("PNormDualAveraging", LOGISTIC, L1, gamma=0.5, p=2.0))
    plain = iterates(rule_of("DualAveraging", LOGISTIC, L1, gamma=0.5))
    np.testing.assert_allclose(pnorm, plain, rtol=1e-10, atol=1e-15)
    wide: Any = REFERENCE["PNormDualAveraging"](1000, LOGISTIC, L1)
    assert wide.p == pytest.approx(np.log(1000) / (np.log(1000) - 1))


@pytest.mark.parametrize("penalty", [penalties.Simplex(), penalties.KL(0.2, PRIOR)])
def test_exponentiated_stays_on_the_simplex(penalty: penalties.Penalty) -> None:
    path = iterates(rule_of("ExponentiatedDualAveraging", LOGISTIC, penalty))
    np.testing.assert_allclose(path.sum(axis=1), 1.0, rtol=1e-14)
    assert np.all(path > 0)
    if isinstance(penalty, penalties.KL):
        same = iterates(rule_of("DualAveraging", LOGISTIC, penalty))
        np.testing.assert_allclose(path, same, rtol=1e-13)


def test_accelerated_output_is_a_weighted_mean() -> None:
    rule = rule_of("AcceleratedDualAveraging", LOGISTIC, L1)
    total, weight, X, y = np.zeros(N), 0.0, *stream()
    for t in range(1, len(y) + 1):
        u = rule.query
        assert t > 1 or np.array_equal(u, rule.v)
        s = rule.s + t / 2 * LOGISTIC.slope(X[t - 1] @ u, y[t - 1]) * X[t - 1]
        rule.step(X[t - 1], y[t - 1])
        np.testing.assert_allclose(rule.s, s, rtol=1e-13)
        total, weight = total + t / 2 * rule.v, weight + t / 2
        np.testing.assert_allclose(rule.w, total / weight, rtol=1e-11, atol=1e-15)


def test_proximal_balances_its_bound() -> None:
    rule = rule_of("Proximal", LOGISTIC, L2, radius=1.5, gradient_bound=2.0)
    tau_sum = 0.0
    for t, (x, y) in enumerate(zip(*stream(), strict=True), start=1):
        rule.step(x, y)
        tau, tau_sum = rule.tau_sum - tau_sum, rule.tau_sum
        assert 4 * tau * 1.5**2 == pytest.approx(2.0**2 / (L2.l2 * t + tau_sum))


@pytest.mark.parametrize("strength", [0.0, 1e-9, 1e-3, 0.1, 10.0])
def test_best_tau_minimizes_the_bound(strength: float) -> None:
    G, R, T = 2.0, 1.5, 1000
    tau = best_tau(strength, G, R, T)
    if strength == 0.0:
        assert tau == pytest.approx(G * np.sqrt(T) / (2 * R))
        return

    def bound(tau: float) -> float:
        r = tau / strength
        return float(4 * tau * R**2 + G**2 / strength * (1 / (1 + r) + np.log((T + r) / (1 + r))))

    best = minimize_scalar(bound, bounds=(0.0, G * np.sqrt(T) / R), method="bounded")
    assert bound(tau) <= best.fun + 1e-6 * abs(best.fun)
    assert strength < 1.0 or tau == 0.0


def test_optimistic_radius_grows_by_phases() -> None:
    rule = rule_of("OptimisticProximal", LOGISTIC, penalties.L2(1e-4))
    grown = 0
    for x, y in zip(*stream(), strict=True):
        before = rule.R
        rule.step(x, y)
        if before < rule.R:
            grown += 1
            assert rule.rounds == 0
            assert rule.tau_sum == 0.0
            assert np.any(rule.w != 0)
            assert pytest.approx(before * np.sqrt(2)) == rule.R
    assert grown > 0
    same = iterates(rule_of("Proximal", LOGISTIC, penalties.L2(1e-4), project=100.0))
    np.testing.assert_array_equal(same[-1], rule.w)


@pytest.mark.parametrize("restrained", [False, True])
def test_restrained_steps_are_no_longer_than_the_radius(*, restrained: bool) -> None:
    rule = rule_of("OptimisticProximal", LOGISTIC, penalties.L2(1e-4), restrained=restrained)
    longest = 0.0
    for x, y in zip(*stream(), strict=True):
        before, R = rule.w.copy(), rule.R
        rule.step(x, y)
        longest = max(longest, float(np.linalg.norm(rule.w - before)) / R)
    assert (longest <= 1.0 + 1e-12) == restrained


def test_primal_gradient_scales_into_its_ball() -> None:
    penalty = penalties.LpSquared(0.01, 1.4)
    free = rule_of("PrimalGradient", LOGISTIC, penalty)
    bound = rule_of("PrimalGradient", LOGISTIC, penalty, radius=0.7)
    path = iterates(bound)
    assert max(penalties.pnorm(w, 1.4) for w in path) == pytest.approx(0.7)
    free.theta, free.t = bound.theta - 1.0, bound.t
    bound.theta = free.theta
    for rule in (free, bound):
        rule.step(np.zeros(N), 1.0)
    assert penalties.pnorm(free.w, 1.4) > 0.7
    np.testing.assert_allclose(bound.w, free.w * 0.7 / penalties.pnorm(free.w, 1.4), rtol=1e-12)


def test_normalized_adaptive_ignores_scales() -> None:
    X, y = stream()
    scales = 10.0 ** np.arange(-3, 3)
    for update in ("explicit", "implicit", "invariant"):
        plain = rule_of("NormalizedAdaptive", LOGISTIC, ZERO, update=update)
        scaled = rule_of("NormalizedAdaptive", LOGISTIC, ZERO, update=update)
        for x, label in zip(X, y, strict=True):
            plain.step(x, label)
            scaled.step(x * scales, label)
        np.testing.assert_allclose(plain.w, scaled.w * scales, rtol=1e-9)


def test_mixture_of_one_is_the_member() -> None:
    alone = rule_of("CoinBetting", LOGISTIC, ZERO)
    mixed = rule_of("Mixture", LOGISTIC, ZERO, rules=[REFERENCE["CoinBetting"]])
    np.testing.assert_allclose(iterates(mixed), iterates(alone), rtol=1e-15)


def test_averages() -> None:
    w = [np.array([float(t)]) for t in range(1, 9)]
    assert averages.uniform(w)[0] == 4.5
    assert [float(averages.tail(w[:t])[0]) for t in range(1, 9)] == [
        *[1.0, 2.0, 2.5, 3.5, 4.0, 4.5, 5.0, 6.5],
    ]
