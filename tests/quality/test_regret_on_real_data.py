"""On a third of a9a, the regret equals that of brute force and is below the papers' bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

import streamlearn as sl
from benchmarks import data

L, P, R = sl.losses, sl.penalties, sl.rules
LOSS = L.Logistic()
EVERY = 3  # rows


@pytest.fixture(scope="module")
def a9a() -> Any:
    source = data.CLASSIFICATION[0]
    if not Path(data.HOME / source.file).exists():
        pytest.skip(f"{source.file} is not in {data.HOME}; set STREAMLEARN_DATA (CONTRIBUTING.md)")
    examples = data.load(source, data.HOME)
    rows = scipy.sparse.csr_array(examples.rows[::EVERY])
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows, np.where(examples.labels[::EVERY] > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (R.Pegasos(), P.L2(1e-2)),
        (R.Adaptive(20.0, project=20.0), P.L2(1e-3)),
        (R.Proximal(20.0, project=20.0), P.L2(1e-3)),
        (R.DualAveraging(), P.L1(1e-3)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_regret_equals_brute_force(a9a: Any, rule: Any, penalty: Any) -> None:
    X, y = a9a
    with sl.regret.Tracker(
        sl.LinearClassifier(rule, LOSS, penalty, fit_intercept=False), memory_bytes=None, gap=1e-6
    ) as tracker:
        tracker.learn_rows(X, y)
        report = tracker.report(seconds=60.0)
    slow = sl.LinearClassifier(rule, LOSS, penalty, fit_intercept=False)
    spent = 0.0
    for i, label in enumerate(y.tolist()):
        own = slice(X.indptr[i], X.indptr[i + 1])
        event = dict(zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True))
        spent += slow.penalty_value + LOSS.value(slow.score_one(event), label)
        slow.learn_one(event, label)
    best = LogisticRegression(
        C=1.0 / ((penalty.l1 + penalty.l2) * len(y)),
        l1_ratio=float(penalty.l1 > 0.0),
        solver="liblinear",
        fit_intercept=False,
        tol=1e-8,
        max_iter=10_000,
    ).fit(X, y)
    w = np.ravel(best.coef_)
    least = float(LOSS.value(X @ w, y).sum()) + len(y) * penalty.value(w)
    assert report.certified == (report.penalty == "exact")
    assert report.objective == pytest.approx(spent, rel=1e-9 if report.certified else 1e-2)
    assert report.regret_low is not None
    assert report.regret_high is not None
    low, high = report.regret_low, report.regret_high
    assert low - 1e-2 <= spent - least <= high + 1e-2
    assert report.bound is not None
    assert high < report.bound
