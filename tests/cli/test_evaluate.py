"""evaluate: losses are the library's, the regret is the tracker's, and the files can be opened."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import streamlearn as sl
from streamlearn.cli import chart
from streamlearn.cli.actions.evaluate import Contender
from streamlearn.cli.main import main
from streamlearn.cli.parsing import INTERRUPTED
from streamlearn.regret import Report
from streamlearn.regret.findings import MORE_TIME
from streamlearn.stream import Clicks
from streamlearn.stream.sources import stretch

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.engine.events import Events

N = 1500
LEARNERS = "default,PegasosClassifier(l2=0.1),AdaGradDualAveraging(0.3)"


@pytest.fixture
def clicks(tmp_path: Path) -> str:
    path = tmp_path / "clicks.jsonl"
    path.write_bytes(b"\n".join(Clicks("clicks", 2).values(0, N)))
    return str(path)


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["evaluate", *arguments, "--seconds", "1", "--no-guess", "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def test_learners_are_compared(clicks: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--label", "clicked", "--learners", LEARNERS, "--penalty", "L1(1e-3)"]
    facts = evaluated(capsys, clicks, *given)
    assert facts["events"] == N
    assert [row["learner"] for row in facts["learners"]] == LEARNERS.split(",")
    models = [
        sl.LinearClassifier(),
        sl.PegasosClassifier(l2=0.1),
        sl.LinearClassifier(sl.rules.AdaGradDualAveraging(0.3), penalty=sl.penalties.L1(1e-3)),
    ]
    for row, model in zip(facts["learners"], models, strict=True):
        losses = []
        for line in Clicks("clicks", 2).values(0, N):
            event = msgspec.json.decode(line)
            y = event.pop("clicked")
            losses.append(model.objective.loss.value(model.score_one(event), 1.0 if y else -1.0))
            model.learn_one(event, y)
        assert row["loss"] == pytest.approx(np.mean(losses))
        assert row["non-zeros"] == model.nonzero
        assert row["regret low"] <= row["regret"] <= row["regret high"]
        points = facts["curves"][row["learner"]]
        assert [point["events"] for point in points] == [1000, N]
        assert points[0]["loss"] == pytest.approx(np.mean(losses[:1000]))
        # of so many weights and events the sum of an l1 penalty is sampled
        assert [point["certified"] for point in points] == [not model.objective.penalty.l1] * 2
    # strongly convex, so it is solved: the bracket is tight, and the bound is above it
    pegasos = facts["learners"][1]
    assert pegasos["regret high"] - pegasos["regret low"] < 0.01 * N
    assert pegasos["regret low"] <= pegasos["bound"]


def write_table(path: Path) -> str:
    """Write the clicks in the format of a file's name."""
    events = [msgspec.json.decode(line) for line in Clicks("clicks", 2).values(0, N)]
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(events), path, row_group_size=200)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, events[0].keys())
            writer.writeheader()
            writer.writerows(events)
    else:
        path.write_bytes(b"\n".join(map(msgspec.json.encode, events)))
    return str(path)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("features", [[], ["--hash", "10"], ["--field", "age=buckets(5)"]])
def test_the_last_regret_is_of_all_events_in_shards(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    features: list[str],
) -> None:
    monkeypatch.setattr(stretch, "SMALLEST", 1)
    path = write_table(tmp_path / f"clicks.{kind}")
    learners = "PegasosClassifier(l2=0.1),DualAveraging(gamma=5.0)"
    given = [path, "--label", "clicked", "--learners", learners, "--penalty", "L2(0.1)", *features]
    expected = evaluated(capsys, *given)
    small = ["--memory-bytes", "20000"]
    sampled = evaluated(capsys, *given, *small)
    found = evaluated(capsys, *given, *small, "--shards", "3")
    for one, other, rough in zip(
        found["learners"], expected["learners"], sampled["learners"], strict=True
    ):
        assert one["regret"] == pytest.approx(other["regret"], abs=2e-4 * N)
        assert one["regret low"] <= other["regret high"]
        assert other["regret low"] <= one["regret high"]
        curves = [each["curves"][one["learner"]] for each in (found, expected)]
        assert curves[0][-1]["certified"] == curves[1][-1]["certified"]
        assert [len(curve) for curve in curves] == [2, 2]
        assert rough["regret"] != one["regret"]
        for each in (one, other, rough):
            assert (each["regret stderr"] is None) == (each["regret"] is None)


def test_the_sample_is_the_same_in_every_run(
    clicks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trackers: list[sl.regret.Tracker] = []
    learn = Contender.learn

    def noted(entry: Contender, events: Events) -> None:
        if entry.tracker not in trackers:
            trackers.append(entry.tracker)
        learn(entry, events)

    monkeypatch.setattr(Contender, "learn", noted)
    small = ["--label", "clicked", "--memory-bytes", "20000"]
    for _ in range(2):
        evaluated(capsys, clicks, *small)
    samples = [one.ledger.sums.reservoir for one in trackers]
    assert [one.seed for one in samples] == [0, 0]
    assert samples[0].threshold == samples[1].threshold


def test_a_cluster_that_does_not_answer_is_an_error_before_the_pass(
    clicks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Contender, "learn", None)
    assert main(["evaluate", clicks, "--label", "clicked", "--ray", "127.0.0.1:1"]) == 2
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_standard_input_is_not_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["-", "--format", "json", "--label", "clicked", "--shards", "2"]
    assert main(["evaluate", *given]) == 2
    assert "standard input" in capsys.readouterr().err


@pytest.mark.parametrize("after", [0, 1])
def test_interrupted_it_shows_how_far_it_came(
    after: int, clicks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = iter(range(after))
    learn = Contender.learn

    def interrupted(entry: Contender, events: Events) -> None:
        if next(batches, None) is None:
            raise KeyboardInterrupt
        learn(entry, events)

    monkeypatch.setattr(Contender, "learn", interrupted)
    assert main(["evaluate", clicks, "--label", "clicked", "--json"]) == INTERRUPTED
    facts = json.loads(capsys.readouterr().out)
    assert facts["events"] == 1000 * after
    assert [row["learner"] for row in facts["learners"]] == ["default"]
    assert [point["events"] for point in facts["curves"]["default"]] == [1000 * after]


def test_only_what_is_comparable_shares_an_axis(
    clicks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[chart.ChartPanel] = []
    draw = chart.draw

    def recorded(title: str, panels: list[chart.ChartPanel]) -> Any:
        drawn.extend(panels)
        return draw(title, panels)

    monkeypatch.setattr(chart, "draw", recorded)
    given = ["--label", "clicked", "--learners", LEARNERS, "--penalty", "L1(1e-3)"]
    facts = evaluated(capsys, clicks, *given, "--png", str(tmp_path / "a.png"))
    names = LEARNERS.split(",")
    groups = [[curve.name for curve in panel.curves] for panel in drawn]
    hinge, log = [names[1]], [names[0], names[2]]
    assert groups == [log, hinge, [names[0]], hinge, [names[2]], names]
    assert [row["loss of"] for row in facts["learners"]] == [
        "Logistic()",
        "Hinge(threshold=1.0)",
        "Logistic()",
    ]
    # a regret is drawn with its bracket
    assert all(len(curve.y) for panel in drawn[2:5] for curve in panel.curves)
    assert all(len(curve.low) for panel in drawn[2:5] for curve in panel.curves)


def test_a_regret_of_which_nothing_is_known_is_unknown(
    clicks: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wide(tracker: sl.regret.Tracker, _: float) -> Report:
        paid = tracker.ledger.objective
        return Report(N, N, paid, paid, "exact", why_unknown=MORE_TIME)

    monkeypatch.setattr(sl.regret.Tracker, "report", wide)
    given = ["evaluate", clicks, "--label", "clicked"]
    assert main([*given, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["learners"]
    assert (row["regret"], row["regret low"], row["regret high"]) == (None, None, None)
    assert row["regret stderr"] is None
    assert main(given) == 0
    said = capsys.readouterr().out
    assert "unknown" in said
    assert "--seconds" in said


def test_pictures_and_pages(
    clicks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    png, html = tmp_path / "a.png", tmp_path / "a.html"
    files = ["--png", str(png), "--html", str(html)]
    assert main(["evaluate", clicks, "--label", "clicked", "--seconds", "0.1", *files]) == 0
    out = capsys.readouterr().out
    assert "default" in out
    assert f"written: {png}" in out
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in html.read_text()
    assert "default" in html.read_text()


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(Clicks("spending", 2).values(0, 300)))
    given = ["--label", "spent", "--regression", "--learners", "default,Pegasos"]
    facts = evaluated(capsys, str(path), *given, "--penalty", "L2(0.1)")
    assert len(facts["learners"]) == 2
    assert facts["learners"][0]["squared"] == pytest.approx(2.0 * facts["learners"][0]["loss"])


@pytest.mark.parametrize(
    ("learners", "said"),
    [
        ("Pegaso", "did you mean Pegasos?"),
        ("Pegasos", "use L2(strength > 0)"),
        ("default,default", "appears twice"),
        (" , ", "at least one"),
        ("LinearRegressor()", "expected a LinearClassifier"),
        ("L1(1)", "a penalty"),
    ],
)
def test_learners_that_are_none(
    learners: str, said: str, clicks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", clicks, "--label", "clicked", "--learners", learners]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_file_of_one_event_and_of_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"clicked":true}\n')
    png = str(tmp_path / "a.png")
    assert main(["evaluate", str(path), "--label", "clicked", "--png", png]) == 0
    assert "default" in capsys.readouterr().out
    path.write_bytes(b"")
    assert main(["evaluate", str(path), "--label", "clicked"]) == 2
    assert "no events" in capsys.readouterr().err


def test_seconds_that_are_none(clicks: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("-1", "0", "nan", "inf", "soon"):
        with pytest.raises(SystemExit) as end:
            main(["evaluate", clicks, "--label", "clicked", "--seconds", text])
        assert end.value.code == 2
        assert f"expected a number of seconds > 0, got '{text}'" in capsys.readouterr().err
