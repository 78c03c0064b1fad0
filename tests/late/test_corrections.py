"""Corrections among other events: a batch is learned as its events are, one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

import streamlearn as sl
from streamlearn.estimators import model_file
from streamlearn.late.delayed_learner import DelayedLearner
from streamlearn.late.estimator import encode_id
from streamlearn.late.join import Join


def steps(seed: int) -> list[tuple[str, int, float, bool | None]]:
    """Return events, and their labels: in time, after the timeout, or never."""
    draw = random.Random(seed)
    found: list[tuple[str, int, float, bool | None]] = []
    for k in range(60):
        found.append(("event", k, float(k), None))
        if draw.random() < 0.8:
            found.append(("label", k, k + draw.choice([0.5, 2.5, 7.5, 9.5]), draw.random() < 0.6))
    return sorted(found, key=lambda step: step[2])


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_is_learned_as_its_events_are_one_by_one(seed: int) -> None:
    states: list[bytes] = []
    for size in (1, 2, 5, 1000):
        model = sl.LinearClassifier(sl.rules.DualAveraging())
        join = Join(100, 5.0, False, True)
        learner = DelayedLearner(model, join)
        given = steps(seed)
        for n, (kind, key, moment, label) in enumerate(given, 1):
            if kind == "event":
                event: Any = {"a": key % 3 - 1.0, "b": 1.0}
                join.add_event(model.reader, event, encode_id(str(key)), moment, 1.0)
            else:
                join.add_label(label, encode_id(str(key)), moment)
            if n % size == 0 or n == len(given):
                learner.learn(["loss"])
                join.clear()
        assert join.counts["corrected"] > 10
        states.append(model_file.pack(model.state()))
    assert len(set(states)) == 1
