"""Calibrated classifiers: better probabilities at nearly no cost, and scores in one meaning."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn.errors import IncompatibleError
from streamlearn.export import document
from streamlearn.quality.ranking import calibration, groups_of
from streamlearn.stream import Clicks
from tests.export.test_export import by_document

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.core.arrays import Array

N = 20_000
RULES: dict[str, Any] = {
    "default": lambda: None,
    "slow": lambda: sl.rules.AdaGrad(0.01),
    "fast": lambda: sl.rules.AdaGrad(2.0),
    "averaging": lambda: sl.rules.DualAveraging(gamma=20.0),
    "events": sl.rules.CoinBetting,
}


def clicks(n: int = N) -> list[tuple[dict[str, Any], bool]]:
    events = [json.loads(line) for line in Clicks("clicks", 3).values(0, n)]
    return [(event, event.pop("clicked")) for event in events]


def log_loss(scores: Array, labels: Array) -> float:
    return float(np.logaddexp(0.0, np.where(labels, -scores, scores)).mean())


def error(scores: Array, labels: Array) -> float:
    shares = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
    return calibration(groups_of(scores, labels, shares, np.ones(len(scores)))).error


def table(n: int = N) -> tuple[Array, Array]:
    """Return rows with labels that depend on them."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(n, 8)) * np.array([1, 1, 1, 1, 0.1, 0.1, 3, 3])
    scores = rows @ np.array([1, -1, 2, 0, 3, 0, 0.3, 0]) - 1.0
    return rows, draw.random(n) < 1.0 / (1.0 + np.exp(-scores))


@pytest.mark.parametrize("rule", RULES)
def test_calibration_pays_where_it_is_needed(rule: str) -> None:
    rows, labels = table()
    plain = sl.LinearClassifier(RULES[rule]()).progressive_rows(rows, labels)
    better = sl.LinearClassifier(RULES[rule](), calibrated=True).progressive_rows(rows, labels)
    assert log_loss(better, labels) <= 1.001 * log_loss(plain, labels)
    if error(plain, labels) > 0.02:
        assert error(better, labels) <= 0.5 * error(plain, labels)


def test_some_of_these_learners_need_it() -> None:
    rows, labels = table()
    errors = [
        error(sl.LinearClassifier(RULES[rule]()).progressive_rows(rows, labels), labels)
        for rule in ("slow", "averaging")
    ]
    assert min(errors) > 0.02


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("average", ["last", "uniform"])
def test_a_score_means_the_same_everywhere(rule: str, average: str, tmp_path: Path) -> None:
    if rule == "events" and average != "last":
        return
    model = sl.LinearClassifier(RULES[rule](), calibrated=True, average=average)
    events = clicks(600)
    for event, label in events:
        model.learn_one(event, label)
    own = model.engine.learner.calibration  # type: ignore[union-attr] # of one output
    assert own is not None
    assert own.scale != 1.0
    sl.serving.save(model, tmp_path / "a.safetensors")
    snapshot = sl.serving.Snapshot(tmp_path / "a.safetensors")
    model.save(tmp_path / "a.model")
    loaded = sl.LinearClassifier.load(tmp_path / "a.model")
    found = document(model)
    for event, _ in events[:50]:
        score = model.score_one(event)
        assert snapshot.score(event) == score == loaded.score_one(event)
        share = model.predict_proba_one(event)[True]
        assert share == pytest.approx(1.0 / (1.0 + np.exp(-score)))
        assert model.predict_one(event) == (score > 0.0)
        why = sum(one.contribution for one in model.explain_one(event))
        if rule != "default":  # it clips
            assert why == pytest.approx(score)
        assert by_document(found, model, event)[0] == pytest.approx(score, abs=1e-9)
    others = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model]
    for other in others:
        for event, label in events[:100]:
            other.learn_one(event, not label)
    assert len({pickle.dumps(other.state()) for other in others}) == 1


@pytest.mark.parametrize("rule", RULES)
def test_batches_equal_single_events(rule: str) -> None:
    rows, labels = table(500)
    one = sl.LinearClassifier(RULES[rule](), calibrated=True)
    many = sl.LinearClassifier(RULES[rule](), calibrated=True)
    scores = []
    for row, label in zip(rows, labels, strict=True):
        event = {k: float(x) for k, x in enumerate(row)}
        scores.append(one.score_one(event))
        one.learn_one(event, bool(label))
    assert many.progressive_rows(rows, labels).tolist() == scores


@pytest.mark.parametrize("first", [1, 2])
def test_which_label_is_seen_first_does_not_matter(first: int) -> None:
    events = [(event, 2 if label else 1) for event, label in clicks(500)]
    events.sort(key=lambda one: one[1] != first)
    model = sl.LinearClassifier(calibrated=True)
    plain = sl.LinearClassifier()
    for event, label in events[:50]:  # all have the first label
        model.learn_one(event, label)
        plain.learn_one(event, label)
    before = model.score_one(events[0][0])
    model.learn_one({}, 3 - first)
    learner = model.engine.learner
    assert before * model.score_one(events[0][0]) < 0.0 or first == 2
    for event, label in events[50:]:
        model.learn_one(event, label)
    assert learner.calibration.scale > 0.0  # type: ignore[union-attr] # of one output
    assert model.labels == [1, 2]


def test_several_classes() -> None:
    model = sl.LinearClassifier(sl.rules.AdaGrad(0.01), calibrated=True)
    plain = sl.LinearClassifier(sl.rules.AdaGrad(0.01))
    draw = np.random.default_rng(1)
    losses = np.zeros(2)
    for k in range(6000):
        label = "abc"[draw.integers(3)]
        event = {label if draw.random() < 0.7 else "x": 1.0}
        for i, one in enumerate((model, plain)):
            shares = one.predict_proba_one(event)
            losses[i] -= np.log(shares[label]) if k > 1000 else 0.0
            one.learn_one(event, label)
    assert losses[0] < losses[1]


def test_delayed_labels() -> None:
    events = clicks(400)
    plain = sl.LinearClassifier(calibrated=True)
    late = sl.DelayedLabels(sl.LinearClassifier(calibrated=True))
    for k, (event, label) in enumerate(events):
        late.predict_one(k, event)
        late.learn_one(k, label)
        plain.learn_one(event, label)
    assert late.estimator.score_one(events[0][0]) == plain.score_one(events[0][0])


def test_what_cannot_be_calibrated_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="Logistic"):
        sl.PegasosClassifier(calibrated=True)
    with pytest.raises(IncompatibleError, match="Logistic"):
        sl.LinearClassifier(sl.rules.AdaGrad(), loss=sl.losses.Softmax(), calibrated=True)
    with pytest.raises(IncompatibleError, match="calibrated=False"):
        sl.DelayedLabels(
            sl.LinearClassifier(sl.rules.DualAveraging(1.0), calibrated=True),
            hold_for=1.0,
            on_timeout=False,
            corrections=True,
        )
    model = sl.FTRLClassifier(calibrated=True)
    assert model.regret_bound() is None
