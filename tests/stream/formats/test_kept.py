"""Subsampled negatives: each one weighs 1 / kept, in every format and for every learner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.config import ConfigError
from streamlearn.stream import (
    CSVDecoder,
    Events,
    Fields,
    JSONDecoder,
    SVMLightDecoder,
    VWDecoder,
)

if TYPE_CHECKING:
    from pathlib import Path

    from streamlearn.core.arrays import Array

KEPT = 0.05
RECORDS: dict[str, tuple[Any, list[bytes]]] = {
    "json": (JSONDecoder, [b'{"w":2,"y":false,"a":1}', b'{"y":true,"a":1}', b'{"a":1}']),
    "json, label first": (JSONDecoder, [b'{"y":0,"a":1,"w":2}', b'{"y":1,"a":1}', b'{"a":1}']),
    "csv": (CSVDecoder, [b"w,y,a", b"2,-1,1", b",1,1", b",,1"]),
    "svmlight": (SVMLightDecoder, [b"-1 3:1", b"1 3:1"]),
    "vw": (VWDecoder, [b"-1 2.0 | a", b"1 | a", b"| a"]),
}


def decoded(decoder: Any, records: list[bytes], **fields: Any) -> Events:
    events = Events()
    given = Fields(label="y", weight="w", **fields)
    decoder(sl.Names(), given, [sl.LinearClassifier()]).decode(records, events)
    return events


@pytest.mark.parametrize("name", RECORDS)
def test_only_negatives_weigh_more(name: str) -> None:
    decoder, records = RECORDS[name]
    plain, weighted = decoded(decoder, records), decoded(decoder, records, kept=KEPT)
    assert not weighted.invalid
    negative = np.nan_to_num(plain.labels, nan=1.0) <= 0.0
    assert negative.sum() == 1
    assert (
        weighted.weights.tolist()
        == np.where(negative, plain.weights / KEPT, plain.weights).tolist()
    )


@pytest.mark.parametrize("label", ['"no"', "2", "0.5", "9007199254740993"])
def test_a_label_that_is_neither_is_refused_before_its_names_are_kept(label: str) -> None:
    reader, events = sl.Names(), Events()
    decoder = JSONDecoder(reader, Fields(label="y", kept=KEPT), [sl.LinearClassifier()])
    decoder.decode([f'{{"new":1,"y":{label}}}'.encode()], events)
    ((_, field, _, reason),) = events.invalid
    assert field == "y"
    assert "positive" in reason
    assert reader.size == 0


def test_positive_says_which_are_negative() -> None:
    records = [b'{"y":"no","a":1}', b'{"y":"yes","a":1}']
    events = decoded(JSONDecoder, records, kept=KEPT, positive=("yes",))
    assert events.weights.tolist() == [1.0 / KEPT, 1.0]


@pytest.mark.parametrize("kept", [0.0, 1.5, -1.0])
def test_shares_are_checked(kept: float) -> None:
    with pytest.raises(ValueError, match="kept"):
        Fields(kept=kept)


@pytest.mark.parametrize(
    "more",
    [
        {"learner": [{"name": "a", "task": "regression"}]},
        {"labels": {"topic": "b"}, "format": {"label": "y", "id": "i", "kept": 0.5}},
    ],
)
def test_where_it_means_nothing_it_is_refused(more: dict[str, Any]) -> None:
    given = {
        "source": {"kind": "kafka", "bootstrap": "b:1", "topics": ["a", "b"]},
        "format": {"label": "y", "kept": 0.5},
    }
    with pytest.raises(ConfigError, match="kept"):
        config.parse("", "", {**given, **more}, environ={})


# -- a full stream, and what is left of it -------------------------------------------------------


def stream(n: int) -> tuple[Array, Array]:
    """Return events of which few are positive."""
    draw = np.random.default_rng(1)
    rows = np.eye(20)[draw.integers(20, size=n)] + np.eye(20)[draw.integers(20, size=n)]
    truth = draw.normal(0.0, 1.0, 20)
    return rows, draw.random(n) < 1.0 / (1.0 + np.exp(4.0 - rows @ truth))


def write(path: Path, rows: Array, labels: Array) -> str:
    with path.open("w") as file:
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            event = {f"f{k}": x for k, x in enumerate(row) if x} | {"y": label}
            file.write(json.dumps(event) + "\n")
    return str(path)


def test_what_is_learned_is_the_full_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, labels = stream(60_000)
    half = 40_000
    some = labels[:half] | (np.random.default_rng(2).random(half) < 0.2)
    full = write(tmp_path / "full.jsonl", rows[:half], labels[:half])
    left = write(tmp_path / "left.jsonl", rows[:half][some], labels[:half][some])
    held = write(tmp_path / "held.jsonl", rows[half:], labels[half:])
    models = {name: str(tmp_path / name) for name in ("full", "kept", "plain")}

    def run(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    train = ("train", "--label", "y", "--save")
    progressive = run(*train, models["full"], full)
    weighted = run(*train, models["kept"], left, "--kept", "0.2")
    run(*train, models["plain"], left)
    # the progressive loss and that of the constant are those of the full stream
    for name in ("loss", "constant's loss"):
        assert weighted[name] == pytest.approx(progressive[name], rel=0.02)
    assert weighted["calibration ratio"] == pytest.approx(1.0, abs=0.03)
    # so is a test on a subsample, which remembers the share
    tests = [run("test", models[name], file) for name, file in (("kept", left), ("full", full))]
    for name in ("loss", "calibration ratio"):
        assert tests[0][name] == pytest.approx(tests[1][name], rel=0.08)
    tested = {
        name: run("test", model, held, *(("--kept", "1") if name == "kept" else ()))
        for name, model in models.items()
    }
    assert tested["kept"]["loss"] < 1.01 * tested["full"]["loss"]
    ratios = {name: one["calibration ratio"] for name, one in tested.items()}
    assert ratios["kept"] == pytest.approx(ratios["full"], abs=0.08)
    assert ratios["plain"] > 3.0
    learned = {name: sl.LinearClassifier.load(model).weights for name, model in models.items()}
    names = sorted(learned["full"])
    w, u = (np.array([learned[name][one] for one in names]) for name in ("full", "kept"))
    assert np.corrcoef(w, u)[0, 1] > 0.95
