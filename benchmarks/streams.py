"""Synthetic streams for the default model: 20,000 rows each, reproducible.

`STREAMS` lists all; the target of those in `MOVING` changes during the stream.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import Generator
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.data import Labels, Rows

    Array: TypeAlias = NDArray[np.float64]

ROWS = 20_000
COLUMNS = 20
NAMES = 5_000


def _noisy(scores: "Array", rng: Generator) -> "Labels":
    """Draw labels of -1 and 1 with the probabilities of the scores."""
    chance = 1 / (1 + np.exp(-np.clip(scores, -50, 50)))
    return np.where(rng.random(len(scores)) < chance, 1.0, -1.0)


def _gaussian_rows(rng: Generator) -> "Array":
    return rng.standard_normal((ROWS, COLUMNS))


def _target(rng: Generator) -> "Array":
    return rng.standard_normal(COLUMNS)


def gaussian(rng: Generator) -> tuple["Rows", "Labels"]:
    """Standard normal features, logistic labels: the easy case."""
    x = _gaussian_rows(rng)
    return sparse.csr_array(x), _noisy(x @ _target(rng), rng)


def cauchy(rng: Generator) -> tuple["Rows", "Labels"]:
    """Features without a mean: the running maximum keeps growing."""
    x = rng.standard_cauchy((ROWS, COLUMNS))
    return sparse.csr_array(x), _noisy(x @ _target(rng), rng)


def scaled(rng: Generator) -> tuple["Rows", "Labels"]:
    """The gaussian stream with columns in units that span 12 decades."""
    x = _gaussian_rows(rng)
    y = _noisy(x @ _target(rng), rng)
    return sparse.csr_array(x * np.logspace(-6, 6, COLUMNS)), y


def zipf(rng: Generator) -> tuple["Rows", "Labels"]:
    """Names distributed like words in a text: few are frequent, most are rare."""
    columns = ((rng.zipf(1.2, (ROWS, COLUMNS)) - 1) % NAMES).astype(np.int32)
    starts = np.arange(ROWS + 1, dtype=np.int32) * COLUMNS
    x = sparse.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=(ROWS, NAMES))
    x.sum_duplicates()
    x.data[:] = 1.0
    return x, _noisy(np.asarray(x @ rng.standard_normal(NAMES)), rng)


def noise(rng: Generator) -> tuple["Rows", "Labels"]:
    """Labels independent of the features."""
    return sparse.csr_array(_gaussian_rows(rng)), _noisy(np.zeros(ROWS), rng)


def separable(rng: Generator) -> tuple["Rows", "Labels"]:
    """Classes that a hyperplane separates without errors."""
    x = _gaussian_rows(rng)
    return sparse.csr_array(x), np.where(x @ _target(rng) > 0, 1.0, -1.0)


def rare(rng: Generator) -> tuple["Rows", "Labels"]:
    """One positive in some hundreds, as in a click log."""
    x = _gaussian_rows(rng)
    return sparse.csr_array(x), _noisy(x @ _target(rng) / 4 - 6, rng)


def flip(rng: Generator) -> tuple["Rows", "Labels"]:
    """Every weight of the target changes its sign at half time."""
    x = _gaussian_rows(rng)
    sign = np.where(np.arange(ROWS) < ROWS // 2, 1.0, -1.0)
    return sparse.csr_array(x), _noisy(sign * (x @ _target(rng)), rng)


def moving(rng: Generator) -> tuple["Rows", "Labels"]:
    """A new target every 1,000 events."""
    x = _gaussian_rows(rng)
    targets = rng.standard_normal((ROWS // 1_000, COLUMNS)).repeat(1_000, axis=0)
    return sparse.csr_array(x), _noisy((x * targets).sum(axis=1), rng)


def correlated(rng: Generator) -> tuple["Rows", "Labels"]:
    """Nearly collinear columns: only three directions of significant variance."""
    x = rng.standard_normal((ROWS, 3)) @ rng.standard_normal((3, COLUMNS))
    x += 0.1 * _gaussian_rows(rng)
    return sparse.csr_array(x), _noisy(x @ _target(rng), rng)


def outliers(rng: Generator) -> tuple["Rows", "Labels"]:
    """One row in a hundred is a thousand times too large, with a random label."""
    x = _gaussian_rows(rng)
    y = _noisy(x @ _target(rng), rng)
    extreme = rng.random(ROWS) < 0.01
    x[extreme] *= 1_000
    y[extreme] = _noisy(np.zeros(int(extreme.sum())), rng)
    return sparse.csr_array(x), y


def one_class(rng: Generator) -> tuple["Rows", "Labels"]:
    """A single label."""
    return sparse.csr_array(_gaussian_rows(rng)), np.ones(ROWS)


def sorted_labels(rng: Generator) -> tuple["Rows", "Labels"]:
    """The gaussian stream with all negatives before the positives."""
    x = _gaussian_rows(rng)
    y = _noisy(x @ _target(rng), rng)
    order = np.argsort(y, kind="stable")
    return sparse.csr_array(x[order]), y[order]


STREAMS: dict[str, Callable[[Generator], tuple["Rows", "Labels"]]] = {
    "gaussian": gaussian,
    "cauchy": cauchy,
    "12 decades": scaled,
    "zipf": zipf,
    "noise": noise,
    "separable": separable,
    "rare positives": rare,
    "sign flip": flip,
    "moving target": moving,
    "correlated": correlated,
    "outliers": outliers,
    "one class": one_class,
    "sorted labels": sorted_labels,
}
MOVING = frozenset({"sign flip", "moving target"})


def generate(name: str, seed: int = 0) -> tuple["Rows", "Labels"]:
    """Generate the stream of this name, independent of the other streams."""
    return STREAMS[name](np.random.default_rng([seed, *name.encode()]))
