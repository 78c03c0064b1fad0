"""What `serve` takes: a model file, snapshots, a daemon's directory, and a checkpoint alone."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from streamlearn.cli.actions import serve
from streamlearn.cli.main import main, parser
from streamlearn.daemon.process.log import Log
from streamlearn.serving import Snapshot
from tests.serving.conftest import model, publish
from tests.support.streams import ShuffledSource, make_loop

if TYPE_CHECKING:
    from pathlib import Path


def served(source: Path, temporary: Path, learner: str | None = None) -> Snapshot:
    """Return the snapshot that `serve` would use for this source."""
    temporary.mkdir()
    options = parser().parse_args(["serve", str(source)])
    return Snapshot(serve.resolve(options, temporary, temporary)[1].path, learner)


@pytest.mark.parametrize("kind", ["model", "snapshots", "directory"])
def test_each_source_predicts_as_the_model(kind: str, tmp_path: Path) -> None:
    made = model()
    source = tmp_path / "source"
    if kind == "model":
        made.save(source)
    elif kind == "snapshots":
        publish(source, made, 400)
    else:
        source.mkdir()
        publish(source / "serving", made, 400)
    event = {"user": "u1", "age": 3.0, "place": {"city": "c2"}}
    assert served(source, tmp_path / "temporary").score(event) == made.score_one(event)


def test_a_checkpoint_is_served_with_each_learner(tmp_path: Path) -> None:
    loop = make_loop(tmp_path / "models", ShuffledSource(3, 500), log=Log("json", "error"))
    loop.run()
    shutil.rmtree(tmp_path / "models" / "serving", ignore_errors=True)
    for learner in loop.pipeline.learners:
        found = served(tmp_path / "models", tmp_path / learner.name, learner.name)
        assert (found.version.epoch, found.version.events) == (1, learner.model.steps)
        for name in learner.model.feature_names()[:50]:
            assert found.score({name: 1.0}) == learner.model.score_one({name: 1.0})


def test_a_directory_with_neither_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path)]) == 2
    assert "neither snapshots nor a checkpoint" in capsys.readouterr().err
    options = parser().parse_args(["serve", str(tmp_path), "--set", "run.seed=1"])
    with pytest.raises(ValueError, match="--set"):
        serve.resolve(options, tmp_path, tmp_path)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_arms_of_a_configuration_without_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, checkpoint: bool
) -> None:
    text = '[source]\nkind = "synthetic"\n[[learner]]\nname = "one"\n'
    config = tmp_path / "streamlearn.toml"
    config.write_text(text + f'[checkpoint]\npath = "{tmp_path}"\n' * checkpoint)
    assert main(["serve", "arms", str(config)]) == 2
    expected = "has no checkpoint yet" if checkpoint else "no [checkpoint]"
    assert expected in capsys.readouterr().err
