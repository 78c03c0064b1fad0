"""The regret of a daemon whose workers learn: that of their own scores, on the events of all."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.process.log import Log
from streamlearn.fleet.remote_worker import Base
from streamlearn.fleet.round_pipeline import base_state
from streamlearn.fleet.rounds import Rounds
from streamlearn.regret.reservoir import gather_rows
from tests.fleet.test_remote_worker import (
    LENGTH,
    WHERE,
    MadeUpReader,
    learn_round,
    make_pipeline,
    make_worker,
)

GOALS = (100, 180, LENGTH)


def tracked(memory: int) -> tuple[Any, RegretTrackers]:
    """A pipeline whose regret is tracked."""
    trackers = RegretTrackers(Log("json", stream=io.StringIO()), memory, 7, 0.1)
    pipeline = make_pipeline([trackers])
    trackers.on_start(pipeline.learners, None)  # type: ignore[arg-type]
    return pipeline, trackers


def learn_alone(pipeline: Any, end: int = LENGTH) -> None:
    reader = MadeUpReader()
    reader.assign(dict.fromkeys(WHERE, 0))
    while records := reader.poll(1.0, 50):
        pipeline.process([one for one in records if one.end <= end])


def learn_with_workers(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch, count: int, goals: tuple[int, ...] = GOALS
) -> None:
    """Learn what the pipeline has not learned yet."""
    workers = [make_worker(monkeypatch)[0] for _ in range(count)]
    rounds = Rounds(1, {where: pipeline.positions.get(where, 0) for where in WHERE})
    base = Base(rounds.base, None, base_state(pipeline))
    for goal in goals:
        base = learn_round(pipeline, workers, rounds, base, dict.fromkeys(WHERE, goal))


@pytest.mark.parametrize("count", [1, 3])
def test_it_is_the_regret_of_the_workers_scores(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Against the best fixed model of all events, which does not depend on who learned them."""
    (alone, _), (owner, _) = tracked(10_000_000), tracked(10_000_000)
    learn_alone(alone)
    learn_alone(owner, 50)
    learn_with_workers(owner, monkeypatch, count)
    for learner in owner.learners:
        one, expected = learner.tracker.report(), alone.learners[learner.name].tracker.report()
        assert one.events == expected.events == owner.counts.learned
        assert one.weight == expected.weight == learner.progress["loss"].weight
        assert one.progressive_loss == pytest.approx(learner.progress["loss"].total, rel=1e-9)
        if count == 1:  # in the same order, up to the batches
            assert one.objective == pytest.approx(expected.objective, rel=0.01)
        assert one.sampled == expected.sampled == one.events
        assert one.certified or learner.name == "sparse"  # whose sum of penalties is sampled
        best = [report.objective - report.regret for report in (one, expected)]
        width = one.regret_high - one.regret_low + expected.regret_high - expected.regret_low
        assert best[0] == pytest.approx(best[1], abs=width + 1e-6)
        assert one.regret_low <= one.regret <= one.regret_high
        assert one.bound is None
        assert "workers" in one.why_no_bound


def test_the_sample_of_all_workers_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event once, by the smallest keys, with the scores of both learners."""
    owner, trackers = tracked(20_000)
    learn_alone(owner, 50)
    learn_with_workers(owner, monkeypatch, 3)
    ledgers = [tracker.ledger for tracker in trackers.trackers.values()]
    sample = ledgers[0].shared.reservoir
    assert all(ledger.shared.reservoir is sample for ledger in ledgers)
    rows = gather_rows(sample.snapshot())
    assert sample.bytes < 1.2 * 20_000
    assert 20 < len(rows["positions"]) < owner.counts.learned / 2
    assert len(set(rows["positions"].tolist())) == len(rows["positions"])
    for ledger in ledgers:
        places, cells, _ = ledger.sums.cells.current_samples()
        assert np.all(np.diff(places) > 0)
        assert set(rows["positions"].tolist()) <= set(places.tolist())
        weights = ledger.sums.cell_weights()
        assert weights.sum() == pytest.approx(ledger.sums.weight)
        assert np.all(weights[cells] > 0.0)


def test_it_resumes_with_or_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, trackers = tracked(10_000_000)
    learn_alone(owner, 50)
    learn_with_workers(owner, monkeypatch, 2, (100,))
    resumed, others = tracked(10_000_000)
    others.restore(trackers.state())
    resumed.restore(owner.state(), resumed=["default", "sparse"], features=True)
    others.on_start(resumed.learners, None)  # type: ignore[arg-type]
    for pipeline in (owner, resumed):
        learn_with_workers(pipeline, monkeypatch, 2, (200,))
        reader = MadeUpReader()
        reader.assign(dict.fromkeys(WHERE, 200))
        while records := reader.poll(1.0, 50):
            pipeline.process(records)
    for learner in owner.learners:
        again = resumed.learners[learner.name].tracker.report()
        report = learner.tracker.report()
        assert again.objective == report.objective
        assert again.events == report.events == owner.counts.learned
        assert again.sampled == again.events
        assert again.why_no_bound == report.why_no_bound
