"""The regret of a daemon's learners is the library's, and goes on after a restart."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import LinearClassifier
from streamlearn.daemon.collectors.regret import RegretCollector, comparator_key
from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import checkpoints
from streamlearn.regret import Tracker
from streamlearn.regret.report import SAMPLE_MORE, SOLVE_LONGER
from streamlearn.telemetry import Board
from tests.support.streams import FIELDS, ShuffledSource, event, make_loop, models

if TYPE_CHECKING:
    from pathlib import Path

NAMES = "default,sparse,ftrl"


def followed(
    directory: Path | None, length: int, names: str = NAMES, **policy: Any
) -> RegretCollector:
    """What is known of the regret of a daemon that has come to its end."""
    log = Log("json", "error")
    loop = make_loop(directory, ShuffledSource(2, length), log=log, names=names, **policy)
    members = loop.pipeline.learners
    loop.pipeline.observers.append(RegretTrackers(log, 300, 0, 0.1))
    assert loop.run() == 0
    regret = RegretCollector(Board(), 0.1)
    regret.start(members)
    for tracker in regret.trackers.values():
        tracker.ledger._closed = False  # so that tests can solve to the end
    return regret


def replayed(directory: Path, name: str) -> Tracker:
    """A tracker of the library after the same events in the same order."""
    found = checkpoints.newest(directory)
    assert found is not None
    tracker = Tracker(models(NAMES)[name], 300, 0)
    for _, partition, start, end in found[1]["observers"]["audit"]:
        for offset in range(start, end):
            features, roles = FIELDS.split(json.loads(event(partition, offset) or b""))
            if roles.get("label") is not None:
                weight = float(roles.get("weight", 1.0))
                tracker.learn_one(features, roles["label"], weight)
    return tracker


@pytest.mark.parametrize("lengths", [(150,), (400,), (150, 400)])
def test_regret_equals_that_of_the_library_after_a_restart(
    tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    for length in lengths:
        regret = followed(tmp_path, length)
    own, theirs = regret.trackers["sparse"].report(9.0), replayed(tmp_path, "sparse").report(9.0)
    assert own.events == theirs.events
    assert own.certified == theirs.certified == (lengths == (150,))
    # Psi(w) is looked at after batches here and after events there
    assert own.progressive_loss == pytest.approx(theirs.progressive_loss, rel=1e-12)
    assert own.objective == pytest.approx(theirs.objective, rel=1e-2)
    assert own.comparator == pytest.approx(theirs.comparator, rel=1e-2)


def test_regret_is_on_the_board() -> None:
    regret = followed(None, 150)
    board = regret.board
    for tracker in regret.trackers.values():
        tracker.report(1.0)
    regret.measure()
    low, high = (board.value(f"regret_{end}", "sparse") for end in ("low", "high"))
    assert low is not None
    assert high is not None
    assert low <= high
    assert board.about.regret_unknown["sparse"] is None
    # certified, so there is no standard error; of averaged weights no bound is proved
    assert board.value("regret_stderr", "sparse") is None
    assert board.value("regret_bound", "sparse") is not None
    assert board.value("regret_bound", "ftrl") is None
    comparators = {labels[0]: labels[3] for labels in board.values("learner_info")}
    assert "L1" in comparators["sparse"]
    assert comparators["sparse"].endswith("all events")


def test_unknown_regret_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    regret = followed(None, 150)
    board, tracker = regret.board, regret.trackers["sparse"]
    known = tracker.report(1.0)
    regret.measure()
    assert board.value("regret_low", "sparse") is not None
    wide = dataclasses.replace(known, regret_low=0.0, regret_high=known.objective)
    monkeypatch.setattr(tracker, "report", lambda _: wide)
    regret._next = 0.0
    regret.measure()
    for name in ("regret_low", "regret_high", "regret_stderr"):
        assert board.value(name, "sparse") is None
    assert board.about.regret_unknown["sparse"] == wide.why_unknown == SOLVE_LONGER
    # of a sample the standard error may be what is missing
    wide = dataclasses.replace(wide, regret_high=1.0, stderr=known.objective, certified=False)
    regret._next = 0.0
    regret.measure()
    assert board.about.regret_unknown["sparse"] == SAMPLE_MORE


def test_learners_with_the_same_problem_share_a_comparator() -> None:
    regret = followed(None, 100, "default,sparse,slower")
    assert regret.solvers == {"default": "default", "sparse": "sparse", "slower": "sparse"}
    regret.trackers["sparse"].report(1.0)
    regret.measure()
    found = regret.trackers["sparse"].ledger.comparator
    assert found is not None
    assert regret.trackers["slower"].ledger.comparator is found
    # and are told to: what one wrote as an ElasticNet is the other's L1
    comparators = {labels[0]: labels[3] for labels in regret.board.values("learner_info")}
    assert comparators["slower"] == comparators["sparse"]
    shares = [tracker.ledger.cpu_share for tracker in regret.trackers.values()]
    assert shares == [0.05, 0.05, 0.05]  # two solve


def test_reset_learner_restarts_its_regret(tmp_path: Path) -> None:
    followed(tmp_path, 100)
    regret = followed(tmp_path, 200, reset=["sparse"])
    events = {name: one.report(0.0).events for name, one in regret.trackers.items()}
    assert 0 < events["sparse"] < events["default"]
    assert events["ftrl"] == events["default"]


def test_added_learner_does_not_use_the_bound_of_other_events(tmp_path: Path) -> None:
    followed(tmp_path, 100, "sparse,slower")
    regret = followed(tmp_path, 200, "sparse,slower", reset=["slower"])
    assert regret.solvers == {"sparse": "sparse", "slower": "slower"}
    for tracker in regret.trackers.values():
        tracker.report(9.0)
    truth = regret.trackers["slower"].report(0.0)
    regret.solvers["slower"] = "sparse"  # as if it had lost count later
    regret.measure()
    high = regret.trackers["slower"].report(0.0).regret_high
    assert high is not None
    assert truth.certified
    assert truth.regret is not None
    assert high >= truth.regret


def test_learners_with_other_class_weights_share_no_comparator() -> None:
    loop = make_loop(None, ShuffledSource(2, 10), log=Log("json", "error"), names="sparse,slower")
    sparse, slower = loop.pipeline.learners
    assert comparator_key(sparse) == comparator_key(slower)
    assert isinstance(slower.model, LinearClassifier)
    slower.model.class_weight = {True: 2.0}
    assert comparator_key(sparse) != comparator_key(slower)
