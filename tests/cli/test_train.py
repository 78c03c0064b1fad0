"""train and predict: what they print and save is what the library computes, line by line."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import streamlearn as sl
from streamlearn import config
from streamlearn.cli.main import main
from streamlearn.daemon import build
from streamlearn.daemon.process.log import Log
from streamlearn.estimators import model_file
from streamlearn.stream import Clicks, Files
from streamlearn.stream.sources import file
from tests.support import zstandard

if TYPE_CHECKING:
    from pathlib import Path

N = 1500
SPARSE = ["--rule", "AdaGradDualAveraging(0.3)", "--penalty", "L1(1e-3)", "--no-guess"]


def sparse() -> sl.LinearClassifier:
    return sl.LinearClassifier(sl.rules.AdaGradDualAveraging(0.3), penalty=sl.penalties.L1(1e-3))


def values(n: int = N, start: int = 0, kind: str = "clicks") -> list[bytes]:
    return Clicks(kind, 2).values(start, n)


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.jsonl"
    path.write_bytes(b"\n".join(values()) + b"\n")
    return path


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["train", *arguments, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def by_hand(model: Any, events: list[bytes], label: str = "clicked") -> list[float]:
    """The losses of events, each before it was learned, one by one."""
    found = []
    for line in events:
        event = json.loads(line)
        y = event.pop(label)
        sign = float(y) if isinstance(model, sl.LinearRegressor) else (1.0 if y else -1.0)
        found.append(float(model.objective.loss.value(model.score_one(event), sign)))
        model.learn_one(event, y)
    return found


def same(one: Any, other: Any) -> bool:
    return model_file.pack(one.state()) == model_file.pack(other.state())


def test_it_learns_what_the_library_learns(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "a.model"
    facts = trained(capsys, str(clicks), "--label", "clicked", *SPARSE, "--save", str(saved))
    model = sparse()
    losses = by_hand(model, values())
    assert facts["events"] == facts["learned"] == N
    assert facts["loss"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert same(sl.LinearClassifier.load(saved), model)
    points = [point["events"] for point in facts["history"]]
    assert points == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, N]
    for point in facts["history"]:
        assert point["loss"] == pytest.approx(np.mean(losses[: point["events"]]))


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spending.ndjson"
    path.write_bytes(b"\n".join(values(kind="spending")))
    facts = trained(capsys, str(path), "--label", "spent", "--regression", "--no-guess")
    losses = by_hand(sl.LinearRegressor(), values(kind="spending"), "spent")
    assert facts["loss"] == pytest.approx(np.mean(losses), rel=1e-9)
    assert facts["RMSE"] ** 2 == pytest.approx(2.0 * facts["loss"])


def test_resumed_is_uninterrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for k, part in enumerate(parts):
        part.write_bytes(b"\n".join(values(500, 500 * k)))
    one, two = str(tmp_path / "1.model"), str(tmp_path / "2.model")
    trained(capsys, str(tmp_path / "*.jsonl"), "--label", "clicked", *SPARSE, "--save", one)
    trained(capsys, str(parts[0]), "--label", "clicked", *SPARSE, "--save", two)
    # how events are read is remembered
    trained(capsys, str(parts[1]), "--resume", two, "--save", two)
    assert same(sl.LinearClassifier.load(one), sl.LinearClassifier.load(two))
    assert main(["inspect", two]) == 0
    assert "made by" in capsys.readouterr().out


def test_passes(clicks: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "a.model"
    given = [str(clicks), "--label", "clicked", *SPARSE, "--passes", "2", "--save", str(saved)]
    facts = trained(capsys, *given)
    model = sparse()
    first = by_hand(model, values())
    second = by_hand(model, values())
    assert facts["loss"] == pytest.approx(np.mean(first))
    assert facts["loss of the last pass"] == pytest.approx(np.mean(second))
    assert same(sl.LinearClassifier.load(saved), model)
    assert main(["train", *given]) == 0
    assert "pass 2: the loss is now that of events learned before" in capsys.readouterr().out


def packed(path: Path, data: bytes, kind: str) -> Path:
    if kind == "gz":
        data = gzip.compress(data[:999]) + gzip.compress(data[999:])
    elif kind == "zst":
        data = zstandard.compress(data[:999]) + zstandard.compress(data[999:])
    elif kind == "crlf":
        data = data.replace(b"\n", b"\r\n") + b"\r\n\n \n"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["plain", "gz", "zst", "crlf"])
def test_however_a_file_is_packed(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "BLOCK", 1000)
    name = "a.jsonl" if kind in {"plain", "crlf"} else f"a.jsonl.{kind.upper()}"
    path = packed(tmp_path / name, b"\n".join(values(300)), kind)
    facts = trained(capsys, str(path), "--label", "clicked", "--no-guess")
    assert facts["events"] == 300
    assert facts["loss"] == pytest.approx(np.mean(by_hand(sl.LinearClassifier(), values(300))))


def test_standard_input(clicks: Path) -> None:
    options = ["--format", "json", "--label", "clicked", "--json"]
    command = [sys.executable, "-m", "streamlearn", "train", "-", *options]
    run = subprocess.run(command, input=clicks.read_bytes(), capture_output=True, check=True)
    assert json.loads(run.stdout)["events"] == N


def test_bad_lines_are_named_and_refused_or_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = values(20)
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join([*good[:9], b"", b'{"clicked": tru', *good[9:], b'{"x":1e999}']))
    arguments = ["train", str(path), "--label", "clicked", "--no-guess"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"{path}:11: " in said
    assert "--on-invalid skip" in said
    assert main([*arguments, "--on-invalid", "skip", "--save", str(tmp_path / "m")]) == 0
    out, err = capsys.readouterr()
    assert " invalid 2 " in " ".join(out.split())
    assert f"invalid: {path}:11: " in err
    assert f"invalid: {path}:23: " in err
    model = sl.LinearClassifier()
    by_hand(model, good)
    assert same(sl.LinearClassifier.load(tmp_path / "m"), model)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl", "--label", "y"], "none.jsonl"),
        (["."], "is a directory"),
        (["*.nothing", "--format", "json", "--label", "y"], "no file matches"),
        (["a.jsonl"], "--label: missing"),
        (["a.jsonl", "b.csv", "--label", "y"], "--format json|svmlight|vw|csv|parquet"),
        (["-", "--format", "json", "--label", "y", "--passes", "2"], "--passes 1"),
        (["-", "a.jsonl", "--format", "json"], "standard input (-)"),
        (["a.jsonl", "--label", "y", "--rule", "Pegaso"], "did you mean Pegasos?"),
        (["a.jsonl", "--label", "y", "--rule", "Pegasos"], "use L2(strength > 0)"),
        (["a.jsonl", "--label", "y", "--model", "LinearRegressor"], "--model"),
        (["a.jsonl", "--label", "y", "--hash", "77"], "--hash: expected an integer"),
        (["a.jsonl", "--label", "y", "--field", "y=text"], "--field"),
        (["a.jsonl", "--label", "y", "--progress", "1.0"], "--progress"),
        (["a.jsonl", "--resume", "m", "--rule", "Pegasos"], "--rule cannot be used with --resume"),
        (["a.jsonl", "--label", "y", "--passes", "0"], "--passes"),
        (["a.jsonl", "--labl", "y"], "did you mean --label?"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["train", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    err = capsys.readouterr().err
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_a_file_of_one_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"clicked":1}')
    facts = trained(capsys, str(path), "--label", "clicked", "--save", str(tmp_path / "m"))
    assert facts["learned"] == 1
    assert main(["train", str(path), "--label", "clicked"]) == 0
    assert main(["predict", str(tmp_path / "m"), str(path)]) == 0
    path.write_bytes(b"")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), str(path)]) == 0  # nothing was asked
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b"{\n"])
def test_without_an_event_nothing_is_saved(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    saved = tmp_path / "m"
    command = ["train", str(path), "--label", "y", "--on-invalid", "skip", "--save", str(saved)]
    assert main(command) == 2
    assert f"{path}: no events" in capsys.readouterr().err
    assert not saved.exists()


@pytest.mark.parametrize("data", [b"{}\n", b'{"clicked":null}\n{"clickd":1}'])
def test_without_a_label_nothing_is_saved(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    options = ["--label", "clicked", "--save", str(tmp_path / "m")]
    assert main(["train", str(path), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""  # no table is begun
    assert "'clicked'" in err
    assert "--label" in err
    assert not (tmp_path / "m").exists()


def test_an_error_names_only_options_that_were_given(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, other = str(tmp_path / "m"), tmp_path / "b.jsonl"
    options = ["--label", "clicked", "--labels", "false,true"]
    assert main(["train", str(clicks), *options, "--save", saved]) == 0
    other.write_bytes(b"{}\n")
    capsys.readouterr()
    assert main(["train", str(other), "--resume", saved]) == 2
    assert "'clicked'" in capsys.readouterr().err
    assert main(["predict", saved, str(clicks), "--positive", "2"]) == 2
    assert "--positive: not" in capsys.readouterr().err
    options += ["--positive", "true"]
    assert main(["train", str(clicks), *options, "--save", saved]) == 0
    capsys.readouterr()
    assert main(["predict", saved, str(clicks), "--labels", "no,yes"]) == 2
    assert "--positive of the saved model: not" in capsys.readouterr().err


def test_where_a_model_cannot_be_saved_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"clicked":1}\n' * 10)
    for place in (tmp_path, tmp_path / "no" / "m"):
        assert main(["train", str(path), "--label", "clicked", "--save", str(place)]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("streamlearn train: --save: ")
        assert not told.out


def test_progress_of_packed_files_is_of_the_bytes_on_the_disk(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    plain.write_bytes(b"line\n" * 1000)
    packed.write_bytes(gzip.compress(b"line\n" * 1000))
    source = Files([plain, packed], batch=600)
    source.open({}, None)
    total = plain.stat().st_size + packed.stat().st_size
    assert source.progress() == (0, total)
    seen = []
    while source.poll(0.0):
        seen.append(source.progress())
    assert seen == sorted(seen)
    assert seen[0] == (plain.stat().st_size, total)
    assert source.progress() == (total, total)
    assert source.ended()


def test_what_the_columns_of_a_csv_were_taken_for_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,city,label\n1,ann arbor,0\n2.5,,1\n", encoding="utf-8")
    assert main(["train", str(path), "--label", "label"]) == 0
    assert " x: numbers, city: text, label: numbers\n" in capsys.readouterr().out


def test_a_csv_whose_values_have_line_breaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text('x,label\n1,0\n"2\n3",1\n4,0\n"5,1\n6,1\n')
    command = ["train", str(path), "--label", "label"]
    assert main(command) == 2
    assert f"{path}:6: " in capsys.readouterr().err
    facts = trained(capsys, str(path), "--label", "label", "--on-invalid", "skip")
    assert (facts["events"], facts["invalid"]) == (4, 1)
    assert facts["columns"]["x"] == "text"


def test_a_csv_to_predict_needs_no_label_and_is_read_as_the_one_that_was_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, saved = tmp_path / "a.csv", str(tmp_path / "m")
    # the last line tells that zip is text
    rows = [(f"{i % 3 * 111}", i % 3 == 0, 1 + i % 2) for i in range(300)] + [("K9", True, 1)]
    learned.write_text("zip,y,w\n" + "".join(f"{a},{int(b)},{w}\n" for a, b, w in rows))
    assert main(["train", str(learned), "--label", "y", "--weight", "w", "--save", saved]) == 0
    capsys.readouterr()
    model = sl.LinearClassifier.load(saved)
    assert sorted(model.weights) == ["zip=0", "zip=111", "zip=222", "zip=K9"]
    unseen = tmp_path / "b.csv"
    unseen.write_text("zip\n0\n111\n")
    assert main(["predict", saved, str(unseen)]) == 0
    assert capsys.readouterr().out == "1\n0\n"
    model.save(saved)  # by the library, which knows nothing of a label's name
    unseen.write_text("zip\nK9\n111\n")
    assert main(["predict", saved, str(unseen)]) == 0
    assert capsys.readouterr().out == "1\n0\n"


def test_what_the_model_left_out_may_be_the_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / "a.jsonl", str(tmp_path / "m")
    path.write_text("".join(f'{{"id":"e{i}","x":{i % 7},"y":{i % 2}}}\n' for i in range(50)))
    assert (
        main(["train", str(path), "--label", "y", "--field", "id,z=ignore", "--save", saved]) == 0
    )
    capsys.readouterr()
    found = []
    for options in ([], ["--id", "id"]):
        assert main(["predict", saved, str(path), "--json", *options]) == 0
        found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    assert [one["id"] for one in found[1]] == [f"e{i}" for i in range(50)]
    assert [one["score"] for one in found[0]] == [one["score"] for one in found[1]]


@pytest.mark.parametrize("others", ["auto", "ignore"])
def test_a_column_that_is_no_feature_may_be_missing_when_predicting(
    others: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, unseen, saved = tmp_path / "a.csv", tmp_path / "b.csv", str(tmp_path / "m")
    rows = "".join(f"{i:03d},{i % 3 * 111},{i % 5},{int(i % 3 == 0)}\n" for i in range(300))
    learned.write_text(f"id,zip,x,y\n{rows}")
    fields = ["id=ignore", "zip=category", "x=number", f"*={others}"]
    given = ["--label", "y", *[one for text in fields for one in ("--field", text)]]
    given += ["--save", saved]
    assert main(["train", str(learned), *given]) == 0
    unseen.write_text("zip,x\n0,1\n111,1\n")
    capsys.readouterr()
    assert main(["predict", saved, str(unseen)]) == 0
    assert capsys.readouterr().out == "1\n0\n"
    # a feature is still asked for, and so is all when learning
    unseen.write_text("x\n1\n")
    assert main(["predict", saved, str(unseen)]) == 2
    assert "no column 'zip'" in capsys.readouterr().err
    learned.write_text("zip,x,y\n0,1,1\n")
    assert main(["train", str(learned), *given]) == 2
    assert "no column 'id'" in capsys.readouterr().err


def test_a_daemons_checkpoint_knows_which_columns_are_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learned, unseen, kept = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "kept"
    rows = "".join(f"{i % 3 * 111},{int(i % 3 == 0)}\n" for i in range(300))
    learned.write_text(f"zip,y\n{rows}K9,1\n")
    given = {
        "source.kind": "file",
        "source.paths": [str(learned)],
        "format.kind": "csv",
        "format.label": "y",
        "checkpoint.path": str(kept),
        "run.until": "end",
    }
    assert build.loop(config.parse("", overrides=given), Log(level="error")).run() == 0
    unseen.write_text("zip\n0\n111\n")
    capsys.readouterr()
    assert main(["predict", str(kept), str(unseen)]) == 0
    assert capsys.readouterr().out == "1\n0\n"


def test_a_csv_that_goes_on_has_columns_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, saved = tmp_path / "a.csv", tmp_path / "b.csv", str(tmp_path / "m")
    first.write_text("zip,y\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(30)) + "K9,1\n")
    second.write_text("new,y,zip\n" + "".join(f"{i},{i % 2},{i % 3}\n" for i in range(30)))
    assert main(["train", str(first), "--label", "y", "--save", saved]) == 0
    capsys.readouterr()
    facts = trained(capsys, str(second), "--resume", saved, "--save", saved)
    assert facts["columns"] == {"y": "numbers", "new": "numbers"}  # zip was guessed
    lines = tmp_path / "c.jsonl"
    lines.write_text('{"zip": "1", "y": 1}\n')
    assert trained(capsys, str(lines), "--resume", saved, "--save", saved)["learned"] == 1
    assert trained(capsys, str(first), "--resume", saved)["learned"] == 31
    assert sorted(sl.LinearClassifier.load(saved).weights) == [
        *("new", "zip=0", "zip=1", "zip=2", "zip=K9"),
    ]


def test_columns_of_text_that_the_first_lines_do_not_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip\ty\n" + "".join(f"{i % 3}\t{i % 2}\n" for i in range(1500)) + "K9\t1\n")
    arguments = ["train", str(path), "--label", "y", "--delimiter", r"\t", "--no-guess"]
    assert main(arguments) == 2
    assert "--field" in capsys.readouterr().err
    facts = trained(capsys, *arguments[1:], "--field", "zip=category")
    assert facts["columns"] == {"y": "numbers"}
    assert facts["events"] == 1501


@pytest.mark.parametrize(("rows", "kind"), [(998, "text"), (999, "numbers")])
def test_evaluate_takes_columns_for_what_train_does(
    rows: int, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip,y\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(rows)) + "K9,1\n")
    given = [str(path), "--label", "y", "--on-invalid", "skip", "--no-guess"]
    facts = trained(capsys, *given)
    assert facts["columns"]["zip"] == kind
    command = ["evaluate", *given, "--seconds", "1"]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == facts["events"]


def test_what_a_csv_is_taken_for_does_not_depend_on_when_its_lines_come() -> None:
    options = ["--format", "csv", "--label", "y", "--json"]
    command = [sys.executable, "-m", "streamlearn", "train", "-", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        for block in (b"a,y\n1,1\n", b"x,0\n2,1\n"):
            run.stdin.write(block)
            run.stdin.flush()
            time.sleep(0.6)
        run.stdin.close()
        assert json.loads(run.stdout.read())["columns"] == {"a": "text", "y": "numbers"}


def test_numbers_that_are_learned_as_classes_are_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,price\n" + "".join(f"{i % 7},{i % 60 + 0.5}\n" for i in range(300)))
    for option, asked in (([], False), (["--regression"], False), (["--no-guess"], True)):
        assert main(["train", str(path), "--label", "price", "--json", *option]) == 0
        assert ("--regression" in capsys.readouterr().err) == asked
    path.write_text("x,word\n" + "".join(f"{i % 7},w{i % 60}\n" for i in range(300)))
    assert main(["train", str(path), "--label", "word"]) == 0
    assert capsys.readouterr().err == ""


def test_interrupted_it_saves_what_it_has(tmp_path: Path) -> None:
    saved = tmp_path / "a.model"
    options = ["--format", "json", "--label", "clicked", "--no-guess", "--save", str(saved)]
    command = [sys.executable, "-m", "streamlearn", "train", "-", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(b"\n".join(values(5000)) + b"\n")
        run.stdin.flush()
        while b" 512 " not in run.stdout.readline():
            pass
        os.kill(run.pid, signal.SIGINT)
        run.stdout.read()
        assert b"interrupted" in run.stderr.read()
        assert run.wait(30) == 130
    assert sl.LinearClassifier.load(saved).steps >= 512


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("rows", [0, 300])
def test_interrupted_while_the_first_rows_are_gathered(
    rows: int, kind: str, tmp_path: Path
) -> None:
    saved = tmp_path / "a.model"
    lines = values(rows)
    if kind == "csv":  # its first lines are held back until there are 1,000
        lines = [b"x,clicked", *[b"%d,%d" % (n % 9, n % 2) for n in range(rows)]] if rows else []
    text = b"\n".join([*lines, b'7,"part of a li'])
    program = f"""
import sys
from streamlearn.cli.main import main
from streamlearn.stream.sources.stdin import StandardInput
poll = StandardInput.poll
def noted(source, seconds):
    if source._lines.read >= {len(text)}:  # and what came of it was returned
        sys.stderr.write("gathering\\n")
        sys.stderr.flush()
    return poll(source, seconds)
StandardInput.poll = noted
sys.exit(main(sys.argv[1:]))
"""
    options = ["--format", kind, "--label", "clicked", "--save", str(saved)]
    with subprocess.Popen(
        [sys.executable, "-c", program, "train", "-", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(text)
        run.stdin.flush()
        while b"gathering" not in run.stderr.readline():
            pass
        os.kill(run.pid, signal.SIGINT)
        said = run.stdout.read()
        warned = run.stderr.read()
        assert run.wait(30) == 130
    assert b"interrupted" in warned
    if rows:
        assert b"guessed" in said
        assert sl.LinearClassifier.load(saved).steps == rows
    else:
        assert b"nothing was learned" in warned
        assert not saved.exists()


# -- predict --------------------------------------------------------------------------------------


@pytest.fixture
def model(clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "a.model")
    trained(capsys, str(clicks), "--label", "clicked", *SPARSE, "--save", path)
    return path


def test_predictions_are_the_librarys_and_nothing_is_learned(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tmp_path / "a.model").read_bytes()
    path = tmp_path / "new.jsonl"
    path.write_bytes(b"\n".join(values(200, 5000)))
    assert main(["predict", model, str(path), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    known = sl.LinearClassifier.load(model)
    assert len(found) == 200
    for line, told in zip(values(200, 5000), found, strict=True):
        event = json.loads(line)
        event.pop("clicked")
        assert told["prediction"] == known.predict_one(event)
        assert told["score"] == pytest.approx(known.score_one(event))
        assert told["probability"] == pytest.approx(known.predict_proba_one(event)[True])
    assert main(["predict", model, str(path), "--probability"]) == 0
    plain = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in plain] == [str(told["prediction"]) for told in found]
    assert (tmp_path / "a.model").read_bytes() == before


def test_a_line_for_each_line(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.jsonl"
    path.write_bytes(b'{"user":"u1"}\n{bad\n{}\n')
    assert main(["predict", model, str(path)]) == 2
    assert f"{path}:2: " in capsys.readouterr().err
    assert main(["predict", model, str(path), "--on-invalid", "skip"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert out.splitlines()[1] == ""
    assert f"invalid: {path}:2: " in err


def test_a_damaged_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 9999)[:60])
    assert main(["train", str(path), "--label", "y"]) == 2
    assert "a.jsonl.gz cannot be read further" in capsys.readouterr().err


FORMATS = {
    "a.svm": [b"1 1:1.0 3:0.5", b"-1 2:1.0", b"1 1:0.3"],
    "a.vw": [b"1 2.0 tag|u ann:0.5 |a shoes", b"-1 |u bob |a books", b"1 |u ann"],
    "a.csv": [b"user,price,y", b"ann,1.5,yes", b"bob,2.5,no", b"ann,1.0,yes"],
    "a.tsv": [b"user\tprice\ty", b"ann\t1.5\tyes", b"bob\t2.5\tno", b"ann\t1.0\tyes"],
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_known_by_the_files_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, saved = tmp_path / name, str(tmp_path / "m")
    path.write_bytes(b"\n".join(FORMATS[name]) + b"\n")
    label = ["--label", "y"] if name.endswith("sv") else []
    facts = trained(capsys, str(path), *label, "--save", saved)
    assert facts["learned"] == 3
    header = FORMATS[name][:1] if name.endswith("sv") else []
    path.write_bytes(b"\n".join([*header, *FORMATS[name][-3:] * 10]) + b"\n")
    assert main(["predict", saved, str(path), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 30
    # nothing was learned on the way, whatever labels the file has
    assert [one["score"] for one in found] == [one["score"] for one in found[:3]] * 10
    assert found[0]["prediction"] == found[2]["prediction"] != found[1]["prediction"]


def test_why_no_line_could_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"{\n" * 7)
    for command in ("train", "evaluate"):
        assert main([command, str(path), "--label", "y", "--on-invalid", "skip"]) == 2
        said = capsys.readouterr().err
        assert f"invalid: {path}:1: " in said
        assert f"{path}: no events" in said


def test_a_file_that_is_read_is_not_written_over(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(clicks)
    before = clicks.read_bytes()
    for command in (["train", "--save", str(clicks)], ["train", "--save", str(link)]):
        assert main([*command, str(tmp_path / "*.jsonl"), "--label", "clicked"]) == 2
        assert f"--save: {command[2]}" in capsys.readouterr().err
    assert main(["evaluate", str(clicks), "--label", "clicked", "--png", str(clicks)]) == 2
    assert clicks.read_bytes() == before


def test_a_link_that_a_model_is_saved_to_stays_one(clicks: Path, tmp_path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "model-1")
    for _ in range(2):
        assert main(["train", str(clicks), "--label", "clicked", "--save", str(link)]) == 0
        assert link.is_symlink()
        assert sl.LinearClassifier.load(tmp_path / "model-1").nonzero


def test_a_link_that_cannot_be_written_through_is_refused_before_the_work(
    clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "latest"
    for to in (link, tmp_path / "none" / "model"):
        link.unlink(missing_ok=True)
        link.symlink_to(to)
        assert main(["train", str(clicks), "--label", "clicked", "--save", str(link)]) == 2
        said = capsys.readouterr()
        assert said.err.startswith("streamlearn train: --save: ")
        assert not said.out


def test_a_positive_label_that_never_comes_is_said(
    clicks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value, said in (("yes", True), ("true", False)):
        given = ["train", str(clicks), "--label", "clicked", "--positive", value]
        assert main(given) == 0
        assert ("--positive" in capsys.readouterr().err) == said


def test_a_pipe_that_a_model_is_saved_to_stays_one(clicks: Path, tmp_path: Path) -> None:
    """Nor is a device: a file of its name would take its place."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(["train", str(clicks), "--label", "clicked", "--save", str(pipe)]) == 0
    reader.join(20)
    assert pipe.is_fifo()
    assert model_file.unpack(read[0])


def test_a_table_that_does_not_fit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of many files, say which; also if none is guessed at."""
    path = tmp_path / "b.csv"
    for header in ("x,clicked", "x,x,y"):
        path.write_text(f"{header}\n1,2,3\n")
        for option in ([], ["--no-guess"]):
            assert main(["train", str(path), "--label", "y", *option]) == 2
            assert str(path) in capsys.readouterr().err
