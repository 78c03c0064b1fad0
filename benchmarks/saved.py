"""What it costs to test, report, export and calibrate a model, relative to training it.

python -m benchmarks.saved [--events N] [--rounds N]

One run, in one process: a click stream of JSON records with 12 fields. The commands read the same
file; scikit-learn computes the numbers of `test` from scores and labels in memory; exported models
score the same events as the model does.
"""

import argparse
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import joblib
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import streamlearn as sl
from benchmarks.report import Run, alternate, table, unprepared
from streamlearn.cli.main import main as command
from streamlearn.export import expression
from streamlearn.stream import Clicks
from streamlearn.stream.sources.synthetic import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn.core.arrays import Array

SCORED = 20_000  # events that exported models score


def quietly(*words: str) -> Run:
    """Return a command without its output."""

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            if command(list(words)) != 0:
                raise SystemExit(f"{words} failed")

    return run


def numbers(labels: "Array", scores: "Array") -> Run:
    """Return what computes the numbers of `test` with scikit-learn."""
    shares = 1.0 / (1.0 + np.exp(-scores))

    def run() -> None:
        log_loss(labels, shares)
        roc_auc_score(labels, scores)
        accuracy_score(labels, scores > 0.0)
        calibration_curve(labels, shares, n_bins=15, strategy="quantile")

    return run


def commands(events: int, rounds: int, directory: Path) -> list[list[str]]:
    """Return the rows of commands on files."""
    path, model, page = (str(directory / name) for name in ("a.jsonl", "a.model", "a.html"))
    write(path, Clicks("clicks", 1), events)
    train = ("train", path, "--label", "clicked", "--no-guess")
    quietly(*train, "--save", model)()
    draw = np.random.default_rng(0)
    scores = draw.normal(size=events)
    labels = draw.random(events) < 1.0 / (1.0 + np.exp(-scores))
    sides: dict[str, Callable[[], Run]] = {
        "`train`": lambda: quietly(*train),
        "`train --calibrated`": lambda: quietly(*train, "--calibrated"),
        "`test`": lambda: quietly("test", model, path),
        "`test --report`": lambda: quietly("test", model, path, "--report", page),
        "the numbers of `test` in scikit-learn, scores in memory": lambda: numbers(labels, scores),
    }
    found = alternate(sides, rounds)
    base = found["`train`"]
    return [
        [name, timing.per_event(events), f"{1.0 / timing.ratio(base)[0]:.2f}"]
        for name, timing in found.items()
    ]


def exports(rounds: int, directory: Path) -> list[list[str]]:
    """Return the rows of exported models."""
    events = [json.loads(value) for value in Clicks("clicks", 1).values(0, SCORED)]
    model = sl.LinearClassifier()
    for event in events:
        model.learn_one(event, event.pop("clicked"))
    saved = directory / "b.model"
    model.save(saved)
    for to in ("json", "sql", "sklearn"):
        quietly("export", str(saved), "--to", to, "--output", str(directory / to))()
    database = duckdb.connect()
    database.execute("SET threads = 1")
    place = directory / "events.json"
    place.write_text("\n".join(json.dumps(event) for event in events), encoding="utf-8")
    frame = database.read_json(str(place)).df()
    database.register("frame", frame)
    scoring = f"SELECT {expression(model)} FROM frame"  # noqa: S608 -- ours
    pipeline = joblib.load(directory / "sklearn")
    sides: dict[str, Callable[[], Run]] = {
        "`score_one`": lambda: unprepared(lambda: [model.score_one(event) for event in events]),
        "SQL in DuckDB": lambda: unprepared(lambda: database.execute(scoring).fetchall()),
        "the pipeline in scikit-learn": lambda: unprepared(
            lambda: pipeline.decision_function(frame)
        ),
        "`export --to sql`": lambda: quietly("export", str(saved), "--to", "sql"),
        "`export --to json`": lambda: quietly("export", str(saved), "--to", "json"),
    }
    found = alternate(sides, rounds)
    base = found["`score_one`"]
    return [
        [name, timing.per_event(SCORED), f"{1.0 / timing.ratio(base)[0]:.2f}"]
        for name, timing in found.items()
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.saved", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        head = ["a file", "microseconds per event", "relative to train"]
        print(table(head, commands(options.events, options.rounds, directory)), end="\n\n")
        head = [f"{SCORED:,} events", "microseconds per event", "relative to score_one"]
        print(table(head, exports(options.rounds, directory)))


if __name__ == "__main__":
    main()
