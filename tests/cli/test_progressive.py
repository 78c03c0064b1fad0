"""Progressive curves: points do not depend on batches."""

from __future__ import annotations

import numpy as np
import pytest

from streamlearn.cli.progressive import ProgressiveCurve


def test_points_do_not_depend_on_batches() -> None:
    draws = np.random.default_rng(0)
    losses, weights = draws.random(1000), draws.integers(1, 4, 1000).astype(float)
    losses[draws.random(1000) < 0.1] = np.nan
    want = [(p.events, p.weight, p.loss, p.since) for p in ProgressiveCurve().add(losses, weights)]
    learned = ~np.isnan(losses)
    for events, weight, loss, _ in want:
        places = np.flatnonzero(learned)[:events]
        assert weight == weights[places].sum()
        assert loss == pytest.approx(np.average(losses[places], weights=weights[places]))
    for size in (1, 7, 64):
        curve = ProgressiveCurve()
        got = [
            (p.events, p.weight, p.loss, p.since)
            for start in range(0, 1000, size)
            for p in curve.add(losses[start : start + size], weights[start : start + size])
        ]
        assert [point[:2] for point in got] == [point[:2] for point in want]
        np.testing.assert_allclose(got, want, rtol=1e-12)
    # each point has the mean since the one before, and the last one too, if nothing has come since
    curve = ProgressiveCurve(300)
    points = [*curve.add(losses, weights), curve.end(), curve.end()]
    before = 0
    for point in points:
        places = np.flatnonzero(learned)[before : point.events]
        since = np.average(losses[places], weights=weights[places]) if len(places) else point.loss
        assert point.since == pytest.approx(since)
        before = point.events
    assert [p.events for p in ProgressiveCurve(300).add(losses, weights)] == [300, 600]
