"""A snapshot's scores equal its model's to the last digit, for every rule, penalty and loss."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.estimators import presets
from tests.support.members import (
    LOSSES,
    VECTOR_LOSSES,
    N,
    allowed,
    brief,
    estimator,
    pairs,
    stream_for,
    turn,
)

OPTIONS: tuple[dict[str, Any], ...] = (
    {"fit_intercept": True},
    {},
    {"average": "uniform", "fit_intercept": True},
    {"fit_intercept": "penalized"},
    {"average": "tail"},
)
PRESETS = [
    kind
    for name, kind in vars(presets).items()
    if name in sl.__all__ and isinstance(kind, type) and issubclass(kind, presets.Preset)
]


def events(model: Any) -> list[dict[int, float]]:
    """Events of known columns, with outliers and one unknown column."""
    rng = np.random.default_rng(1)
    found = [
        {int(j): float(10.0**k * rng.normal()) for j in rng.choice(N, size=size, replace=False)}
        for size in range(1, 12)
        for k in (-1, 0, 3)
    ]
    if (
        model.penalty is None or not model.penalty.on_simplex
    ):  # on a simplex, an unknown feature has a weight
        found += [{**event, N + 5: 1.0} for event in found[-3:]]
    return [*found, {}]


def check(model: Any, path: Path) -> None:
    sl.serving.save(model, path / "model.safetensors")
    snapshot = sl.serving.Snapshot(path / "model.safetensors")
    for event in events(model):
        scores, expected = snapshot.score(event), model.score_one(event)
        assert scores == expected
        assert snapshot.predict(event) == model.predict_one(event)
    event = {1: 0.5, 3: -0.25, N + 5: 2.0}
    contributions = {one.name: one for one in model.explain_one(event)}
    for one in snapshot.why(event):
        assert one[1:] == pytest.approx(contributions[one.name][1:], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("rule", "penalty"), pairs(), ids=brief)
def test_score(rule: Any, penalty: Any, tmp_path: Path) -> None:
    losses = [loss for loss in LOSSES if allowed(rule, penalty, loss)]
    place = turn(rule, penalty)
    built = 0
    for k in range(len(OPTIONS)):
        try:
            model = estimator(rule, penalty, losses[place % len(losses)], **OPTIONS[k])
        except sl.IncompatibleError:
            continue
        built += 1
        data = stream_for(losses[place % len(losses)])
        with contextlib.suppress(sl.DivergenceError):
            model.learn_rows(data.rows, data.y, data.w)
        check(model, tmp_path)
    assert built


@pytest.mark.parametrize("loss", VECTOR_LOSSES, ids=brief)
@pytest.mark.parametrize("intercept", [True, False, "penalized"])
def test_several_outputs(loss: Any, intercept: Any, tmp_path: Path) -> None:
    model = estimator(
        sl.rules.DualAveraging(), sl.penalties.L1(1e-3), loss, fit_intercept=intercept
    )
    rng = np.random.default_rng(0)
    for i in range(60):
        x = {int(j): float(rng.normal()) for j in rng.choice(N, size=4, replace=False)}
        targets = {"a": float(rng.normal()), "b": float(rng.normal()), "c": 1.0}
        if loss.kind == "multitarget":
            count = loss.outputs or 3
            targets = dict(list(targets.items())[:count])
        with contextlib.suppress(sl.InvalidEventError):  # costs of two labels only
            model.learn_one(x, targets if loss.kind == "multitarget" else i % 3)
    check(model, tmp_path)


@pytest.mark.parametrize("kind", PRESETS, ids=lambda kind: kind.__name__)
def test_presets(kind: Any, tmp_path: Path) -> None:
    model = kind()
    rng = np.random.default_rng(0)
    for i in range(90):
        x = {int(j): float(rng.normal()) for j in rng.choice(N, size=4, replace=False)}
        with contextlib.suppress(sl.InvalidEventError):  # a loss of some numbers only
            model.learn_one(
                x, "abc"[i % 3] if kind.__name__.endswith("Classifier") else x.get(1, 0.5)
            )
    check(model, tmp_path)


@pytest.mark.parametrize("classes", [0, 1, 2, 3])
def test_few_labels(classes: int, tmp_path: Path) -> None:
    model = sl.LinearClassifier()
    for i in range(30 if classes else 0):
        model.learn_one({1: float(i % 5), 2: 1.0}, i % classes)
    check(model, tmp_path)
