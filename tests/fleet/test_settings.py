"""What a configuration with workers may not ask for, and what to use instead."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import Any

import pytest

from streamlearn import config
from streamlearn.fleet import cluster

CONFIG = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks"]

[format]
label = "click"
id = "id"
labels = [false, true]

[features]
kind = "hashing"

[checkpoint]
path = "models"

[fleet]
workers = 2
"""
LEARNER = {"name": "a"}


def problems(changes: dict[str, Any]) -> dict[str, str]:
    try:
        config.parse(CONFIG, "test", changes, environ={})
    except config.ConfigError as error:
        return {problem.path: problem.text for problem in error.problems}
    return {}


def test_workers_are_accepted() -> None:
    assert problems({}) == {}


@pytest.mark.parametrize(
    ("changes", "path", "remedy"),
    [
        ({"fleet.readers": 2}, "fleet.workers", "either"),
        ({"fleet.min_workers": 3}, "fleet.min_workers", "fleet.workers"),
        ({"labels": {}}, "labels", "fleet.readers"),
        ({"source.order": "time"}, "source.order", "fleet.readers"),
        ({"run.until": "1000"}, "run.until", "fleet.readers"),
        ({"features.kind": "names"}, "features.kind", "hashing"),
        ({"format.labels": "open"}, "format.labels", "declare"),
        ({"predictions.path": "-"}, "predictions.path", "topic"),
        ({"dead_letters.path": "letters"}, "dead_letters.path", "topic"),
        (
            {"predictions": {"learner": "best", "best": {"by": "loss"}}},
            "predictions.best",
            "fleet.readers",
        ),
    ],
)
def test_what_needs_one_stream_is_refused(changes: dict[str, Any], path: str, remedy: str) -> None:
    assert remedy in problems(changes)[path]


CSV = {"format": {"kind": "csv", "label": "click", "id": "id", "labels": ["no", "yes"]}}
COLUMNS = ["click", "id", "price", "shop"]
FIELDS = {"price": "number", "shop": "category"}


@pytest.mark.parametrize(
    ("columns", "fields", "declared"),
    [
        (COLUMNS, FIELDS, True),
        (COLUMNS, {"*": "category"}, True),
        (COLUMNS, {"price": "number"}, False),
        (COLUMNS, {}, False),
        (None, FIELDS, False),
        (None, {"*": "category"}, False),
    ],
)
def test_types_of_csv_are_declared(
    columns: list[str] | None, fields: dict[str, str], *, declared: bool
) -> None:
    """Workers would infer different ones, each from its own first records."""
    csv = {"format": CSV["format"] | ({} if columns is None else {"columns": columns})}
    found = problems({**csv, "features": {"kind": "hashing", "fields": fields}})
    assert found.keys() == (set() if declared else {"format.columns"})


@pytest.mark.parametrize(
    "learner",
    [
        {"penalty": "L1(1e-3)"},  # the default under it is not merged
        {"calibrated": True},
        {"rule": "DualAveraging()", "average": "tail"},
        {"rule": "DualAveraging()", "batch": 10},
        {"rule": "AcceleratedDualAveraging()"},
    ],
)
def test_what_cannot_be_merged_is_refused(learner: dict[str, Any]) -> None:
    message = problems({"learner": [LEARNER | learner]})["learner[0]"]
    assert "use" in message
    assert "fleet.readers" in message


@pytest.mark.parametrize(
    "learner",
    [
        {"rule": "DualAveraging()", "penalty": "L1(1e-3)"},
        {"rule": "AdaGradDualAveraging(0.3)"},
        {"rule": "FTRLProximal(0.1)"},
        {"rule": "AROW()", "loss": "Hinge()"},
    ],
)
def test_what_merges_is_accepted(learner: dict[str, Any]) -> None:
    assert problems({"learner": [LEARNER | learner]}) == {}


def test_handlers_of_signals_are_those_from_before_in_the_main_thread() -> None:
    def own(*_: object) -> None:
        """Handle nothing."""

    def others(*_: object) -> None:
        """Handle nothing either."""

    before = {number: signal.signal(number, own) for number in cluster.SIGNALS}
    try:
        with suppress(OSError), cluster.kept_signals():
            for number in cluster.SIGNALS:
                signal.signal(number, others)
            raise OSError("a fault")
        assert [signal.getsignal(number) for number in cluster.SIGNALS] == [own, own]

        def elsewhere() -> None:
            with cluster.kept_signals():  # only the main thread may set handlers
                done.append(True)

        done: list[bool] = []
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert done == [True]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
