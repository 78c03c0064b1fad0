"""The scenarios in config/: each is valid and learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import streamlearn as sl
from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.config import effective
from streamlearn.daemon import build
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.process.exits import Exit
from streamlearn.daemon.process.log import Log
from streamlearn.stream.polled import Polled

SCENARIOS = sorted(Path(__file__).resolve().parents[2].glob("config/*.toml"))


def test_scenarios_are_found() -> None:
    assert {path.stem for path in SCENARIOS} >= {"quickstart", "clicks", "spam", "regression"}


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_and_its_plan_are_valid(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "spending.jsonl").touch()
    monkeypatch.setenv("SPENDING", str(tmp_path / "spending.jsonl"))
    assert main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    (tmp_path / "plan.toml").write_text(shown)
    assert effective.plain(config.load(tmp_path / "plan.toml")) == effective.plain(
        config.load(path)
    )
    assert main(["check", str(path), "--json"]) == 0


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_starts_with_a_description(path: Path) -> None:
    assert path.read_text().startswith("# ")


# the synthetic stream that replaces each source
EVENTS = 10_000
STREAMS = {"spam": "spam", "regression": "spending", "delayed-labels": "delayed"}


def replacements(path: Path, directory: Path) -> dict[str, Any]:
    """Return overrides that replace Kafka and files with a synthetic stream."""
    read = config.load(path)
    stream = STREAMS.get(path.stem, "clicks")
    given: dict[str, Any] = {
        "source": {"kind": "synthetic", "stream": stream, "events": EVENTS, "seed": 3},
        "predictions.path": str(directory / "predictions.jsonl"),
        "dead_letters.path": str(directory / "dead.jsonl"),
        "telemetry.enabled": False,
        "log.level": "warning",
        "run.until": "end",
        "fleet.workers": 1,  # several share a topic
        "run.shutdown_seconds": 50.0,  # a busy machine's disk is slow
    }
    # None, which TOML does not have, removes a key
    given |= {"predictions.topic": None, "dead_letters.topic": None}
    if read.labels is not None:  # a thousand events per second, so that some time out
        given |= {"labels.topic": None, "labels.hold_for": 5.0}
        given["source"]["events"] = 8 * EVENTS  # clicks come first, so the start is learned wrong
    if read.checkpoint is not None:
        given["checkpoint.path"] = str(directory / "state")
    return given


def constant(settings: config.Config, model: Any) -> float:
    """Return the mean loss of the best constant score on the whole stream."""
    source = build.source(settings.source)
    reading = build.event_reader(settings, sl.Names(), [model])
    source.open({}, None)
    labels: list[Any] = []
    while not source.ended():
        if polled := source.poll(0.0):
            reading.read(Polled(polled))
            rows = np.flatnonzero(reading.weights)
            labels += [reading.rows.label_of(i) for i in rows.tolist()]
    first = labels[0]
    numbers = isinstance(model, sl.LinearRegressor)
    codes = np.array(labels if numbers else [1.0 if y == first else -1.0 for y in labels])

    def mean(score: float) -> float:
        return float(model.objective.loss.value(np.full(len(codes), score), codes).mean())

    return float(minimize_scalar(mean, bounds=(-20.0, 40.0), method="bounded").fun)


class Until(Observer):
    """Ends the run when the recent loss of the first learner is below a baseline."""

    def __init__(self, baseline: float) -> None:
        self.baseline = baseline
        self.loop: Any = None
        self.below = False
        self.learners: Any = None

    def on_start(self, learners: Any, status: Any) -> None:  # noqa: ARG002 - the seam's
        self.learners = learners

    def on_batch(self, batch: Any) -> None:  # noqa: ARG002 - the seam's
        first = next(iter(self.learners))
        if first.progress["loss"].recent < self.baseline and first.learned >= 2000:
            self.below = True
            self.loop.stop_requested.set()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_learns_to_beat_a_constant(path: Path, tmp_path: Path) -> None:
    settings = config.load(path, replacements(path, tmp_path))
    model = next(iter(config.estimators(settings).values()))
    watch = Until(constant(settings, model))
    loop = build.loop(settings, Log(level="warning"), observers=[watch])
    watch.loop = loop
    assert loop.run() == Exit.OK
    assert watch.below
    lines = (tmp_path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == loop.pipeline.counts.events
    assert "prediction" in json.loads(lines[-1])["value"]
    if settings.checkpoint is not None:
        assert main(["models", "list", settings.checkpoint.path]) == 0
        name = settings.learners[0].name
        assert main(["inspect", settings.checkpoint.path, "--learner", name]) == 0
