"""The regret of a daemon's learners is the library's, and goes on after a restart."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn import LinearClassifier
from streamlearn.daemon.collectors.regret import RegretCollector
from streamlearn.daemon.collectors.regret_trackers import RegretTrackers
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.status import Status
from streamlearn.estimators import checkpoints
from streamlearn.regret import Tracker
from streamlearn.regret.tracker import sample_key
from streamlearn.telemetry import Board
from tests.support.streams import FIELDS, ShuffledSource, event, make_loop, models

if TYPE_CHECKING:
    from pathlib import Path

NAMES = "default,sparse,ftrl"
MEMORY = 250_000  # bytes


def followed(
    directory: Path | None, length: int, names: str = NAMES, **policy: Any
) -> RegretCollector:
    """What is known of the regret of a daemon that has come to its end."""
    log = Log("json", "error")
    loop = make_loop(directory, ShuffledSource(2, length), log=log, names=names, **policy)
    members = loop.pipeline.learners
    loop.pipeline.observers.append(RegretTrackers(log, MEMORY, 0, 0.1))
    assert loop.run() == 0
    regret = RegretCollector(Board())
    regret.start(members)
    for tracker in regret.trackers.values():
        tracker.ledger.comparison.closed = False  # so that tests can solve to the end
    return regret


def replayed(directory: Path, name: str) -> Tracker:
    """A tracker of the library after the same events in the same order."""
    found = checkpoints.newest(directory)
    assert found is not None
    tracker = Tracker(models(NAMES)[name], MEMORY, 0)
    for _, partition, start, end in found[1]["observers"]["audit"]:
        for offset in range(start, end):
            features, roles = FIELDS.split(json.loads(event(partition, offset) or b""))
            if roles.get("label") is not None:
                weight = float(roles.get("weight", 1.0))
                tracker.learn_one(features, roles["label"], weight)
    return tracker


@pytest.mark.parametrize("lengths", [(150,), (3000,), (150, 3000)])
def test_regret_equals_that_of_the_library_after_a_restart(
    tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    for length in lengths:
        regret = followed(tmp_path, length)
    own, theirs = regret.trackers["sparse"].report(9.0), replayed(tmp_path, "sparse").report(9.0)
    assert own.events == theirs.events
    assert own.certified == theirs.certified == (lengths == (150,))
    assert own.regret is not None
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
    low, middle, high = (board.value(f"regret{end}", "sparse") for end in ("_low", "", "_high"))
    assert low is not None
    assert middle is not None
    assert high is not None
    assert low <= middle <= high
    assert board.value("regret_events", "sparse") == regret.trackers["sparse"].report(0.0).events
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
    unknown = dataclasses.replace(
        known, regret=None, regret_low=None, regret_high=None, why_unknown="too small"
    )
    monkeypatch.setattr(tracker, "report", lambda _: unknown)
    regret._next = 0.0
    regret.measure()
    for name in ("regret", "regret_low", "regret_high", "regret_stderr", "regret_events"):
        assert board.value(name, "sparse") is None
    assert board.about.regret_unknown["sparse"] == "too small"


def test_learners_share_a_sample_and_those_with_the_same_problem_a_comparator() -> None:
    regret = followed(None, 100, "default,sparse,slower")
    default, sparse, slower = (regret.trackers[name] for name in ("default", "sparse", "slower"))
    assert default.ledger.shared is sparse.ledger.shared is slower.ledger.shared
    assert sparse.ledger.comparison is slower.ledger.comparison is not default.ledger.comparison
    sparse.report(1.0)
    regret.measure()
    ours, theirs = sparse.ledger.findings, slower.ledger.findings
    assert ours is not None
    assert theirs is not None
    assert ours.minimum is theirs.minimum
    # and are told to: what one wrote as an ElasticNet is the other's L1
    comparators = {labels[0]: labels[3] for labels in regret.board.values("learner_info")}
    assert comparators["slower"] == comparators["sparse"]


def test_solves_start_in_the_background() -> None:
    regret = followed(None, 150)
    regret.measure()
    for tracker in regret.trackers.values():
        tracker.ledger.comparison.wait()
    regret._next = 0.0
    regret.measure()
    assert regret.board.value("regret", "sparse") is not None
    assert regret.board.value("regret", "default") is not None


def test_reset_learner_restarts_its_regret(tmp_path: Path) -> None:
    followed(tmp_path, 100)
    regret = followed(tmp_path, 200, reset=["sparse"])
    events = {name: one.report(0.0).events for name, one in regret.trackers.items()}
    assert 0 < events["sparse"] < events["default"]
    assert events["ftrl"] == events["default"]
    shared = {name: one.ledger.shared for name, one in regret.trackers.items()}
    assert shared["ftrl"] is shared["default"] is not shared["sparse"]
    for tracker in regret.trackers.values():
        assert tracker.report(9.0).certified


def test_removed_recorder_leaves_the_sample_to_others(tmp_path: Path) -> None:
    followed(tmp_path, 100, "sparse,slower")
    regret = followed(tmp_path, 200, "slower")
    assert regret.trackers["slower"].report(9.0).certified


def test_learners_with_other_class_weights_have_their_own_sample() -> None:
    loop = make_loop(None, ShuffledSource(2, 10), log=Log("json", "error"), names="sparse,slower")
    sparse, slower = loop.pipeline.learners
    assert sample_key(sparse.model) == sample_key(slower.model)
    assert isinstance(slower.model, LinearClassifier)
    slower.model.class_weight = {True: 2.0}
    assert sample_key(sparse.model) != sample_key(slower.model)
    trackers = RegretTrackers(Log("json", "error"), MEMORY, 0, 0.1)
    trackers.on_start(loop.pipeline.learners, Status())
    one, other = (tracker.ledger.shared.reservoir for tracker in trackers.trackers.values())
    assert one is not other
    assert one.memory_bytes == other.memory_bytes == MEMORY // 2
