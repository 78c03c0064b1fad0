"""Learn from a stream whose negatives were subsampled, and predict the full one.

python -m benchmarks.kept [--rows N] [--seeds N] [--kept SHARE]

The table of `benchmarks.train`: the last 20% are held out, with all of their negatives. Of the
negatives before, a share is kept at random. `--kept` weighs each by 1 / share. The alternative
learns them unweighted, and adds the logarithm of the share to the score. Both are compared with
learning the full stream.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.report import table
from benchmarks.train import HELD_OUT, clicks, write
from streamlearn.quality.ranking import calibration, groups_of

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

HEAD = ["", "records", "log-loss", "ROC area", "predicted / true", "distance of scores"]


def chosen(columns: dict[str, Any], rows: "Array") -> dict[str, Any]:
    """Return some rows of a table."""
    places = rows.tolist()
    return {name: [values[place] for place in places] for name, values in columns.items()}


def command(*words: str) -> str:
    """Run streamlearn, and return what it prints."""
    line = [sys.executable, "-m", "streamlearn", *words]
    return subprocess.run(line, capture_output=True, check=True, text=True).stdout  # noqa: S603 -- ourselves


def scores(directory: Path, *options: str) -> "Array":
    """Train on `seen.csv`, and return the scores of the held-out rows."""
    model = str(directory / "clicks.model")
    command("train", str(directory / "seen.csv"), "--label", "clicked", "--save", model, *options)
    lines = command("predict", model, str(directory / "held.csv"), "--json").splitlines()
    return np.array([json.loads(line)["score"] for line in lines])


def row(name: str, records: int, found: "Array", full: "Array", labels: "Array") -> list[str]:
    """Return the row of one way to learn."""
    shares = 1.0 / (1.0 + np.exp(-found))
    ratio = shares.sum() / labels.sum()
    error = calibration(groups_of(found, labels > 0, shares, np.ones(len(found)))).error
    distance = np.sqrt(np.mean((found - full) ** 2)) / full.std()
    return [
        name,
        f"{records:,}",
        f"{log_loss(labels, shares):.5f}",
        f"{roc_auc_score(labels, found):.4f}",
        f"{ratio:.3f}, error {error:.4f}",
        f"{distance:.3f}",
    ]


def rows(count: int, seed: int, kept: float, directory: Path) -> Iterator[list[str]]:
    """Yield a row for each way to learn."""
    columns, labels = clicks(count, seed)
    columns = {name: list(values) for name, values in columns.items()}
    first = round((1.0 - HELD_OUT) * count)
    held = np.arange(first, count)
    write(directory / "held.csv", chosen(columns, held), labels[held])
    every = np.arange(first)
    draw = np.random.default_rng(seed).random(first)
    some = every[(labels[:first] == 1) | (draw < kept)]
    write(directory / "seen.csv", chosen(columns, every), labels[every])
    full = scores(directory)
    yield row("all", len(every), full, full, labels[held])
    write(directory / "seen.csv", chosen(columns, some), labels[some])
    weighted = scores(directory, "--kept", str(kept))
    yield row(f"--kept {kept:g}", len(some), weighted, full, labels[held])
    corrected = scores(directory) + np.log(kept)
    yield row("log-odds corrected", len(some), corrected, full, labels[held])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kept", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kept", type=float, default=0.05)
    options = parser.parse_args()
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as name:
            found = list(rows(options.rows, seed, options.kept, Path(name)))
            print(table([f"table {seed}", *HEAD[1:]], found), end="\n\n")


if __name__ == "__main__":
    main()
