"""Options have the effect that they promise, or are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import streamlearn as sl
from streamlearn.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = 200


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.jsonl"
    rows = [
        {"row": f"r{i}", "q": f"q{i % 5}", "x": i % 7, "c": "ab"[i % 2], "y": i % 3 == 0}
        for i in range(EVENTS)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(path)


REFUSED = [
    (["train", "--seed", "3"], "--seed"),
    (["train", "--learner", "a"], "--learner"),
    (["train", "--decimal", ","], "--decimal"),
    (["train", "--field", "x=number", "--field", "x=category"], "--field"),
    (["train", "--class-weight", "true=2", "--class-weight", "true=3"], "--class-weight"),
    (["train", "--regression", "--max-classes", "9"], "--max-classes"),
    (["train", "--regression", "--label-warmup", "9"], "--label-warmup"),
    (["evaluate", "--regression", "--max-classes", "9"], "--max-classes"),
    (["solve", "--regression", "--l2", "1", "--kept", "0.5"], "--kept"),
    (["evaluate", "--loss", "Hinge()"], "--loss"),
    (["evaluate", "--learners", "default,PegasosClassifier", "--penalty", "L1(1)"], "--penalty"),
    (["evaluate", "--png", "a.png", "--html", "a.png"], "--html"),
]


@pytest.mark.parametrize(("arguments", "named"), REFUSED)
def test_what_would_be_ignored_is_refused(
    events: str, arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    assert main([command, events, "--label", "y", *options]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"streamlearn {command}: {named}")
    assert "--delimiter" not in message


@pytest.mark.parametrize(
    "option",
    [["--max-classes", "99"], ["--label-warmup", "200"], ["--calibrated"], ["--labels", "open"]],
)
def test_an_option_about_classes_says_that_numbers_are_classes(
    tmp_path: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "numbers.jsonl"
    rows = [{"x": f"x{i % 60}", "y": 7 * (i % 60)} for i in range(EVENTS)]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    for given, measure in ((option, "error rate"), ([], "R2")):
        assert main(["train", str(path), "--label", "y", *given]) == 0
        assert f"\n{measure} " in capsys.readouterr().out


def test_the_negative_label_of_a_model_cannot_be_positive(
    events: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", events, "--label", "y", "--save", "m.model"]) == 0
    assert main(["test", "m.model", events, "--label", "y", "--positive", "true"]) == 0
    capsys.readouterr()
    assert main(["test", "m.model", events, "--label", "y", "--positive", "False"]) == 2
    assert capsys.readouterr().err.startswith("streamlearn test: --positive false")
    assert main(["train", events, "--label", "y", "--positive", "false", "--save", "n.model"]) == 0
    assert main(["test", "n.model", events, "--label", "y", "--positive", "false"]) == 0


@pytest.mark.parametrize("command", ["train", "evaluate", "test", "solve"])
def test_positive_values_that_never_occur(
    events: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "a.model")
    assert main(["train", events, "--label", "y", "--save", model]) == 0
    start = [command, model] if command == "test" else [command]
    more = {"solve": ["--l2", "1e-2"], "evaluate": ["--learners", "AdaGrad"]}.get(command, [])
    for value, told in (("yes", True), ("true", False)):
        capsys.readouterr()
        assert main([*start, events, "--label", "y", *more, "--positive", value]) == 0
        assert ("--positive" in capsys.readouterr().err) == told
    both = ["--positive", "true", "--positive", "maybe"]
    assert main([*start, events, "--label", "y", *more, *both]) == 0
    said = capsys.readouterr().err
    assert "maybe (--positive)" in said
    assert "all count" not in said


@pytest.mark.parametrize(
    "command", [["train"], ["evaluate", "--learners", "AdaGrad"], ["solve", "--l2", "1e-2"]]
)
def test_declared_fields_that_never_occur(
    events: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for field, told in (("nope=number", True), ("x=number", False)):
        assert main([*command, events, "--label", "y", "--field", field]) == 0
        assert ("'nope'" in capsys.readouterr().err) == told


def test_limits_of_an_option_are_of_the_option(
    events: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["evaluate", events, "--label", "y", "--learners", "AdaGrad", "--memory-bytes"]
    assert main([*given, "10000"]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*given, "9999"])
    assert capsys.readouterr().err.startswith("streamlearn evaluate: --memory-bytes: ")


def test_the_id_is_no_feature_of_a_ranking(events: str, tmp_path: Path) -> None:
    """The group is read as the id of a row; the id of --id is left out nevertheless."""
    path = tmp_path / "a.model"
    options = ["--label", "y", "--loss", "NDCG()", "--l2", "1e-2", "--group", "q", "--id", "row"]
    assert main(["solve", events, *options, "--save", str(path)]) == 0
    names = {str(name) for name in sl.LinearRegressor.load(path).feature_names()}
    assert names
    assert not any(name.startswith("row") for name in names)


def test_a_learner_of_a_checkpoint_is_trained_further(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, state = tmp_path / "a.model", tmp_path / "state"
    settings = tmp_path / "daemon.toml"
    settings.write_text(f"""
        source = {{ kind = "file", paths = ["{events}"] }}
        format.label = "y"
        learner = [{{ name = "a" }}, {{ name = "b", rule = "AdaGrad()" }}]
        checkpoint.path = "{state}"
        telemetry.enabled = false
        run.until = {EVENTS}
    """)
    assert main(["run", str(settings)]) == 0
    given = ["train", events, "--label", "y", "--resume", str(state)]
    assert main(given) == 2
    assert "--learner" in capsys.readouterr().err
    assert main([*given, "--learner", "b", "--save", str(path)]) == 0
    model = sl.LinearClassifier.load(path)
    assert model.steps == 2 * EVENTS
    assert type(model.rules[0]).__name__ == "AdaGrad"


def test_the_number_of_contributions(
    events: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, event = str(tmp_path / "a.model"), tmp_path / "event.json"
    event.write_text('{"x": 2, "c": "a", "q": "q1"}')
    assert main(["train", events, "--label", "y", "--id", "row", "--save", model]) == 0
    counts = {}
    for options in ([], ["--top", "2"]):
        capsys.readouterr()
        assert main(["inspect", model, "--why", str(event), "--json", *options]) == 0
        told = json.loads(capsys.readouterr().out)
        counts[len(options)] = (len(told["contributions"]), told["sum"])
    assert counts[0] == (4, counts[2][1])
    assert counts[2][0] == 2
