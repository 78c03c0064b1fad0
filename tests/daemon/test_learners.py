"""What is measured of each event: as when one event comes after the other, whatever the batches."""

from __future__ import annotations

import itertools
import json
import math
import threading
from typing import Any

import numpy as np
import pytest
from msgspec import UNSET

import streamlearn as sl
from streamlearn.daemon.learners import Learners
from streamlearn.daemon.outputs.predictions import predict_batch
from streamlearn.daemon.scores import block_layout
from streamlearn.stream import Events, Fields, JSONDecoder
from streamlearn.stream.formats.label_set import LabelSet

FIELDS = Fields(weight="w")
MODELS: dict[str, tuple[Any, list[Any]]] = {
    "default": (sl.LinearClassifier(), [True, False, None]),
    "hinge": (sl.PegasosClassifier(l2=0.01), ["no", "yes"]),
    "weighed": (sl.LinearClassifier(class_weight={"b": 2.0, "a": 0.0}), ["b", "a", None]),
    "three": (sl.DualAveragingClassifier(l1=1e-3), ["a", "b", "c", None]),
    "joint": (sl.LinearClassifier(sl.rules.AdaGrad(0.1), sl.losses.Softmax()), [3, 1, 2]),
    "regression": (sl.LinearRegressor(), [1.5, -2, 0.25, None]),
    "counts": (sl.LinearRegressor(sl.rules.AdaGrad(), sl.losses.Poisson()), [1, 4, 0]),
}


def make_events(n: int, labels: list[Any]) -> list[dict[str, Any]]:
    draw = np.random.default_rng(5)
    found = []
    for i in range(n):
        event: dict[str, Any] = {"user": f"u{draw.integers(20)}", "x": float(draw.normal())}
        # a new label comes only after a while
        event["label"] = labels[int(draw.integers(min(len(labels), 1 + i // 30)))]
        event["w"] = int(draw.integers(3)) if i % 4 == 0 else 1
        found.append(event)
    return found


def by_batches(name: str, size: int) -> tuple[Any, dict[str, Any], list[Any]]:
    model, labels = MODELS[name]
    reader = sl.Names()
    learners = Learners({"it": model.clone()}, reader, best=("loss", 10, 0.0))
    decoder = JSONDecoder(reader, FIELDS, list(learners))
    values = [json.dumps(event).encode() for event in make_events(160, labels)]
    measures: dict[str, list[float]] = {}
    published: list[Any] = []
    events = Events()
    for start in range(0, len(values), size):
        events.clear()
        decoder.decode(values[start : start + size], events)
        outcome = learners.learn(events)["it"]
        for measure, found in outcome.measures.items():
            measures.setdefault(measure, []).extend(found.tolist())
        predictions = predict_batch(
            learners["it"].model,
            outcome.scores,
            outcome.known_labels,
            decoder.labels,
            np.zeros(len(events), dtype=bool),
        )
        published += zip(*predictions, strict=True)
    return learners["it"], {name: np.array(found) for name, found in measures.items()}, published


def by_name(shares: dict[Any, float]) -> Any:
    """As JSON names labels."""
    return {
        label if isinstance(label, str) else json.dumps(label): pytest.approx(share, rel=1e-12)
        for label, share in shares.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_measures_do_not_depend_on_batches(name: str) -> None:
    results = [by_batches(name, size) for size in (1, 7, 160)]
    for learner, measures, published in results[1:]:
        assert published == results[0][2]
        assert set(measures) == set(results[0][1])
        for measure, found in measures.items():
            np.testing.assert_array_equal(found, results[0][1][measure])
        for measure, progress in learner.progress.items():
            same = results[0][0].progress[measure]
            assert (progress.total, progress.weight) == (same.total, same.weight)


@pytest.mark.parametrize("name", MODELS)
def test_measures_and_predictions_equal_those_of_the_estimator(name: str) -> None:
    model, labels = MODELS[name]
    model = model.clone()
    learner, measures, published = by_batches(name, 1)
    learned = 0
    for i, event in enumerate(make_events(160, labels)):
        features, roles = FIELDS.split(event)
        label, weight = roles["label"], float(roles["weight"])
        predicted, scores = model.predict_one(features), model.score_one(features)
        prediction, probability, shares, value = published[i]
        assert probability is UNSET  # its labels are open
        if not isinstance(model, sl.LinearRegressor):
            assert value is UNSET
            assert prediction == predicted
            if model.objective.loss.has_probability and len(model.labels) > 1:
                assert shares == by_name(model.predict_proba_one(features))
            else:
                assert shares is UNSET
        if label is not None and weight and label != "a":
            # a label is met before it is learned, and one that is new changes what scores mean
            known = isinstance(model, sl.LinearRegressor) or label in model.labels
            learned += known
            if known:
                assert math.isfinite(measures["loss"][i])
            if known and isinstance(model, sl.LinearRegressor):
                assert measures["absolute"][i] == abs(predicted - label)
                assert measures["squared"][i] == (predicted - label) ** 2
                assert prediction == value == predicted
                assert shares is UNSET
            elif known and len(model.labels) == 2 and isinstance(scores, float):
                sign = 1.0 if label == model.labels[1] else -1.0
                assert measures["loss"][i] == model.objective.loss.value(scores, sign)
        if label is None or weight == 0.0:
            assert np.isnan(measures["loss"][i])
        if label is not None and weight:
            model.learn_one(features, label, weight)
    assert learned > 40
    assert learner.learned == np.count_nonzero(~np.isnan(measures["loss"]))


@pytest.mark.parametrize("size", [1, 7, 160])
@pytest.mark.parametrize("name", MODELS)
def test_errors_are_those_of_the_published_predictions(name: str, size: int) -> None:
    """A label that was not known yet was not predicted."""
    model, labels = MODELS[name]
    _, measures, published = by_batches(name, size)
    if isinstance(model, sl.LinearRegressor):
        assert "error" not in measures
        return
    learned = np.flatnonzero(~np.isnan(measures["loss"])).tolist()
    events = make_events(160, labels)
    assert [measures["error"][i] for i in learned] == [
        published[i][0] != events[i]["label"] for i in learned
    ]


def test_log_loss_is_measured_if_learners_are_compared_by_it() -> None:
    reader = sl.Names()
    models = {
        "a": sl.LinearClassifier(),
        "b": sl.LinearClassifier(loss=sl.losses.Softmax(), rule=sl.rules.AdaGrad(0.1)),
    }
    learners = Learners(models, reader, best=("log_loss", 10, 0.0))
    events = Events()
    JSONDecoder(reader, FIELDS, list(learners)).decode(
        [json.dumps(event).encode() for event in make_events(160, [True, False])], events
    )
    before = set(threading.enumerate())
    results = learners.learn(events)
    pool = set(threading.enumerate()) - before
    learners.close()
    for thread in pool:
        thread.join(30.0)
        assert not thread.is_alive()
    learned = results["a"].learned
    np.testing.assert_allclose(
        results["a"].measures["log_loss"][learned], results["a"].measures["loss"][learned]
    )
    np.testing.assert_allclose(
        results["b"].measures["log_loss"][learned], results["b"].measures["loss"][learned]
    )


@pytest.mark.parametrize("seed", range(3))
def test_each_event_is_predicted_by_the_best_learner_before_it(seed: int) -> None:
    """Row by row, by hand: a label counts from the next event on, and no earlier."""
    draw = np.random.default_rng(seed)
    window, hysteresis = 60, 0.02
    size, kept = block_layout(window)
    models = {
        "fast": sl.LinearClassifier(sl.rules.GradientDescent(0.5), sl.losses.Logistic()),
        "slow": sl.LinearClassifier(sl.rules.GradientDescent(0.02), sl.losses.Logistic()),
        "sparse": sl.DualAveragingClassifier(l1=0.01),
    }
    texts = []
    for i in range(900):
        x = draw.normal(size=3)
        flips = -1.0 if (i // 150) % 2 else 1.0  # what follows from x changes now and then
        fields: dict[str, Any] = {f"f{j}": float(v) for j, v in enumerate(x)}
        if draw.random() < 0.8:
            fields["label"] = bool(flips * x[0] + 0.5 * draw.normal() > 0.0)
        fields["w"] = int(draw.random() < 0.9)
        texts.append(json.dumps(fields).encode())
    reader = sl.Names()
    learners = Learners(models, reader, best=("loss", window, hysteresis))
    decoder = JSONDecoder(reader, FIELDS, list(learners))
    names, now = list(models), 0
    blocks: list[Any] = [np.zeros((0, 3))]
    found, expected, start = [], [], 0
    while start < len(texts):
        stop = min(start + int(draw.integers(1, 70)), len(texts))
        events = Events()
        decoder.decode(texts[start:stop], events)
        results = learners.learn(events)
        segments = learners.segments("best", results, len(events))
        assert all(first < last for first, last, *_ in segments)
        found += [learner.name for first, last, learner, _ in segments for _ in range(first, last)]
        wanted = events.learned_weights() > 0.0
        for row in range(len(events)):
            expected.append(names[now])
            if not wanted[row]:
                continue
            losses = [[results[name].measures["loss"][row] for name in names]]
            blocks[-1] = np.vstack([blocks[-1], losses])
            if len(blocks[-1]) == size:
                means = np.vstack(blocks[-kept:]).mean(axis=0)
                best = int(np.argmin(means))
                if means[best] < (1.0 - hysteresis) * means[now]:
                    now = best
                blocks.append(np.zeros((0, 3)))
        start = stop
    learners.close()
    assert found == expected
    assert sum(a != b for a, b in itertools.pairwise(found)) > 3


def test_diverged_events_are_skipped_and_counted() -> None:
    reader = sl.Names()
    model = sl.LinearRegressor(sl.rules.GradientDescent(10.0), sl.losses.Squared())
    learners = Learners({"wild": model}, reader)
    events = Events()
    values = [json.dumps({"x": 1e200, "label": 1.0}).encode()] * 20
    JSONDecoder(reader, Fields(), list(learners)).decode(values, events)
    outcome = learners.learn(events)["wild"]
    wild = learners["wild"]
    assert wild.diverged > 0
    assert wild.diverged + wild.learned == 20
    assert np.isfinite(outcome.measures["loss"][outcome.learned]).all()
    nothing = np.zeros(len(events), dtype=bool)
    values, _, _, numbers = predict_batch(
        model, outcome.scores, None, LabelSet(Fields(), classes=False), nothing
    )
    assert None in values
    assert UNSET in numbers
