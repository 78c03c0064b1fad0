"""Late labels, for every rule: a label without delay is plain learning, and a file goes on."""

import copy
import json
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.late.corrections import check_corrections
from streamlearn.stream import Events, Fields, JSONDecoder
from tests.support.members import (
    LOSSES,
    VECTOR_LOSSES,
    allowed,
    averages_of,
    brief,
    estimator,
    pairs,
    stream_for,
    turn,
)

PAIRS = pairs()
# every rule, with a third of the penalties that it takes
SOME = [p for k, p in enumerate(PAIRS) if k % 3 == 0 or p[0] is not PAIRS[k - 1][0]]


def some(rule: Any, penalty: Any, turn: int) -> Any:
    """Return a compatible loss and options, different for each pair."""
    losses = [loss for loss in LOSSES if allowed(rule, penalty, loss)]
    kinds = averages_of(penalty)
    options = {
        "average": kinds[turn % len(kinds)],
        "batch": 1 if rule.learns_events or turn % 3 else 3,
        "seed": 5,
        "fit_intercept": not penalty.on_simplex,
    }
    return losses[turn % len(losses)], options


def events(loss: Any, n: int = 72) -> list[tuple[dict[str, float], Any, float]]:
    """Return a stream of Python events; with a third class later for classification losses."""
    data = stream_for(sl.losses.Logistic() if loss.kind == "multiclass" else loss)
    found = []
    for i, (x, y, w) in enumerate(zip(data.X, data.y.tolist(), data.w.tolist(), strict=True)):
        label = y
        if loss.kind == "multiclass":
            label = (
                i % min(loss.outputs, 2 if i < 30 else 3)
                if loss.outputs
                else "abc"[i % (2 if i < 30 else 3)]
            )
        found.append(({f"f{j}": float(v) for j, v in enumerate(x) if v}, label, w or 1.0))
    return found[:n]


def state(model: Any) -> bytes:
    return model_file.pack(model.state())


@pytest.mark.parametrize(("rule", "penalty"), SOME, ids=brief)
def test_zero_delay_equals_plain_learning(rule: Any, penalty: Any) -> None:
    loss, options = some(rule, penalty, turn(rule, penalty))
    plain = estimator(rule, penalty, loss, **options)
    late = sl.DelayedLabels(estimator(rule, penalty, loss, **options))
    stream = events(loss)
    texts = [json.dumps({**x, "y": y, "w": w}).encode() for x, y, w in stream]
    decoder = JSONDecoder(plain.reader, Fields(label="y", weight="w"), [plain])
    for i, (text, (x, y, w)) in enumerate(zip(texts, stream, strict=True)):
        batch = Events()
        decoder.decode([text], batch)
        score, seen = late.score_one(i, x, t=i, w=w), plain.progressive_events(batch).scores[0]
        # A rule that learns whole events sums in another order. NaN: the event was not learned.
        if not math.isnan(seen):
            assert score == (pytest.approx(seen, rel=1e-12) if rule.learns_events else seen)
        late.learn_one(i, y, t=i)
        assert late.counts["joined"] == i + 1
    assert state(late.estimator) == state(plain)


@pytest.mark.parametrize(
    "loss", [loss for loss in VECTOR_LOSSES if loss.kind == "multiclass"], ids=brief
)
@pytest.mark.parametrize("rule", [sl.rules.DualAveraging(), sl.rules.AdaGrad()], ids=brief)
def test_zero_delay_equals_plain_learning_of_classes(rule: Any, loss: Any) -> None:
    plain = sl.LinearClassifier(rule, loss)
    late = sl.DelayedLabels(sl.LinearClassifier(rule, loss))
    for i, (x, y, w) in enumerate(events(loss)):
        assert late.predict_one(i, x, w=w) == plain.predict_one(x)
        plain.learn_one(x, y, w)
        late.learn_one(i, y)
    assert state(late.estimator) == state(plain)


@pytest.mark.parametrize("rule", [None, *dict.fromkeys(rule for rule, _ in PAIRS)], ids=brief)
def test_file_resumes_bit_for_bit(rule: Any, tmp_path: Path) -> None:
    """With held events, some of which may be corrected."""
    penalty = next((p for r, p in PAIRS if r is rule), None)
    options: dict[str, Any] = {"hold_events": 40, "hold_for": 30.0, "on_timeout": False}
    choices = (sl.losses.Logistic(), sl.losses.Hinge())
    loss = next((loss for loss in choices if penalty and allowed(rule, penalty, loss)), None)
    learner = sl.LinearClassifier(
        rule, loss, penalty, fit_intercept=penalty is None or not penalty.on_simplex
    )
    try:
        check_corrections(learner)
    except sl.IncompatibleError:
        pass
    else:
        options["corrections"] = True
    model = sl.DelayedLabels(learner, **options)
    data = events(sl.losses.Logistic())
    happens = [(float(i), i, None) for i in range(len(data))]
    draw = random.Random(3)
    happens += [
        (i + draw.expovariate(0.05), i, data[i][1] > 0.0) for i in range(len(data)) if i % 4
    ]
    happens.sort(key=lambda one: one[0])

    def run(model: Any, part: list[Any]) -> None:
        for time, i, label in part:
            if label is None:
                model.predict_one(i, data[i][0], t=time)
            else:
                model.learn_one(i, label, t=time)

    run(model, happens[:70])
    model.save(tmp_path / "model")
    twins = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        sl.DelayedLabels.load(tmp_path / "model"),
    ]
    run(model, happens[70:])
    assert model.counts["timed_out"] > model.counts["corrected"]
    for twin in twins:
        run(twin, happens[70:])
        assert model_file.pack(twin.state()) == model_file.pack(model.state())
        assert state(twin.estimator) == state(model.estimator)
        assert twin.loss == model.loss
