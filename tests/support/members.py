"""Test cases for the laws: every member, its parameters, its dense reference, and streams.

Members are discovered, with parameters from `Class.examples()`.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import streamlearn as sl
from streamlearn.losses import VectorLoss
from tests.reference import REFERENCE, losses, penalties
from tests.reference.rule import Rule

Vector = NDArray[np.float64]
N = 14
TOLERANCE = 1e-9


def members(module: Any, base: type) -> list[Any]:
    kinds = [getattr(module, name) for name in module.__all__]
    found: list[Any] = [
        k for k in kinds if inspect.isclass(k) and issubclass(k, base) and k is not base
    ]
    return [example for kind in found for example in kind.examples()]


RULES = members(sl.rules, sl.rules.Rule)
PENALTIES = members(sl.penalties, sl.penalties.Penalty)
LOSSES = members(sl.losses, sl.losses.Loss)
VECTOR_LOSSES = members(sl.losses, VectorLoss)


def allowed(rule: Any, penalty: Any, loss: Any) -> bool:
    try:
        rule.bind(penalty, loss)
    except sl.IncompatibleError:
        return False
    return True


def pairs(*needed: Any) -> list[tuple[Any, Any]]:
    """Rules and penalties that are allowed with some loss (of `needed`)."""
    few = needed or LOSSES
    return [(r, p) for r in RULES for p in PENALTIES if any(allowed(r, p, loss) for loss in few)]


def averages_of(penalty: Any) -> list[str]:
    """The averages that a penalty allows: those of a number of weights would have more."""
    return ["last", "random"] if penalty.steered else ["last", "uniform", "tail", "random"]


def turn(rule: Any, penalty: Any) -> int:
    """Return the place of a penalty among those of its rule, whichever other rules there are."""
    return [p for p in PENALTIES if any(allowed(rule, p, loss) for loss in LOSSES)].index(penalty)


def brief(value: Any) -> str:
    """A test's id."""
    return repr(value)


# -- the dense side -----------------------------------------------------------------------------


def dense_value(value: Any) -> Any:
    """Convert a parameter for the reference."""
    if isinstance(value, sl.rules.schedules.Schedule):
        names = {"Constant": "constant", "InverseSqrt": "inverse_sqrt", "Inverse": "inverse"}
        return names[type(value).__name__], value.params["c"]
    if value == sl.rules.Mixture().rules:
        return None  # the default members, which penalties change
    if isinstance(value, tuple) and value and isinstance(value[0], sl.rules.Rule):
        return [maker(rule) for rule in value]
    if isinstance(value, sl.rules.Rule):
        return maker(value)
    return value


def maker(rule: Any) -> Any:
    parameters = {name: dense_value(value) for name, value in rule.params.items()}
    return partial(REFERENCE[type(rule).__name__], **parameters)


def dense_penalty(penalty: Any) -> Any:
    params = dict(penalty.params)
    prior = params.get("prior")
    if prior is not None:
        # a short prior is extended by its smallest value
        params["prior"] = (*prior, *[min(prior)] * (N - len(prior)))
    return getattr(penalties, type(penalty).__name__)(**params)


def dense_loss(loss: Any) -> Any:
    return getattr(losses, type(loss).__name__)(**loss.params)


def dense(rule: Any, penalty: Any, loss: Any, n: int = N) -> Rule:
    make_loop: Rule = maker(rule)(n, dense_loss(loss), dense_penalty(penalty))
    return make_loop


# -- streams ------------------------------------------------------------------------------------


@dataclass
class Stream:
    X: Vector
    y: Vector
    w: Vector
    rows: Any = field(init=False)

    def __post_init__(self) -> None:
        self.rows = scipy.sparse.csr_array(self.X)

    def __len__(self) -> int:
        return len(self.y)


@cache
def stream(
    kind: str,
    counts: bool = False,
    events: int = 72,
    n: int = N,
    seed: int = 0,
    weighed: bool = True,
) -> Stream:
    """Rows with four of n columns, some of them rare, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    often = 1.0 / np.arange(1.0, n + 1.0) ** 1.5
    X = np.zeros((events, n))
    for x in X:
        on = rng.choice(n, size=4, replace=False, p=often / often.sum())
        x[on] = rng.normal(size=4) * 0.4
    X[0] = 0.0
    X[0, [n - 1, n - 2]] = 0.517, -0.331  # rare columns early: a long lazy update later
    truth = rng.normal(size=n)
    score = X @ truth + 0.3 * rng.normal(size=events)
    y = np.where(score > 0.1, 1.0, -1.0)
    if kind == "one-class":
        y = np.ones(events)
    elif kind == "regression":
        y = rng.poisson(np.exp(score)).astype(float) if counts else score
    w = rng.choice([1.0, 1.0, 1.0, 0.0, 0.4, 2.5] if weighed else [1.0], size=events)
    return Stream(X, y, w)


def stream_for(loss: Any, **options: Any) -> Stream:
    counts = not loss.is_label(-0.5) and loss.kind == "regression"
    return stream(loss.kind, counts, **options)


def estimator(rule: Any, penalty: Any, loss: Any, **options: Any) -> Any:
    kind = sl.LinearRegressor if loss.kind in {"regression", "multitarget"} else sl.LinearClassifier
    return kind(rule, loss, penalty, **{"fit_intercept": False, **options})


def know_all(model: Any) -> None:
    """Make all columns known without a step; rows of weight 0 do not do so."""
    model.engine.rows_from_matrix(np.zeros((1, N)), True)


def batches(data: Stream, size: int) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the end of each batch of events of weight > 0, and its events."""
    held: list[int] = []
    for i in range(len(data)):
        if data.w[i] > 0.0:
            held.append(i)
        if len(held) == size:
            yield i + 1, held
            held = []


def close(one: Any, other: Any, tolerance: float = TOLERANCE) -> None:
    """Assert equality, relative to the largest value."""
    other = np.asarray(other)
    assert np.isfinite(other).all()
    top = max(float(np.abs(other).max(initial=0.0)), 1e-9)
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * top)
