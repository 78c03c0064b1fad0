"""Decoded events: learning a batch equals learning event by event."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

import streamlearn as sl
from streamlearn.errors import InvalidEventError
from streamlearn.stream import Events, Fields, JSONDecoder

if TYPE_CHECKING:
    from streamlearn.estimators.linear import Linear

RNG = np.random.default_rng(7)


def made(n: int, labels: list[Any]) -> list[dict[str, Any]]:
    """Events of a few fields, some without a label, some of weight 0."""
    found = []
    for i in range(n):
        event: dict[str, Any] = {
            "user": f"u{RNG.integers(40)}",
            "ad": {"id": f"a{RNG.integers(9)}", "price": float(RNG.normal())},
            "words": [f"w{k}" for k in RNG.integers(30, size=3)],
        }
        label = labels[int(RNG.integers(len(labels)))]
        if label is not None or i % 2:
            event["label"] = label
        if i % 5 == 0:
            event["w"] = int(RNG.integers(3))
        found.append(event)
    return found


def canonical(state: Any) -> Any:
    """A state as what can be compared, to the bit."""
    if isinstance(state, dict):
        return {key: canonical(value) for key, value in state.items()}
    if isinstance(state, list):
        return [canonical(value) for value in state]
    return state.tobytes() if isinstance(state, np.ndarray) else state


FIELDS = Fields(weight="w")
MODELS: dict[str, tuple[Linear, list[Any]]] = {
    "default": (sl.LinearClassifier(), [True, False, None]),
    "l1": (sl.DualAveragingClassifier(l1=0.01, average="tail"), [0, 1]),
    "hashing": (sl.FTRLClassifier(l1=0.1, features=sl.Hashing(10)), ["yes", "no", None]),
    "three": (sl.PegasosClassifier(l2=0.1, class_weight={"b": 2.0}), ["a", "b", "c", None]),
    "joint": (sl.LinearClassifier(sl.rules.GradientDescent(0.1), sl.losses.Softmax()), [3, 1, 2]),
    "batch": (sl.LinearClassifier(sl.rules.DualAveraging(), batch=3), [True, False]),
    "simplex": (
        sl.LinearClassifier(
            sl.rules.ExponentiatedDualAveraging(),
            penalty=sl.penalties.Simplex(),
            fit_intercept=False,
        ),
        [True, False],
    ),
    "regression": (sl.LinearRegressor(), [1.5, -2, 0.25, None]),
    "counts": (sl.LinearRegressor(sl.rules.AdaGrad(), sl.losses.Poisson()), [1, 4, 0]),
}


def one_by_one(model: Any, events: list[dict[str, Any]]) -> list[Any]:
    scores = []
    for event in events:
        features, roles = FIELDS.split(event)
        scores.append(model.score_one(features))
        if roles.get("label") is not None:
            model.learn_one(features, roles["label"], float(roles.get("weight", 1.0)))
    return scores


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_events_are_learned_as_one_by_one(name: str, size: int) -> None:
    model, labels = MODELS[name]
    events = made(240, labels)
    if name == "simplex":  # its scores are those of all names seen, of events not learned too
        events = [event for event in events if event.get("w") and event.get("label") is not None]
    alone: Any = model.clone()
    shared: Any = model.clone()
    want = one_by_one(alone, events)
    reader = shared.reader.fresh()
    shared.share_features(reader)
    decoder = JSONDecoder(reader, FIELDS, [shared])
    batch, got = Events(), []
    for start in range(0, len(events), size):
        batch.clear()
        decoder.decode([msgspec.json.encode(e) for e in events[start : start + size]], batch)
        assert not batch.invalid
        got.extend(shared.progressive_events(batch).scores.tolist())
    assert len(got) == len(events)
    assert canonical(shared.state()) == canonical(alone.state())
    if name not in {"three", "joint"}:  # whose scores are by label
        assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


def test_several_estimators_share_one_reader(tmp_path: Any) -> None:
    events = made(300, [True, False])
    apart = [sl.DualAveragingClassifier(l1=0.01), sl.PegasosClassifier(l2=0.1)]
    together = [copy.deepcopy(model) for model in apart]
    reader = sl.Names()
    for model in together:
        model.share_features(reader)
    decoder, batch = JSONDecoder(reader, FIELDS, together), Events()
    decoder.decode([msgspec.json.encode(event) for event in events], batch)
    for one, other in zip(apart, together, strict=True):
        one_by_one(one, events)
        other.progressive_events(batch)
        assert one.weights == other.weights
        assert one.predict_proba_one(events[0]) == other.predict_proba_one(events[0])
    # a checkpoint holds the features once, a file of one model all it needs
    kept = [model.state(features=False) for model in together]
    assert all("features" not in state for state in kept)
    again = sl.Names()
    again.restore(reader.state())
    for one, state in zip(apart, kept, strict=True):
        other = one.clone()
        other.share_features(again)
        other.restore(state)
        assert other.weights == one.weights
        other.save(tmp_path / "model")
        assert type(one).load(tmp_path / "model").weights == one.weights


def test_scoring_after_others_have_learned_names() -> None:
    reader = sl.Names()
    first, second = sl.LinearClassifier(), sl.LinearClassifier()
    for model in (first, second):
        model.share_features(reader)
    for k in range(5000):
        first.learn_one({f"name{k}": 1.0}, k % 2 == 0)
    assert second.score_one({"name4999": 1.0}) == 0.0


def test_a_model_brings_its_names_to_an_empty_reader() -> None:
    first, second = sl.LinearClassifier(), sl.LinearClassifier()
    first.learn_one({"a": 1.0}, True)
    second.learn_one({"b": 1.0}, True)
    reader = sl.Names()
    first.share_features(reader)
    assert reader.names() == ["a"]
    assert first.weights == {"a": first.weights["a"]}
    with pytest.raises(ValueError, match="different names"):
        second.share_features(reader)
    with pytest.raises(ValueError, match="Hashing"):
        second.share_features(sl.Hashing())
    limited = sl.Names(max_bytes=100_000, on_full="ignore")
    second.share_features(limited)
    assert second.score_one({"b": 1.0}) != 0.0
    assert limited.names() == ["b"]
    assert second.reader is limited
    assert second.clone(include_attributes=True).weights == second.weights
    with pytest.raises(ValueError, match="fields"):
        second.share_features(sl.Names({"b": "ignore"}))


@pytest.mark.parametrize("on_full", ["hash", "ignore"])
def test_a_full_table_of_names_stays_full(on_full: str) -> None:
    def learned() -> Any:
        model = sl.LinearClassifier(features=sl.Names(max_names=2, on_full=on_full))
        for name in "abcd":
            model.learn_one({name: 1.0}, name < "c")
        return model

    model = learned()
    larger = sl.Names(max_names=100, on_full=on_full)
    before = model.predict_proba_one({"a": 1.0, "d": 1.0})
    model.share_features(larger)
    assert larger.full
    assert model.predict_proba_one({"a": 1.0, "d": 1.0}) == before
    with pytest.raises(ValueError, match="full"):
        learned().share_features(sl.Names())


def test_a_row_that_diverges_is_left_out() -> None:
    model = sl.LinearRegressor(sl.rules.GradientDescent(10.0))
    reader, events = sl.Names(), Events()
    model.share_features(reader)
    rows = [(1e150 if i in {3, 5} else 1e-3, float(i)) for i in range(9)]
    values = [msgspec.json.encode({"x": x, "label": y}) for x, y in rows]
    JSONDecoder(reader, Fields(), [model]).decode(values, events)
    scores = model.progressive_events(events).scores
    alone = sl.LinearRegressor(sl.rules.GradientDescent(10.0))
    left_out = []
    for i, (x, y) in enumerate(rows):
        try:
            alone.learn_one({"x": x}, y)
        except sl.DivergenceError:
            left_out.append(i)
    assert left_out
    assert np.flatnonzero(np.isnan(scores)).tolist() == left_out
    assert model.weights == alone.weights


def test_labels_no_learner_takes_are_bad_and_leave_no_name() -> None:
    reader, events = sl.Names(), Events()
    counts = sl.LinearRegressor(sl.rules.AdaGrad(), sl.losses.Poisson())
    decoder = JSONDecoder(reader, Fields(), [counts])
    decoder.decode([b'{"a":1,"label":-1}', b'{"b":1,"label":2}', b'{"c":1,"label":"x"}'], events)
    assert [(bad.number, bad.field) for bad in events.invalid] == [(0, "label"), (2, "label")]
    assert reader.names() == ["b"]
    assert "Poisson" in events.invalid[0].reason
    two = sl.LinearClassifier(
        loss=sl.losses.SquaredHinge(),
        penalty=sl.penalties.Simplex(),
        rule=sl.rules.ExponentiatedDualAveraging(),
        fit_intercept=False,
    )
    events.clear()
    decoder = JSONDecoder(reader, Fields(weight="w"), [two])
    decoder.decode(
        [
            b'{"d":1e999,"label":"x"}',
            b'{"e":1,"label":"y"}',
            b'{"f":1,"label":"z"}',
            b'{"g":1,"label":"w"}',
            b'{"h":1,"label":"w","w":0}',
        ],
        events,
    )
    assert [(bad.number, bad.field) for bad in events.invalid] == [(0, None), (3, "label")]
    assert reader.names() == ["b", "e", "f"]
    assert events.labels.tolist()[:2] == [0.0, 1.0]
    assert events.label_of(2) is None
    two.share_features(reader)
    assert len(two.progressive_events(events).scores) == 3


def test_a_batch_is_checked_before_anything_is_learned() -> None:
    events = Events()
    for label in (1.0, "x"):
        events.add([(0, 1.0)], label)
    model = sl.LinearRegressor()
    with pytest.raises(InvalidEventError):
        model.progressive_events(events)
    assert model.steps == 0
    with pytest.raises(ValueError, match="one label"):
        sl.LinearRegressor(
            sl.rules.GradientDescent(0.1), sl.losses.MultiSquared()
        ).progressive_events(events)


def test_added_events_are_read_back() -> None:
    events = Events()
    for i in range(1000):
        events.add([(i, 1.0), (i + 1, -0.5)], ["x", "y", None, 3][i % 4], 2.0, i / 4, b"%d" % i)
    assert len(events) == 1000
    assert [events.label_of(i) for i in range(996, 1000)] == ["x", "y", None, 3]
    assert (events.ids[997], events.times[997], events.weights[997]) == (b"997", 997 / 4, 2.0)
    assert events.row_of(997) == [(997, 1.0), (998, -0.5)]
    with pytest.raises(IndexError):
        events.row_of(1000)


def test_negative_slots_are_rejected() -> None:
    with pytest.raises(ValueError, match="slot"):
        Events().add([(-1, 1.0)])


def test_an_integer_beyond_float_precision_is_a_class() -> None:
    events = Events()
    for label in (2**53, 2**53 + 1, -(2**53) - 1):
        events.add([], label)
    assert [events.label_of(i) for i in range(3)] == [2**53, 2**53 + 1, -(2**53) - 1]
