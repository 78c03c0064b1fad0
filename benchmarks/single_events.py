"""Single events: every call that a user makes per event, and data frames."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pandas as pd
from river import linear_model, multiclass, preprocessing

import streamlearn as sl
from benchmarks.report import Run
from benchmarks.workload import FEATURES, Comparison, Prepare, Workload, default, dual_averaging
from streamlearn.stream import CustomDecoder, Events, Fields, JSONDecoder

PREDICTIONS = ("predict_proba_one", "predict_one")
PLAIN = "`predict_one`, then `learn_one`"
CLASSES = ("red", "green", "blue")


def comparisons(work: Workload) -> Iterator[Comparison]:
    """Generate the comparisons of the single-event table."""
    by = Calls(work)
    logistic = linear_model.LogisticRegression
    for call in PREDICTIONS:
        for name, make, least in (
            ("l1 dual averaging", dual_averaging, 5),
            ("default model", default, 3),
        ):
            yield Comparison(
                f"`{call}` then `learn_one`, {name}",
                by.both(make, call),
                {"river LogisticRegression": (by.both(logistic, call), least)},
                {},
            )
    several = "predict_proba_one"
    rest = lambda: multiclass.OneVsRestClassifier(logistic())  # noqa: E731 - as in the table
    yield Comparison(
        f"`{several}` then `learn_one`, three classes, default model",
        by.both(default, several, by.colors),
        {
            "river SoftmaxRegression": (
                by.both(linear_model.SoftmaxRegression, several, by.colors),
                9,
            ),
            "river OneVsRestClassifier": (by.both(rest, several, by.colors), 5),
        },
        {"`learn_rows` only": lambda: partial(default().learn_rows, work.rows, by.colors)},
    )
    river = by.predict(linear_model.LinearRegression, "predict_one", by.numbers)
    for name, regressor, margin in (
        ("default model", sl.LinearRegressor, 1.3),
        ("l1 dual averaging", lambda: sl.DualAveragingRegressor(l1=1e-4), 1.7),
    ):
        yield Comparison(
            f"`predict_one` of a regressor, {name}",
            by.predict(regressor, "predict_one", by.numbers),
            {"river LinearRegression": (river, margin)},
            {},
        )
    for call in PREDICTIONS:
        yield Comparison(
            f"`{call}`, l1 dual averaging",
            by.predict(dual_averaging, call),
            {"`score_one`": (by.predict(dual_averaging, "score_one"), 1 / 1.2)},
            {},
        )
    plain = by.both(dual_averaging, "predict_one")
    yield Comparison(
        "`DelayedLabels`, labels without delay", by.late(), {PLAIN: (plain, 1 / 8)}, {}
    )
    yield Comparison(
        "`regret.Tracker`, predict and learn",
        by.both(lambda: sl.regret.Tracker(dual_averaging(), seed=0), "predict_one"),
        {"without tracker": (plain, 0.5)},
        {},
    )
    scaler = preprocessing.StandardScaler
    yield Comparison(
        "pipeline with river's StandardScaler",
        by.both(lambda: scaler() | dual_averaging(), "predict_one"),
        {
            "with river LogisticRegression": (
                by.both(lambda: scaler() | logistic(), "predict_one"),
                1,
            )
        },
        {"only the scaler": by.scale(scaler)},
    )
    yield Comparison(
        "custom decoder (msgspec)",
        by.decode(custom),
        {"only msgspec": (by.parse(), 0.3)},
        {},
    )
    frames = Frames(work)
    for call in ("learn_many", "predict_many", "predict_proba_many"):
        one = call.replace("many", "one")
        yield Comparison(
            f"`{call}`, {FEATURES} numeric columns",
            frames.many(call),
            {f"`{one}` in a loop": (frames.one(one), 1)},
            {},
        )


def custom(names: sl.Names) -> CustomDecoder:
    """Return a decoder with a Python function."""
    return CustomDecoder(msgspec.json.decode, names, Fields(label="label"), grow_always=True)


class Calls:
    """The workload, call by call; learners are created outside the clock."""

    def __init__(self, work: Workload) -> None:
        self.events, self.labels = work.events, work.labels
        self.numbers = [float(label) for label in work.labels]
        self.colors = [CLASSES[k % 3] for k in range(len(work.labels))]
        self.records = [
            msgspec.json.encode({**x, "label": y})
            for x, y in zip(work.events, work.labels, strict=True)
        ]

    def both(
        self, make: Callable[[], Any], call: str, labels: Sequence[Any] | None = None
    ) -> Prepare:
        """Time predicting each event, then learning it."""
        return lambda: partial(self._both, make(), call, labels or self.labels)

    def _both(self, model: Any, call: str, labels: Sequence[Any]) -> None:
        predict, learn = getattr(model, call), model.learn_one
        for event, label in zip(self.events, labels, strict=True):
            predict(event)
            learn(event, label)

    def predict(
        self, make: Callable[[], Any], call: str, labels: Sequence[Any] | None = None
    ) -> Prepare:
        """Time predictions of a model that has learned all events."""

        def prepare() -> Run:
            model = make()
            for event, label in zip(self.events, labels or self.labels, strict=True):
                model.learn_one(event, label)
            return partial(self._each, getattr(model, call))

        return prepare

    def _each(self, call: Callable[[Any], Any]) -> None:
        for event in self.events:
            call(event)

    def late(self) -> Prepare:
        """Time delayed labels with a delay of zero."""
        return lambda: partial(self._late, sl.DelayedLabels(dual_averaging()))

    def _late(self, model: sl.DelayedLabels) -> None:
        for i, (event, label) in enumerate(zip(self.events, self.labels, strict=True)):
            model.predict_one(i, event, float(i))
            model.learn_one(i, label, float(i))

    def scale(self, make: Callable[[], Any]) -> Prepare:
        """Time the work of a pipeline's scaler alone."""
        return lambda: partial(self._scale, make())

    def _scale(self, scaler: Any) -> None:
        for event in self.events:
            scaler.transform_one(event)
            scaler.learn_one(event)
            scaler.transform_one(event)

    def decode(self, make: Callable[[sl.Names], CustomDecoder | JSONDecoder]) -> Prepare:
        """Time decoding records to rows."""
        return lambda: partial(make(sl.Names()).decode, self.records, Events())

    def parse(self) -> Prepare:
        """Time parsing records to dicts."""
        return lambda: partial(self._parse)

    def _parse(self) -> None:
        for record in self.records:
            msgspec.json.decode(record)


class Frames:
    """The values of the workload as a data frame with as many columns as an event has fields."""

    def __init__(self, work: Workload) -> None:
        rows = work.rows.data.reshape(-1, FEATURES)
        self.frame = pd.DataFrame(rows, columns=[f"name{k}" for k in range(FEATURES)])
        self.labels = pd.Series(work.labels)
        self.events = self.frame.to_dict("records")

    def many(self, call: str) -> Prepare:
        """Time all rows in one call."""

        def prepare() -> Run:
            model, arguments = self._model(call)
            return partial(getattr(model, call), self.frame, *arguments)

        return prepare

    def one(self, call: str) -> Prepare:
        """Time the rows one by one, as prepared dict events."""

        def prepare() -> Run:
            model, arguments = self._model(call)
            return partial(self._loop, getattr(model, call), *arguments)

        return prepare

    def _model(self, call: str) -> tuple[Any, list[Any]]:
        """Return a new model for learning calls, or a trained one for predictions."""
        model = dual_averaging()
        if call.startswith("learn"):
            return model, [self.labels]
        model.learn_many(self.frame, self.labels)
        return model, []

    def _loop(self, call: Callable[..., Any], labels: Any = None) -> None:
        if labels is None:
            for event in self.events:
                call(event)
            return
        for event, label in zip(self.events, labels.tolist(), strict=True):
            call(event, label)
