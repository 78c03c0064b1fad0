"""What is told of a daemon is what it does."""

from __future__ import annotations

import io
import json
import math
import random
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing.writer import FailedCheckpoint, WrittenCheckpoint
from streamlearn.daemon.collectors import telemetry
from streamlearn.daemon.collectors.counts import MAX_PARTITIONS
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.status import Status
from streamlearn.estimators.checkpoints import CheckpointId
from streamlearn.quality.ranking import groups_of, roc_area
from streamlearn.rules import Mixture
from streamlearn.stream import Partition, Records
from streamlearn.telemetry import Health
from streamlearn.telemetry.board import About
from streamlearn.telemetry.history import History
from streamlearn.telemetry.metrics import BoardCollector, Exposition
from streamlearn.telemetry.quality import RecentScores
from tests.support.missing import require_program
from tests.support.running import (
    HOSTILE,
    get_json,
    http_get,
    make_watched_loop,
    running,
    settings,
    wait_until,
)
from tests.support.streams import TOPIC, ShuffledSource

if TYPE_CHECKING:
    from pathlib import Path


def test_counts_equal_those_of_the_pipeline(tmp_path: Path) -> None:
    source = ShuffledSource(3, 400, garbage=0.1)
    loop, watching = make_watched_loop(tmp_path, source)
    assert loop.run() == 0
    watching.refresh(Status())
    board, counts = watching.board, loop.pipeline.counts
    assert sum(board.values("events_polled_total").values()) == counts.records == 1200
    assert board.value("events_learned_total", "default") == counts.learned
    assert board.value("events_predicted_total", "sparse") == counts.events
    assert board.value("events_unlabeled_total") == counts.unlabeled > 0
    assert sum(board.values("invalid_records_total").values()) == counts.invalid > 0
    assert board.value("events_deleted_total") == counts.tombstones > 0
    (learner, _) = loop.pipeline.learners
    assert board.value("progressive_loss", "default") == learner.progress["loss"].mean
    looked = board.value("nonzero_weights", "default")
    assert looked is not None
    assert looked <= learner.model.nonzero
    assert board.value("checkpoint_bytes") is not None
    assert watching.history.columns["events"][-1] <= counts.events


def test_roc_area_equals_that_of_scikit_learn() -> None:
    draw = np.random.default_rng(0)
    recent = RecentScores(500)
    scores, labels, weights = np.zeros(0), np.zeros(0, bool), np.zeros(0)
    for i, n in enumerate((3, 700, 0, 130, 499, *[5] * 60, *[900] * 5)):
        more = draw.normal(size=n).round(1)  # with ties
        positive = more + draw.normal(size=n) > 0.5
        learned = draw.random(n) < 0.9
        error = np.where(learned, positive != (more > 0.0), np.nan)
        weight = draw.exponential(size=int(learned.sum()))
        recent.add(more.reshape(-1, 1), error, learned, weight)
        scores = np.append(scores, more[learned])[-500:]
        labels = np.append(labels, positive[learned])[-500:]
        weights = np.append(weights, weight)[-500:]
        if i < 5 or i % 7 == 0:
            found, positive, weight = recent.window()
            assert np.array_equal(found, scores)
            groups = groups_of(found, positive, np.full(len(found), np.nan), weight)
            expected = roc_auc_score(labels, scores, sample_weight=weights)
            assert roc_area(groups) == pytest.approx(expected)


def test_missing_values_are_absent() -> None:
    loop, watching = make_watched_loop(None, ShuffledSource(1, 0))
    assert loop.run() == 0
    text = Exposition(BoardCollector(watching.board)).text("")[0].decode()
    for name in (
        "progressive_loss",
        "regret",
        "recent_roc_auc",
        "checkpoint_bytes",
        "nonzero",
    ):
        assert f"streamlearn_{name}" not in text
    assert 'streamlearn_events_learned_total{learner="default"} 0.0' in text
    assert 'streamlearn_invalid_records_total{reason="syntax"} 0.0' in text
    assert "nan" not in text.lower().replace("nance", "")


def test_restart_resumes_the_curves_and_counts_from_zero(tmp_path: Path) -> None:
    loop, before = make_watched_loop(tmp_path, ShuffledSource(3, 200))
    assert loop.run() == 0
    loop, after = make_watched_loop(tmp_path, ShuffledSource(3, 400, seed=1))
    assert loop.run() == 0
    past = before.history.columns
    assert after.history.columns["events"][: len(past["events"])] == past["events"]
    assert after.counts.seen == 1200
    assert after.board.value("lifetime_events_learned", "default") == loop.pipeline.counts.learned
    now = after.board.value("events_learned_total", "default")
    assert now is not None
    assert now < loop.pipeline.counts.learned
    assert after.board.value("restarts") == 1


def test_recent_scores_are_resumed(tmp_path: Path) -> None:
    make_watched_loop(tmp_path, ShuffledSource(3, 200))[0].run()
    for reset in ([], ["sparse"]):
        loop, watching = make_watched_loop(tmp_path, ShuffledSource(3, 200), reset=reset)
        assert loop.run() == 0
        for learner in loop.pipeline.learners:
            scores, positive, weights = watching.quality.recent[learner.name].window()
            ranked = max(learner.learned - 1, 0)  # before the first event, no label was known
            assert len(scores) == len(positive) == len(weights) == ranked
            assert bool(len(scores)) == (learner.name not in reset)
        area = watching.board.value("recent_roc_auc", "default")
        scores, positive, weights = watching.quality.recent["default"].window()
        assert area == roc_area(groups_of(scores, positive, np.zeros(len(scores)), weights))


def test_rejected_features_are_counted() -> None:
    source = {"kind": "synthetic", "events": 300}
    for table in ({"max_names": 20, "on_full": "ignore"}, {}):
        overrides = {"source": source, "features": {"kind": "names", **table}, "run.until": "end"}
        given = config.parse("[telemetry]\nport = 0", overrides=overrides)
        loop = build.loop(given, Log("json", "error"))
        (watching,) = (
            one for one in loop.pipeline.observers if isinstance(one, TelemetryCollector)
        )
        assert loop.run() == 0
        watching.weights._next = 0.0
        watching.refresh(Status())
        away = watching.board.value("rejected_features")
        reader: Any = loop.pipeline.learners.reader
        assert away == reader.rejected_features
        assert bool(away) == bool(table)


def test_recent_quality_is_that_of_weighted_events(tmp_path: Path) -> None:
    path, draw = tmp_path / "a.jsonl", random.Random(0)
    events = []
    for _ in range(30_000):
        x = draw.gauss(0.0, 1.0)
        y = draw.random() < 1.0 / (1.0 + math.exp(2.5 - x))
        if y or draw.random() < 0.1:
            events.append({"x": x, "y": y, "w": 1.0 if y else 10.0})
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    board = finished(path, {"format.weight": "w"}).board
    other = finished(path, {"format.kept": 0.1, "features.fields": {"w": "ignore"}}).board
    for name in ("roc_auc", "calibration_ratio", "calibration_error"):
        value = board.value(f"recent_{name}", "default")
        assert value == pytest.approx(other.value(f"recent_{name}", "default"))
    assert board.value("recent_calibration_ratio", "default") == pytest.approx(1.0, abs=0.1)
    assert (board.value("recent_calibration_error", "default") or 1.0) < 0.02


def finished(path: Path, overrides: dict[str, Any]) -> TelemetryCollector:
    """Learn a file, and return what is told of it."""
    file = {"source": {"kind": "file", "paths": [str(path)]}, "run.until": "end"}
    overrides = {"format.label": "y", **file, **overrides}
    loop = build.loop(
        config.parse("[telemetry]\nport = 0", overrides=overrides), Log("json", "error")
    )
    [watching] = [one for one in loop.pipeline.observers if isinstance(one, TelemetryCollector)]
    assert loop.run() == 0
    watching.quality._next = 0.0
    watching.refresh(Status())
    return watching


def test_shares_of_a_mixture_are_those_of_all_classes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    events = [
        {"word": "abc"[i % 3], "x": i % 7, "y": "abc"[i % (2 + (i > 100))]} for i in range(600)
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    given = config.parse(
        "[telemetry]\nport = 0",
        overrides={
            "source": {"kind": "file", "paths": [str(path)]},
            "format.label": "y",
            "run.until": "end",
        },
    )
    loop = build.loop(given, Log("json", "error"))
    [watching] = [one for one in loop.pipeline.observers if isinstance(one, TelemetryCollector)]
    assert loop.run() == 0
    watching.refresh(Status())
    [learner] = loop.pipeline.learners
    mixtures = [rule for rule in learner.model.rules if isinstance(rule, Mixture)]
    shares = np.array([mixture.shares for mixture in mixtures])
    assert len(shares) == 3
    found = watching.board.values("mixture_weight_ratio")
    assert list(found.values()) == pytest.approx(shares.mean(axis=0).tolist())


def test_point_between_two_refreshes_has_no_slow_values() -> None:
    now = [100.0]
    loop, watching = make_watched_loop(None, ShuffledSource(1, 0))
    watching.clock = lambda: now[0]
    loop.pipeline.observers = [watching]
    watching.on_start(loop.pipeline.learners, Status())
    source = ShuffledSource(1, 4000, batch=50)
    for k in range(12):
        now[0] += 0.5  # a look is due at each second poll
        loop.pipeline.process([source.next(Partition(TOPIC, 0))])
        if k % 4 == 3:
            watching.on_tick(Status())
    curve = watching.history.columns["nonzero/default"]
    points = [point for point in curve if point is not None]
    assert 1 <= len(points) <= 4 < len(curve)
    watching.on_end()


def test_lag_is_that_of_the_partitions_whose_lag_is_known() -> None:
    loop, watching = make_watched_loop(None, ShuffledSource(1, 0))
    watching.on_start(loop.pipeline.learners, Status())
    parts = [Partition(TOPIC, k) for k in range(3)]
    for lag, shown in (((3, None, 4), 7.0), ((None, None, None), None), ((0, 0, 0), 0.0)):
        watching.refresh(Status(lag=dict(zip(parts, lag, strict=True))))
        assert watching.recent.since(0)[-1]["lag"] == shown
    watching.on_end()


def test_the_size_of_steps_is_that_of_one_rule() -> None:
    for labels, known in (((True, False), True), (("a", "b", "c"), False)):
        loop, watching = make_watched_loop(None, ShuffledSource(1, 0))
        watching.on_start(loop.pipeline.learners, Status())
        sparse = loop.pipeline.learners["sparse"].model
        for label in labels * 3:
            sparse.learn_one({"x": 1.0}, label)
        watching.refresh(Status())
        rules = sparse.rules
        assert (len(rules) == 1) == known
        expected = rules[0].step_size if known else None
        assert watching.board.value("step_size", "sparse") == expected
        watching.on_end()


def test_the_last_events_before_a_pause_are_on_the_curves() -> None:
    now = [100.0]
    loop, watching = make_watched_loop(None, ShuffledSource(1, 0))
    watching.clock = lambda: now[0]
    loop.pipeline.observers = [watching]
    watching.on_start(loop.pipeline.learners, Status())
    assert len(watching.history) == 0
    source = ShuffledSource(1, 4000, batch=50)
    for _ in range(3):  # at once, and nothing afterwards
        loop.pipeline.process([source.next(Partition(TOPIC, 0))])
    for _ in range(3):
        now[0] += 1.0
        watching.on_tick(Status())
    columns = watching.history.columns
    assert columns["events"][1:] == [watching.counts.seen]
    (loss,) = (one.progress["loss"].mean for one in loop.pipeline.learners if one.name == "default")
    assert columns["loss/default"][-1] == pytest.approx(loss, rel=1e-5)
    assert columns["nonzero/default"][-1] == watching.board.value("nonzero_weights", "default")
    watching.on_end()


def test_curve_spans_the_lifetime_in_bounded_memory() -> None:
    history = History()
    for events in range(0, 3_000_000, 700):
        if history.due(events):
            history.add(events, float(events), {"loss/a": 1.0 / (1 + events)})
        if events == 1_400_000:
            kept = History()
            kept.restore(history.state())
            assert kept.columns == history.columns
            history = kept
    past = history.columns["events"]
    assert past[0] == 0
    assert past[-1] > 2_900_000
    assert 200 <= len(past) < history.max_points
    steps = np.diff(past)
    assert steps.max() <= 2.5 * steps.min()
    part = history.snapshot(past[-3], history.stride)
    assert part["life"]["events"] == past[-2:]
    assert not part["whole"]
    assert history.snapshot(past[-3], history.stride - 1)["whole"]


def test_unassigned_partitions_are_dropped_and_excess_ones_summed() -> None:
    _, watching = make_watched_loop(None, ShuffledSource(1, 0))
    many = [Partition("t", n) for n in range(MAX_PARTITIONS + 10)]
    status = Status(
        positions=dict.fromkeys(many, 5), lag=dict.fromkeys(many, 2), lost={many[-1]: 8, many[3]: 9}
    )
    for where in many:
        watching.board.add("events_polled_total", 1, *watching.counts.labels_of(where))
    watching.refresh(status)
    lag = watching.board.values("lag_events")
    assert len(lag) == MAX_PARTITIONS + 1
    assert lag["other", "other"] == 20
    lost = watching.board.values("events_lost_total")
    assert (lost["other", "other"], lost["t", "3"], sum(lost.values())) == (8, 9, 17)
    assert len(watching.board.values("events_polled_total")) == MAX_PARTITIONS + 1
    watching.refresh(Status(positions=status.positions, lag={many[3]: 7}))
    assert watching.board.values("lag_events") == {("t", "3"): 7}
    assert watching.board.values("position_offset") == {("t", "3"): 5}
    assert watching.board.values("events_polled_total") == {("t", "3"): 1}


def test_health_has_a_reason() -> None:
    now = [0.0]
    health = Health(10.0, clock=lambda: now[0])
    about = About(state="active")
    assert health.ready(about, 0) == (False, "the source has not answered the first poll")
    health.beat()
    health.polled = True
    assert health.ready(about, 1) == (False, "1 partition has no position yet")
    assert health.ready(about, 2) == (False, "2 partitions have no position yet")
    assert health.ready(about, 0) == (True, "learning")
    now[0] = 11.0
    assert not health.alive()[0]
    assert not health.ready(about, 0)[0]
    assert health.alive("loading")[0]
    health.beat()
    assert health.ready(About(state="standby"), 0)[0]
    assert health.ready(About(state="stopping", reason="asked"), 0) == (False, "asked")


def test_failed_checkpoints_are_counted() -> None:
    _, watching = make_watched_loop(None, ShuffledSource(1, 0))
    board = watching.board
    for k in range(3):
        watching.on_checkpoint(FailedCheckpoint(OSError("full"), 0.1, 1.0))
        assert board.value("checkpoint_failures_total") == k + 1
    assert board.value("checkpoint_bytes") is None
    watching.on_checkpoint(WrittenCheckpoint(CheckpointId(1, 2), 512, 0.25, {}))
    assert board.value("checkpoint_failures_total") == 3
    assert board.value("checkpoint_bytes") == 512
    assert board.value("checkpoint_duration_seconds") == 0.25


def test_ready_once_each_partition_has_a_position_or_lag() -> None:
    _, watching = make_watched_loop(None, ShuffledSource(1, 0))
    one, other, third = (Partition("t", n) for n in range(3))
    about = About(state="active")
    watching.health.beat()
    watching.health.polled = True
    for status, unknown in (
        (Status(lag={one: None, other: None, third: 0}), 2),
        (Status(lag={one: None, other: None, third: 0}, positions={other: 7}), 1),
        (Status(lag={one: None, other: 4}, positions={one: 0, other: 7}), 0),
        (Status(lag={one: 3, other: 4}), 0),
        (Status(), 0),
    ):
        watching.refresh(status)
        assert watching.board.unknown == unknown
        assert watching.health.ready(about, watching.board.unknown)[0] == (unknown == 0)


def test_running_daemon_serves_its_telemetry(tmp_path: Path) -> None:
    with running(tmp_path) as (_, watching, address):
        wait_until(lambda: watching.board.weights.get("default"))
        wait_until(lambda: watching.board.value("checkpoint_bytes"))
        assert get_json(f"{address}/healthz")["status"] == "ok"
        assert wait_until(lambda: http_get(f"{address}/readyz")[0] == 200)
        status = get_json(f"{address}/api/status?config=1")
        assert status["state"] == "active"
        assert status["learners"][0]["lifetime_events_learned"] > 0
        assert abs(sum(status["learners"][0]["mixture"].values()) - 1.0) < 1e-6
        assert "[telemetry]" in status["config"]
        assert {p["partition"] for p in status["partitions"]} == {"0", "1", "2"}
        series = get_json(f"{address}/api/series")
        lengths = {len(column) for column in series["life"].values()}
        assert len(lengths) == 1
        found = get_json(f"{address}/api/weights?learner=default&top=3&q=USER%3D")
        assert len(found["weights"]) == 3
        assert all("user=" in one["name"] for one in found["weights"])
        sizes = [abs(one["value"]) for one in found["weights"]]
        assert sizes == sorted(sizes, reverse=True)
        for odd in ("top=-1", "top=x", "learner=nobody", "top=" + "9" * 30, "q=%ff%00"):
            assert http_get(f"{address}/api/weights?{odd}")[0] in {200, 404}
        assert http_get(f"{address}/nothing")[0] == 404
        text = http_get(f"{address}/metrics")[1]
        checked = subprocess.run(
            [require_program("promtool"), "check", "metrics"],
            input=text,
            capture_output=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr.decode() + checked.stdout.decode()


def test_invalid_records_are_masked_unless_configured() -> None:
    for shows in (False, True):
        given = settings(telemetry=f"show_invalid_records = {str(shows).lower()}")
        with running(given=given) as (_, watching, address):
            wait_until(lambda seen=watching: seen.board.invalid_records)
            bad = get_json(f"{address}/api/status")["invalid_records"][0]
        assert bad["topic"] == TOPIC
        assert bad["code"] == "value"
        assert (bad["payload"] is not None) == shows
        assert (bad["reason"] is not None) == shows


def test_no_secret_is_exposed() -> None:
    given = settings(telemetry='token = "s3cret"')
    with running(given=given) as (_, _, address):
        assert http_get(f"{address}/")[0] == 401
        assert http_get(f"{address}/api/status")[0] == 401
        assert http_get(f"{address}/healthz")[0] == 200
        for path in ("/api/status?config=1", "/metrics", "/", "/api/series"):
            status, body = http_get(f"{address}{path}", {"Authorization": "Bearer s3cret"})
            assert status == 200
            assert b"s3cret" not in body


def test_address_in_use_does_not_stop_the_learning(capsys: pytest.CaptureFixture[str]) -> None:
    with running() as (_, first, _):
        loop, watching = make_watched_loop(None, ShuffledSource(2, 100))
        watching.server.port = first.server.port
        assert loop.run() == 0
        assert loop.pipeline.counts.records == 200
        assert watching.serving is False
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [line] = [line for line in lines if line["event"] == "telemetry unavailable"]
    assert (line["level"], line["port"]) == ("error", first.server.port)
    assert "telemetry.port" in line["remedy"]


def test_several_outputs_have_weights_for_each_label_and_no_roc_area() -> None:
    class Three(ShuffledSource):
        def poll(self, seconds: float) -> list[Records]:
            found = super().poll(seconds)
            for records in found:
                records.values = [
                    json.dumps({"x": i % 7, "click": "abc"[i % 3]}).encode()
                    for i in records.offsets
                ]
            return found

    loop, watching = make_watched_loop(None, Three(1, 300), names="default")
    assert loop.run() == 0
    assert watching.board.value("error_ratio", "default") is not None
    watching.weights._next = 0.0
    watching.board.weights_time = 0.0
    watching.refresh(Status())
    assert watching.board.value("recent_roc_auc", "default") is None
    named: Any = [one.name for one in watching.board.weights["default"]]
    assert any("→" in name for name in named)


def test_hostile_names_are_json_strings() -> None:
    with running() as (_, _, address):
        asked = f"{address}/api/weights?learner=default&q=%3Cscript"
        found = wait_until(lambda: get_json(asked)["weights"])
        assert found[0]["name"] == HOSTILE
        page = http_get(f"{address}/")[1]
        assert b"hostile" not in page


@pytest.mark.parametrize(
    ("telemetry", "warned"),
    [
        ("", False),
        ('host = "::1"', False),
        ('host = "0.0.0.0"', True),
        ('host = "0.0.0.0"\npage = false', True),
        ('host = "0.0.0.0"\ntoken = "secret"', False),
    ],
)
def test_telemetry_open_to_the_network_is_warned_of(telemetry: str, warned: bool) -> None:
    log = Log("json", "warning", stream=io.StringIO())
    watching = TelemetryCollector(settings(telemetry=telemetry), log)
    watching.on_state(Status("starting"))
    watching.on_end()
    assert isinstance(log.stream, io.StringIO)
    lines = [json.loads(line) for line in log.stream.getvalue().splitlines()]
    found = [line for line in lines if line["level"] == "warning"]
    assert len(found) == warned
    for line in found:
        assert line["event"] == "telemetry exposed to the network without a token"
        assert line["host"] == "0.0.0.0"  # noqa: S104 - nothing listens
        assert "telemetry.token" in line["remedy"]


def test_the_chosen_learner_is_shown() -> None:
    loop, watching = make_watched_loop(None, ShuffledSource(1, 50), best=("loss", 100, 0.0))
    choice = loop.pipeline.learners.choice
    assert loop.run() == 0
    assert choice is not None
    for name in choice.names:
        choice.name = name
        watching.refresh(Status())
        chosen = watching.board.values("currently_best")
        assert {one for one, value in chosen.items() if value == 1.0} == {(name,)}
        assert {*chosen.values()} == {0.0, 1.0}


@pytest.mark.parametrize(
    ("learner", "parts"),
    [
        ({}, []),
        ({"start": "old.model"}, ["old.model"]),
        ({"model": "PegasosClassifier()"}, ["PegasosClassifier()"]),
        ({"rule": "AROW()", "loss": "Hinge()"}, ["AROW()", "Hinge()"]),
    ],
)
def test_a_model_is_described_as_it_is_configured(
    learner: dict[str, Any], parts: list[str]
) -> None:
    text = telemetry.model_text(config.LearnerConfig(name="a", **learner))
    assert text
    assert all(part in text for part in parts)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),  # noqa: S104 - it is not listened on
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, local: bool) -> None:
    assert telemetry.is_loopback(host) == local
