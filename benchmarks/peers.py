"""The peers of the comparisons, each as its own documentation would write it."""

import importlib
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np
from river import compose, linear_model, optim, preprocessing
from sklearn.linear_model import SGDClassifier

if TYPE_CHECKING:
    from river.base import Classifier

    from benchmarks.data import Labels, Rows

Event: TypeAlias = dict[Hashable, float | str]


class Workspace(Protocol):
    """The part of `vowpalwabbit.Workspace` that is used; the package ships no types."""

    def get_sum_loss(self) -> float:
        """Return the sum of the losses, each before its row was learned."""

    def get_weighted_examples(self) -> float:
        """Return the number of rows."""

    def finish(self) -> None:
        """Close the files."""


def learn_events(learner: "Classifier", events: Sequence[Event], labels: Sequence[bool]) -> None:
    """Learn every event once with a river-compatible learner."""
    learn = learner.learn_one
    for event, label in zip(events, labels, strict=True):
        learn(event, label)


def river_sgd() -> "Classifier":
    """Return river's logistic regression with its defaults: gradient descent, step 0.01."""
    return linear_model.LogisticRegression()


def river_l1() -> "Classifier":
    """Return river's cumulative l1 penalty."""
    return linear_model.LogisticRegression(l1=1e-4)


def river_ftrl() -> "Classifier":
    """Return river's FTRL-Proximal."""
    return linear_model.LogisticRegression(optim.FTRLProximal(l1=1e-4))


def river_hashed(bits: int) -> "Classifier":
    """Return river's hashing of strings followed by its logistic regression."""
    hasher = preprocessing.FeatureHasher(n_features=2**bits)
    return cast("Classifier", compose.Pipeline(hasher, river_sgd()))


def sklearn_l1() -> SGDClassifier:
    """Return scikit-learn's truncated gradient for logistic loss."""
    return SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-4)


def sklearn_pegasos() -> SGDClassifier:
    """Return scikit-learn's support vector machine with the same penalty as Pegasos."""
    return SGDClassifier(loss="hinge", penalty="l2", alpha=1e-4)


def partial_fit(learner: SGDClassifier, rows: "Rows", labels: "Labels") -> None:
    """Learn the rows in one pass."""
    learner.partial_fit(rows, labels, classes=np.unique(labels))


VW_RATES = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
VW_SETTINGS = (  # of each optimizer, its default among them
    *(f"-l {rate:g}" for rate in VW_RATES),
    *(f"-l {rate:g} --power_t 0" for rate in VW_RATES),
    *(f"--sgd -l {rate:g}" for rate in (0.05, 0.1, 0.5, 2, 8)),
    *(f"--ftrl --ftrl_alpha {a:g} --ftrl_beta {b:g}" for a in (0.005, 0.05, 0.5) for b in (0.1, 1)),
    *(f"--coin --ftrl_alpha {alpha:g}" for alpha in (1, 4, 16)),
    *(f"--freegrad --fepsilon {epsilon:g}" for epsilon in (1, 10, 100, 1000)),
)
VW_DEFAULT = "-l 0.5"


def write_vw(rows: "Rows", labels: "Labels", path: Path) -> None:
    """Write Vowpal Wabbit's text; names are column numbers, so that none collide."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(_vw_lines(rows, labels))


def _vw_lines(rows: "Rows", labels: "Labels") -> Iterator[str]:
    pairs = zip(rows.indices.tolist(), rows.data.tolist(), strict=True)
    features = [f"{column}:{value:.9g}" for column, value in pairs]
    ends = rows.indptr.tolist()
    for row, label in enumerate(labels.tolist()):
        yield f"{label:.9g} | {' '.join(features[ends[row] : ends[row + 1]])}\n"


def vowpal_wabbit(
    path: Path, options: str = "", *, loss: str = "logistic", bits: int = 22
) -> float:
    """Read and learn a file in one pass; return the progressive loss."""
    module = importlib.import_module("vowpalwabbit")
    command = f"-d {path} --quiet -b {bits} --loss_function {loss} {options}"
    workspace = cast("Workspace", module.Workspace(command))
    average = workspace.get_sum_loss() / workspace.get_weighted_examples()
    workspace.finish()
    return average
