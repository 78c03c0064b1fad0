"""`sl.DelayedLabels`, compared with river's delayed validation."""

from __future__ import annotations

import copy
import random
import sys
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import evaluate, metrics, stream

import streamlearn as sl
from streamlearn.estimators import model_file

START = datetime(2026, 11, 1, tzinfo=UTC)


def data(n: int = 400) -> list[tuple[Any, bool]]:
    draw = random.Random(2)
    found = []
    for i in range(n):
        user, hour = draw.randrange(30), draw.randrange(24)
        x = {"user": f"u{user}", "hour": hour / 24, "minute": i}
        found.append((x, draw.random() < (user % 7) / 7))
    return found


def moment(x: Any) -> datetime:
    return START + timedelta(minutes=x["minute"])


def delay(x: Any, _: Any) -> timedelta:
    """Return a delay from a long-tailed distribution, determined by the event."""
    return timedelta(minutes=5.0 * (random.Random(str(x)).random() ** (-1 / 1.2) - 1.0))


def test_equals_delayed_validation_of_river() -> None:
    plain = sl.LinearClassifier()
    score = evaluate.progressive_val_score(
        data(), plain, metrics.Accuracy(), moment=moment, delay=delay
    ).get()
    mine = sl.LinearClassifier()
    late, found = sl.DelayedLabels(mine), metrics.Accuracy()
    said = {}
    for i, x, y in stream.simulate_qa(data(), moment=moment, delay=delay):
        if y is None:
            said[i] = late.predict_one(i, x, moment(x))
        else:
            if (guess := said.pop(i)) is not None:  # before the first label there is none
                found.update(y, guess)
            late.learn_one(i, y, moment(x) + delay(x, y))
    assert found.get() == score
    assert late.counts["joined"] == len(data())
    assert mine.weights == plain.weights
    assert mine.intercept == plain.intercept


def test_loss_is_that_of_the_original_prediction() -> None:
    late = sl.DelayedLabels(sl.LinearClassifier(sl.rules.DualAveraging()))
    scores = [late.score_one(i, {"a": 1}, i) for i in range(5)]
    for i in range(5):
        late.learn_one(i, True, 10.0 + i)
    assert scores == [0.0] * 5
    assert late.loss == pytest.approx(np.log(2.0))
    assert late.score_one(9, {"a": 1}) > 0.5


@pytest.mark.parametrize("labels", [(1, 0), (0, 1), ("b", "a", "c"), (3, 5, 1)], ids=str)
def test_new_classes_do_not_change_stored_predictions(labels: tuple[Any, ...]) -> None:
    """A stored score survives sign changes and new columns."""
    late = sl.DelayedLabels(sl.LinearClassifier())
    late.score_one("kept", {"a": 1.0, "b": 1.0}, 0)
    for i, label in enumerate(labels * 3):
        late.predict_one(i, {"a": float(i % len(labels)), "b": 1.0}, i)
        late.learn_one(i, label, i)
    before = late.loss * 3 * len(labels)
    late.learn_one("kept", labels[0], 99)
    expected = late.loss * (3 * len(labels) + 1) - before
    # All scores were 0: the loss is log 2 for each output.
    assert expected == pytest.approx(np.log(2.0) * (1 if len(labels) == 2 else 3), abs=1e-9)


def test_correction_undoes_the_slope_of_the_timeout() -> None:
    rule, penalty = sl.rules.DualAveraging(gamma=2.0), sl.penalties.L1(1e-3)
    one = sl.DelayedLabels(
        sl.LinearClassifier(rule, penalty=penalty),
        hold_for=10.0,
        on_timeout=False,
        corrections=True,
    )
    one.predict_one("e", {"a": 2.0}, 0.0)
    one.predict_one("f", {"b": 1.0}, 11.0)
    assert one.counts["timed_out"] == 1
    correctable = one.estimator.engine.learner.state()["weights"]["rule"]["cells"][0, 0]
    assert correctable == pytest.approx(0.5 * 2.0)  # the slope at 0 times the feature
    asked = one.score_one("g", {"a": 2.0}, 11.0)
    one.learn_one("e", True, 12.0)
    assert one.counts["corrected"] == 1
    sums = one.estimator.engine.learner.state()["weights"]["rule"]["cells"][0, 0]
    assert sums == pytest.approx(-2.0 / (1.0 + np.exp(asked)))  # of the positive event alone
    one.learn_one("e", True, 13.0)
    one.learn_one("e", False, 13.0)
    assert one.counts["duplicates"] == 2
    assert one.estimator.steps == 2


@pytest.mark.parametrize(
    ("guess", "label"),
    [(False, False), (False, 0), (0, False), (0, 0.0), (np.bool_(False), False), (1, np.True_)],
)
def test_equal_label_of_another_type_is_a_duplicate(guess: Any, label: Any) -> None:
    late = sl.DelayedLabels(
        sl.DualAveragingClassifier(), hold_for=10.0, on_timeout=guess, corrections=True
    )
    late.predict_one("e", {"a": 2.0}, 0.0)
    late.predict_one("f", {"b": 1.0}, 11.0)
    late.learn_one("e", label, 12.0)
    assert (late.counts["corrected"], late.counts["duplicates"]) == (0, 1)


def test_labels_larger_than_floats() -> None:
    labels = [2**53 + 1, 2**53, 2**60, 10**400, 1]
    model = sl.LinearClassifier()
    late = sl.DelayedLabels(model)
    for i in range(40):
        late.predict_one(i, {f"f{i % 5}": 1.0}, i)
        late.learn_one(i, labels[i % 5], i)
    assert set(model.labels) == set(labels)
    for i, label in enumerate(labels):
        assert late.predict_one(100 + i, {f"f{i}": 1.0}) == label
    number = sl.DelayedLabels(sl.LinearRegressor())
    with pytest.raises(sl.InvalidEventError, match="large"):
        number.learn_one("e", 10**400)


def test_numeric_types_are_learned_as_numbers() -> None:
    late = sl.DelayedLabels(sl.LinearRegressor())
    for i in range(20):
        late.predict_one(i, {"a": 1.0}, i)
        late.learn_one(i, Decimal(i), i)
    assert late._join.state()["classes"] == []  # which would grow with every new one


def test_class_weights_with_numpy_labels() -> None:
    plain, late = (
        sl.LinearClassifier(class_weight={np.int64(0): 1.0, np.int64(1): 5.0}) for _ in range(2)
    )
    joined = sl.DelayedLabels(late)
    for i in range(30):
        plain.learn_one({"a": float(i % 7)}, i % 2)
        joined.predict_one(i, {"a": float(i % 7)}, i)
        joined.learn_one(i, i % 2, i)
    assert late.weights == pytest.approx(plain.weights, rel=1e-9)


def test_corrections_are_refused_where_impossible() -> None:
    options: dict[str, Any] = {"on_timeout": False, "corrections": True}
    for estimator in (
        sl.LinearClassifier(),
        sl.PegasosClassifier(),
        sl.DualAveragingClassifier(average="tail"),
        sl.DualAveragingClassifier(batch=2),
        sl.LinearClassifier(sl.rules.DualAveraging(), sl.losses.Softmax()),
    ):
        with pytest.raises(sl.IncompatibleError, match="DualAveraging"):
            sl.DelayedLabels(estimator, **options)


def test_invalid_input_changes_nothing() -> None:
    late = sl.DelayedLabels(sl.LinearClassifier())
    late.predict_one("e", {"a": 1.0}, 1.0)
    before = model_file.pack(late.state())
    for wrong in (
        lambda: late.predict_one("f", {"a": float("nan")}, 1.0),
        lambda: late.predict_one(1.5, {"a": 1.0}, 1.0),  # type: ignore[arg-type]
        lambda: late.predict_one("f", {"a": 1.0}, "soon"),
        lambda: late.predict_one("f", {"a": 1.0}, float("inf")),
        lambda: late.predict_one("f", {"a": 1.0}, 1.0, w=-1.0),
        lambda: late.predict_one("f", {"a": 1.0}, pd.NaT),
        lambda: late.predict_one("f", {"a": 1.0}, 10**400),
        lambda: late.predict_one("f", {"a": 1.0}, np.timedelta64(1, "s")),
        lambda: late.learn_one("e", [1], 1.0),  # type: ignore[arg-type]
        lambda: late.learn_one("e", None, 1.0),
        lambda: late.learn_one("e", float("nan"), 1.0),
    ):
        with pytest.raises(ValueError, match=r"."):
            wrong()
    assert model_file.pack(late.state()) == before
    with pytest.raises(sl.IncompatibleError, match="LinearClassifier"):
        sl.DelayedLabels(object())  # type: ignore[arg-type]


def test_third_class_of_pending_labels_is_refused() -> None:
    simplex = sl.penalties.Simplex()
    two = sl.LinearClassifier(sl.rules.DualAveraging(), penalty=simplex, fit_intercept=False)
    late = sl.DelayedLabels(two)
    late.learn_one("e", "a", 1.0)
    late.learn_one("f", "b", 1.0)
    with pytest.raises(sl.InvalidEventError, match="'c'"):
        late.learn_one("g", "c", 1.0)
    late.predict_one("e", {"a": 1.0}, 2.0)
    late.predict_one("f", {"a": 2.0}, 2.0)
    assert late.counts["joined"] == 2


def test_regression() -> None:
    late = sl.DelayedLabels(sl.LinearRegressor(), hold_events=2)
    for i in range(3):
        late.predict_one(i, {"a": 1.0})
    late.learn_one(2, 3.5)
    late.learn_one(0, 1.0)  # was evicted
    assert late.counts == {
        "joined": 1, "orphaned": 0, "timed_out": 1, "evicted": 1, "corrected": 0,
        "duplicates": 0, "repeated": 0,
    }  # fmt: skip
    assert late.loss == pytest.approx(3.5**2 / 2)


def test_threads_may_share_an_estimator() -> None:
    """Timeouts are learned without the GIL."""
    late = sl.DelayedLabels(sl.LinearClassifier(), hold_for=50.0, on_timeout=False)
    failed: list[Exception] = []

    def work(thread: int) -> None:
        try:
            for i in range(2000):
                x = {f"f{k}": 1.0 for k in range(i % 20)}
                late.predict_one(f"{thread}.{i}", x, t=i // 500 * 100.0)
                late.learn_one(f"{thread}.{i - 3}", i % 3 == 0)
        except Exception as error:  # noqa: BLE001 - of a thread, to be shown by the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed
    # each event was joined or timed out, but for the last three of each thread
    assert 4000 - 6 <= late.counts["joined"] + late.counts["timed_out"] <= 4000


def test_copy_is_consistent() -> None:
    """Another thread learns meanwhile: no event is both learned and held."""

    class Slow(sl.LinearClassifier):
        def __getstate__(self) -> dict[str, Any]:
            if not threads:
                threads.append(threading.Thread(target=late.learn_one, args=("e", True)))
                threads[0].start()
                threads[0].join(0.2)  # it finishes now only if it does not wait for the copy
            return super().__getstate__()

    threads: list[threading.Thread] = []
    late = sl.DelayedLabels(Slow())
    late.predict_one("e", {"a": 1.0})
    other = copy.deepcopy(late)
    threads[0].join()
    assert (late.held, late.estimator.state(features=False)["labels"]) == (0, [False, True])
    assert (other.held, other.estimator.state(features=False)["labels"]) == (1, [])


def test_shallow_copy_is_independent() -> None:
    late = sl.DelayedLabels(sl.LinearClassifier())
    late.predict_one("e", {"a": 1.0})
    other = copy.copy(late)
    other.learn_one("e", "b")
    assert (other.held, late.held) == (0, 1)
    assert (
        other.estimator.state(features=False)["labels"],
        late.estimator.state(features=False)["labels"],
    ) == (["b"], [])


def test_prediction_does_not_use_its_own_label() -> None:
    """Even if the label arrived first and adds a class."""
    late = sl.DelayedLabels(sl.LinearClassifier())
    late.learn_one("a", "yes")
    assert late.predict_one("a", {"x": 1.0}) is None
    assert late.predict_one("b", {"x": 1.0}) == "yes"
    late.learn_one("c", "no")
    assert late.predict_one("c", {"x": 1.0}) == "yes"
