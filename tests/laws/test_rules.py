"""What must hold for every rule with every penalty and loss it takes."""

from typing import Any

import numpy as np
import pytest

import streamlearn as sl
from tests.laws.members import (
    LOSSES,
    N,
    RULES,
    allowed,
    batches,
    brief,
    close,
    dense,
    estimator,
    pairs,
    stream_for,
)

PAIRS = pairs()
each_pair = pytest.mark.parametrize(("rule", "penalty"), PAIRS, ids=brief)
CHECKPOINTS = (1, 7, 30, 61, 72)


def follow(rule: Any, penalty: Any, loss: Any, batch: int) -> None:
    """Sparse and dense side by side."""
    data = stream_for(loss)
    model = estimator(rule, penalty, loss, batch=batch)
    slow = dense(rule, penalty, loss)
    complete = dict(batches(data, batch))
    start = 0
    before: list[float] = []
    for stop in CHECKPOINTS:
        scores = model.progressive_rows(data.rows[start:stop], data.y[start:stop], data.w[start:stop])
        before = []
        for i in range(start, stop):
            p = float(data.X[i] @ slow.w)
            if i + 1 in complete:
                rows = complete[i + 1]
                slow.step(data.X[rows], data.y[rows], data.w[rows])
                p = float(getattr(slow, "score", p))
            before.append(p)
        counted = data.w[start:stop] > 0
        close(scores[counted], np.array(before)[counted])
        close(model.coef(N), slow.w)
        assert model.steps == slow.t
        # exact zeros, and their exact number
        w = model.coef(N)
        assert np.all(w[slow.w == 0.0] == 0.0)
        assert model.nonzero == np.count_nonzero(w)
        assert model.weights == {j: w[j] for j in np.flatnonzero(w)}
        assert model.penalty_value == pytest.approx(slow.penalty.value(slow.w), rel=1e-8, abs=1e-12)
        start = stop


@each_pair
def test_sparse_is_dense(rule: Any, penalty: Any) -> None:
    for loss in LOSSES:
        if allowed(rule, penalty, loss):
            follow(rule, penalty, loss, 1)
