"""What online calibration gains, and how near it is to the best that a line could do.

python -m benchmarks.calibrated [--data DIR] [--only NAME ...]

Five learners on the first 50,000 rows of each set, progressive scores. For those whose expected
calibration error is above .02: that error and the log-loss with `calibrated=True`, and with the two
lines that no learner can know: the one fitted to all events at once, and for drift, one fitted to
each tenth of the stream.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

import streamlearn as sl
from benchmarks import data
from benchmarks.default import log_loss
from benchmarks.report import table
from streamlearn.quality.ranking import calibration, groups_of

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array

ROWS = 50_000
WRONG = 0.02  # calibration errors above should halve
PARTS = 10
LEARNERS: dict[str, Any] = {
    "default": dict,
    "l1": lambda: {"penalty": sl.penalties.L1(1e-3)},
    "AdaGrad(0.01)": lambda: {"rule": sl.rules.AdaGrad(0.01)},
    "AdaGrad(1.0)": lambda: {"rule": sl.rules.AdaGrad(1.0)},
    "DualAveraging(5.0)": lambda: {"rule": sl.rules.DualAveraging(5.0)},
}
HEAD = [
    "set, learner",
    "error",
    "calibrated",
    "ratio",
    "log-loss",
    "error of the best line",
    f"of {PARTS} lines",
]


def error(scores: "Array", labels: "Array") -> float:
    """Return the expected calibration error, in 15 bins of equal weight."""
    shares = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
    return calibration(groups_of(scores, labels > 0.0, shares, np.ones(len(scores)))).error


def best_line(scores: "Array", labels: "Array") -> "Array":
    """Return scores on the line with the least log-loss on these events."""

    def loss(line: "Array") -> float:
        return log_loss(line[0] * scores + line[1], labels)

    scale, shift = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return np.asarray(scale * scores + shift)


def rows(source: data.Source, directory: Path) -> Iterator[list[str]]:
    """Yield a row for each learner that is miscalibrated."""
    examples = data.load(source, directory, ROWS)
    labels = examples.labels
    for name, parts in LEARNERS.items():
        plain = sl.LinearClassifier(**parts()).progressive_rows(examples.rows, labels)
        model = sl.LinearClassifier(**parts(), calibrated=True)
        better = model.progressive_rows(examples.rows, labels)
        before, after = error(plain, labels), error(better, labels)
        change = log_loss(better, labels) / log_loss(plain, labels) - 1.0
        if before <= WRONG and change <= 1e-3:
            continue
        tenths = np.array_split(np.arange(len(labels)), PARTS)
        moving = np.concatenate([best_line(plain[rows], labels[rows]) for rows in tenths])
        yield [
            f"{source.name}, {name}",
            f"{before:.4f}",
            f"{after:.4f}",
            f"{after / before:.2f}",
            f"{change:+.2%}",
            f"{error(best_line(plain, labels), labels):.4f}",
            f"{error(moving, labels):.4f}",
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrated", description=__doc__)
    parser.add_argument("--data", type=Path, default=data.HOME)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    found: list[list[str]] = []
    for source in data.CLASSIFICATION:
        if (options.only and source.name not in options.only) or not (
            options.data / source.file
        ).exists():
            continue
        found += rows(source, options.data)
    print(table(HEAD, found))


if __name__ == "__main__":
    main()
