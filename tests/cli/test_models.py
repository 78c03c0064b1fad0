"""inspect and models: what they show is what was learned, and going back is safe."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import streamlearn as sl
from streamlearn.cli.actions import models
from streamlearn.cli.main import main
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.process.exits import Exit
from streamlearn.estimators import checkpoints, model_file

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.estimators.checkpoints import CheckpointId

EVENT = {"user": "ann", "ad": "shoes", "hour": 9.0}


def taught(model: Any, n: int = 50) -> Any:
    for k in range(n):
        model.learn_one({"user": f"u{k % 7}", "ad": "shoes", "hour": float(k % 24)}, k % 3 == 0)
        model.learn_one(EVENT, True)
    return model


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "model",
    [
        sl.LinearClassifier(),
        sl.DualAveragingClassifier(l1=0.001),
        sl.LinearClassifier(features=sl.Hashing(12, {"user^ad": "interaction"})),
        sl.LinearRegressor(fit_intercept=False),
        sl.LinearClassifier(sl.rules.AdaGrad(0.1), sl.losses.Softmax()),
    ],
)
def test_inspect(model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.model")
    taught(model).save(path, notes={"made by": "streamlearn train", "history": [{"events": 1}]})
    facts = shown(capsys, "inspect", path, "--top", "3")
    assert facts["non-zeros"] == model.nonzero
    assert facts["steps"] == model.steps
    assert facts["made by"] == "streamlearn train"
    assert facts["history"] == [{"events": 1}]
    sizes = [abs(row["weight"]) for row in facts["weights"]]
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)
    assert main(["inspect", path]) == 0
    plain = capsys.readouterr().out
    assert str(facts["weights"][0]["feature"]) in plain
    assert "\x1b" not in plain


@pytest.mark.parametrize("bits", [None, 12])
def test_why_adds_up(bits: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"user^ad": "interaction"}
    features = sl.Names(fields) if bits is None else sl.Hashing(bits, fields)
    model = taught(sl.DualAveragingClassifier(features=features))
    path, event = str(tmp_path / "a.model"), tmp_path / "event.json"
    model.save(path)
    event.write_text(json.dumps({**EVENT, "new": "thing"}))
    why = shown(capsys, "inspect", path, "--why", str(event))
    assert why["prediction"] is True
    assert why["score"] == pytest.approx(model.score_one(EVENT))
    assert why["sum"] == pytest.approx(why["score"])
    assert why["probability"] == pytest.approx(model.predict_proba_one(EVENT)[True])
    other = {"user": "u1", "ad": "shoes", "hour": 1.0}
    event.write_text(json.dumps(other))
    against = shown(capsys, "inspect", path, "--why", str(event))
    assert against["prediction"] is False
    assert against["probability"] == pytest.approx(model.predict_proba_one(other)[True])
    assert main(["inspect", path, "--why", str(event)]) == 0
    plain = capsys.readouterr().out
    assert all(row["feature"] in plain for row in against["contributions"])
    assert "clips" not in plain
    adds = {row["feature"]: row["adds"] for row in why["contributions"]}
    assert set(adds) == {
        *("user=ann", "ad=shoes", "hour", "new=thing", "user=ann^ad=shoes", "(intercept)")
    }
    assert adds["new=thing"] == 0.0


def test_why_says_that_scores_are_clipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, event = sl.LinearRegressor(), tmp_path / "event.json"
    for k in range(50):
        model.learn_one({"x": float(k % 5)}, float(k % 5))
    model.save(tmp_path / "a.model")
    event.write_text('{"x": 4000}')
    why = shown(capsys, "inspect", str(tmp_path / "a.model"), "--why", str(event))
    assert why["score"] <= 4.0 < why["sum"]
    assert main(["inspect", str(tmp_path / "a.model"), "--why", str(event)]) == 0
    assert "clips" in capsys.readouterr().out


def test_why_of_one_label_has_no_probability(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, event = str(tmp_path / "a.model"), tmp_path / "event.json"
    event.write_text('{"x": 1}')
    for labels, known in ((["a"], False), (["a", "b"], True)):
        model = sl.LinearClassifier()
        for label in labels * 3:
            model.learn_one({"x": 1.0}, label)
        model.save(path)
        why = shown(capsys, "inspect", path, "--why", str(event))
        assert any(name.startswith("probabilit") for name in why) == known


def test_why_of_several_classes_explains_the_one_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = sl.LinearClassifier()
    for k in range(90):
        model.learn_one({"word": "abc"[k % 3]}, "xyz"[k % 3])
    model.save(tmp_path / "a.model")
    (tmp_path / "e.json").write_text('{"word": "b"}')
    why = shown(capsys, "inspect", str(tmp_path / "a.model"), "--why", str(tmp_path / "e.json"))
    assert why["prediction"] == "y"
    assert why["score"] == pytest.approx(model.score_one({"word": "b"})["y"])


def test_why_reads_an_event_as_the_model_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, saved, event = tmp_path / "a.csv", str(tmp_path / "m"), tmp_path / "e.json"
    rows = "".join(f"{i:03d},{i % 3 * 111},{i % 5},{int(i % 3 == 0)}\n" for i in range(300))
    data.write_text(f"id,zip,x,y\n{rows}")
    given = ["--label", "y", "--field", "id=ignore", "--field", "zip=category", "--hash", "12"]
    given.append("--no-guess")
    assert main(["train", str(data), *given, "--save", saved]) == 0
    data.write_text("zip,x\n222,3\n")
    capsys.readouterr()
    assert main(["predict", saved, str(data), "--json"]) == 0
    score = json.loads(capsys.readouterr().out)["score"]
    # the label and what is excluded are no features, by whatever slot their names have
    for zip_, x in ((222, 3), ("222", "3")):
        event.write_text(json.dumps({"id": "001", "zip": zip_, "x": x, "y": 1}))
        why = shown(capsys, "inspect", saved, "--why", str(event))
        assert why["score"] == pytest.approx(score)
        found = {row["feature"]: row["weight"] for row in why["contributions"]}
        assert found.keys() == {"zip=222", "x", "(intercept)"}
        assert found["zip=222"] != 0.0


def test_why_knows_features_that_are_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, saved, event = tmp_path / "a.svm", str(tmp_path / "m"), tmp_path / "e.json"
    data.write_text("1 1:1 7:2\n-1 1:1 9:1\n" * 20)
    assert main(["train", str(data), "--save", saved]) == 0
    capsys.readouterr()
    event.write_text('{"7": 2}')
    why = shown(capsys, "inspect", saved, "--why", str(event))
    assert {row["feature"]: row["weight"] != 0.0 for row in why["contributions"]}["7"]


def test_why_there_is_no_bound_names_what_gives_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = taught(sl.LinearClassifier(sl.rules.DualAveraging(5.0)))
    model.save(tmp_path / "a.model")
    bound = shown(capsys, "inspect", str(tmp_path / "a.model"))["regret bound"]
    assert "regret_bound(u)" in bound
    assert model.regret_bound(1.0) is not None


@pytest.mark.parametrize("text", ["", "[1]", "{", "5", "[" * 100_000])
def test_what_is_no_event(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taught(sl.LinearClassifier()).save(tmp_path / "a.model")
    (tmp_path / "e.json").write_text(text)
    assert main(["inspect", str(tmp_path / "a.model"), "--why", str(tmp_path / "e.json")]) == 2
    assert "expected one event" in capsys.readouterr().err


# -- checkpoints ----------------------------------------------------------------------------------


def write(directory: Path, checkpoint_id: CheckpointId, models: dict[str, Any]) -> None:
    """A checkpoint as a daemon has it: the features once, each model without."""
    saved = {}
    for name, model in models.items():
        path = directory / "one.model"
        model.save(path)
        saved[name] = model_file.read(path)
        features = saved[name]["state"].pop("features")
        path.unlink()
    model_file.write(
        directory / checkpoint_id.name,
        {
            "checkpoint": checkpoints.LAYOUT,
            "features": {"state": features},
            "learners": {name: {"model": one} for name, one in saved.items()},
        },
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two checkpoints of an epoch whose owner is gone."""
    owner = Ownership(tmp_path)
    owner.acquire(lambda: None, wait=lambda: False)
    model = sl.DualAveragingClassifier(l1=0.001)
    for number in (1, 2):
        taught(model)
        write(tmp_path, checkpoints.CheckpointId(owner.epoch, number), {"sparse": model})
    owner.release()
    return tmp_path


def test_list(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "00000001-00000003.checkpoint").write_bytes(b"half")
    rows = shown(capsys, "models", "list", str(directory))
    assert [row["checkpoint"] for row in rows] == ["1-3", "1-2", "1-1"]
    assert [row["steps"] for row in rows] == [None, 200, 100]
    assert "damaged" in rows[0]["non-zeros"]
    assert [row["valid"] for row in rows] == [False, True, True]


def test_diff(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "models", "diff", str(directory))
    assert (found["old"], found["new"]) == ("1-1", "1-2")
    assert found["learners"]["sparse"]["summary"].startswith("+100 steps")
    rows = found["learners"]["sparse"]["weights"]
    moves = [abs(row["new"] - row["old"]) for row in rows]
    assert moves == sorted(moves, reverse=True)
    assert min(moves) > 0.0
    same = shown(capsys, "models", "diff", str(directory), "1-2", "1-2")
    assert same["learners"]["sparse"]["weights"] == []
    assert main(["models", "diff", str(directory), "--learner", "x"]) == 2
    assert main(["models", "diff", str(directory), "1-1"]) == 2
    assert main(["models", "diff", str(directory), "1-1", "1-9"]) == 2
    assert "valid: 1-2, 1-1" in capsys.readouterr().err


def test_diff_prints_each_learner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several = sl.LinearClassifier(sl.rules.AdaGrad(), sl.losses.Softmax())
    kept = taught(sl.DualAveragingClassifier(l1=0.001))
    for learners in ({"old": kept, "both": several}, {"both": several, "new": kept}):
        several.learn_one(EVENT, str(len(list(tmp_path.iterdir()))))
        number = 1 + len(list(tmp_path.iterdir()))
        write(tmp_path, checkpoints.CheckpointId(1, number), learners)
    learners = shown(capsys, "models", "diff", str(tmp_path))["learners"]
    assert learners["old"] == {"summary": "removed", "weights": []}
    assert learners["new"] == {"summary": "added", "weights": []}
    assert learners["both"]["summary"].startswith("+1 step")
    names = [row["feature"] for row in learners["both"]["weights"]]
    assert {"0: hour", "1: hour"} <= set(names)  # the weight of each class by its name
    assert main(["models", "diff", str(tmp_path), "--learner", "both"]) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("both, 1-1 to 1-2: ")
    assert all(name in plain for name in names)
    assert "old, " not in plain
    (tmp_path / checkpoints.CheckpointId(1, 1).name).unlink()
    assert main(["models", "diff", str(tmp_path)]) == 2


def test_diff_shows_what_moved_and_only_that(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = iter([{"a": 1.0, "b": 2.0, "d": 5.0}, {"b": 2.0, "c": 1.0, "d": 4.5}])

    def revived(*_: object) -> Any:
        return SimpleNamespace(weights=next(weights), steps=7)

    monkeypatch.setattr(models, "revive", revived)
    found = shown(capsys, "models", "diff", str(directory))["learners"]["sparse"]
    assert sorted(found["weights"], key=lambda row: row["feature"]) == [
        {"feature": "a", "old": 1.0, "new": 0.0},
        {"feature": "c", "old": 0.0, "new": 1.0},
        {"feature": "d", "old": 5.0, "new": 4.5},
    ]
    assert found["weights"][-1]["feature"] == "d"  # the smallest move


def test_a_checkpoint_of_a_newer_version_is_listed(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LAYOUT", checkpoints.LAYOUT - 1)
    rows = shown(capsys, "models", "list", str(directory))
    assert [row["steps"] for row in rows] == [None, None]
    assert not any("damaged" in row["non-zeros"] for row in rows)


def test_rollback_makes_an_older_one_count(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "rollback", str(directory), "1-1"]) == 0
    found = checkpoints.newest(directory)
    assert found is not None
    assert found[0] == checkpoints.CheckpointId(1, 1)
    capsys.readouterr()
    rows = shown(capsys, "models", "list", str(directory))
    assert [(row["checkpoint"], row["valid"]) for row in rows] == [("1-2", False), ("1-1", True)]
    # what was left behind is no place to go forward to
    assert main(["models", "rollback", str(directory), "1-2"]) == 2
    assert "1-2 was written by a fenced daemon" in capsys.readouterr().err


def test_rollback_is_refused_while_an_owner_lives(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = Ownership(directory)
    owner.acquire(lambda: checkpoints.newest(directory), wait=lambda: False)
    try:
        assert main(["models", "rollback", str(directory), "1-1"]) == Exit.OWNED
        said = capsys.readouterr().err
        assert "is owned by" in said
        assert "standby" not in said  # a setting of the daemon
        owner.check()
    finally:
        owner.release()
    found = checkpoints.newest(directory)
    assert found is not None
    assert found[0] == checkpoints.CheckpointId(1, 2)


def test_rollback_to_what_is_damaged_is_refused(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / checkpoints.CheckpointId(1, 1).name).write_bytes(b"half")
    assert main(["models", "rollback", str(directory), "1-1"]) == 2
    assert checkpoints.CheckpointId(1, 1).name in capsys.readouterr().err
    assert main(["models", "rollback", str(directory)]) == 2
