"""The events, the learners and the comparisons of the speed benchmarks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

import streamlearn as sl
from benchmarks import peers
from benchmarks.report import Run

if TYPE_CHECKING:
    from benchmarks.data import Labels, Rows
    from benchmarks.peers import Event

Prepare: TypeAlias = Callable[[], Run]

FEATURES = 20
WIDE = 80  # features of a long row, as of text
NAMES = 5_000
BITS = 20


@dataclass(frozen=True)
class Comparison:
    """One of our code paths, its peers with the required ratios, and lower limits of its time."""

    path: str
    ours: Prepare
    peers: Mapping[str, tuple[Prepare, float]]
    limits: Mapping[str, Prepare]


@dataclass(frozen=True)
class Workload:
    """The same events as dicts, rows, strings and Vowpal Wabbit's text."""

    rows: "Rows"
    signs: "Labels"
    wide: "Rows"
    events: "Sequence[Event]"
    strings: "Sequence[Event]"
    labels: Sequence[bool]
    text: Path


def make_rows(
    events: int, columns: int, seed: int = 0, features: int = FEATURES
) -> tuple["Rows", "Labels"]:
    """Generate rows of distinct columns with normal values, and noisy labels of a linear target."""
    rng = np.random.default_rng(seed)
    width = columns // features
    slots = rng.integers(width, size=(events, features)) + width * np.arange(features)
    values = rng.standard_normal((events, features))
    scores = (values * rng.standard_normal(columns)[slots]).sum(axis=1)
    signs = np.where(scores + rng.logistic(size=events) > 0, 1.0, -1.0)
    starts = np.arange(events + 1, dtype=np.int32) * features
    parts = (values.ravel(), slots.astype(np.int32).ravel(), starts)
    return sparse.csr_array(parts, shape=(events, columns)), signs


def make_workload(events: int, directory: Path) -> Workload:
    """Generate the events in every form, before the clock starts."""
    rows, signs = make_rows(events, NAMES)
    names = [f"name{column}" for column in range(NAMES)]
    slots = rows.indices.reshape(events, FEATURES).tolist()
    values = rows.data.reshape(events, FEATURES).tolist()
    text = directory / "rows.txt"
    peers.write_vw(rows, signs, text)
    return Workload(
        rows=rows,
        signs=signs,
        wide=make_rows(events // 4, NAMES, features=WIDE)[0],
        events=[
            {names[slot]: value for slot, value in zip(*pair, strict=True)}
            for pair in zip(slots, values, strict=True)
        ],
        strings=[{f"field{k}": names[slot] for k, slot in enumerate(row)} for row in slots],
        labels=(signs > 0).tolist(),
        text=text,
    )


def dual_averaging() -> "sl.LinearClassifier":
    """Return l1 dual averaging with exact names."""
    return sl.DualAveragingClassifier(l1=1e-4)


def hashed() -> "sl.LinearClassifier":
    """Return l1 dual averaging with hashed names."""
    return sl.DualAveragingClassifier(l1=1e-4, features=sl.Hashing(bits=BITS))


def pegasos() -> "sl.LinearClassifier":
    """Return a Pegasos support vector machine."""
    return sl.PegasosClassifier(l2=1e-4)


def default() -> "sl.LinearClassifier":
    """Return the default model."""
    return sl.LinearClassifier()


def penalized() -> "sl.LinearClassifier":
    """Return the default model under l1."""
    return sl.SparseClassifier(l1=1e-4)
