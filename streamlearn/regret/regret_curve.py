"""Regret over time: several learners and one comparator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from streamlearn.estimators import frames
from streamlearn.regret.tracker import Tracker, class_weight

if TYPE_CHECKING:
    import os

    from streamlearn.core.arrays import Array
    from streamlearn.estimators.classifier import LinearClassifier
    from streamlearn.estimators.regressor import LinearRegressor
    from streamlearn.regret.report import Report

    Estimator: TypeAlias = LinearClassifier | LinearRegressor


@dataclass(frozen=True)
class RegretCurve:
    """The reports of each learner at each checkpoint."""

    checkpoints: list[int]
    reports: dict[str, list[Report]]

    def regret(self, name: str) -> Array:
        """Return the regret of a learner at each checkpoint; NaN where it is unknown."""
        return np.array([np.nan if r.regret is None else r.regret for r in self.reports[name]])

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the brackets of the average regret into a PNG, SVG or PDF file.

        Needs matplotlib: `pip install streamlearn[plot]`.
        """
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
        except ImportError:
            raise ImportError("drawing needs matplotlib: pip install 'streamlearn[plot]'") from None
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.subplots()
        t = np.array(self.checkpoints, dtype=float)
        for name, reports in self.reports.items():
            unknown = (np.nan, np.nan)
            ends = [unknown if r.regret is None else (r.regret_low, r.regret_high) for r in reports]
            low, high = np.array(ends, dtype=float).T / t
            (edge,) = axes.plot(t, low, linewidth=0.8, label=name)
            axes.plot(t, high, linewidth=0.8, color=edge.get_color())
            axes.fill_between(t, low, high, alpha=0.2, color=edge.get_color())
        axes.set_xscale("log")
        axes.set_xlabel("events")
        axes.set_ylabel("average regret")
        axes.axhline(0.0, color="gray", linewidth=0.8)
        axes.legend()
        figure.savefig(path)


def curve(
    estimators: Mapping[str, Estimator] | Sequence[Estimator],
    X: Any,
    y: Any,
    checkpoints: Sequence[int],
    *,
    w: Any = None,
    gap: float = 1e-4,
    seconds: float = 60.0,
) -> RegretCurve:
    """Learn the rows once with each estimator, and report its regret at each checkpoint.

    Checkpoints are numbers of rows. All estimators must have the same loss, penalty, kind of
    intercept and class weights, so that they share a comparator. It is solved at each checkpoint,
    to `gap` or for up to `seconds`.
    """
    X = frames.matrix(X)
    y = np.asarray(y)
    weights = None if w is None else np.asarray(w, dtype=float)
    trackers = _make_trackers(estimators, gap)
    points = sorted({int(point) for point in checkpoints})
    if not points or points[0] < 1 or points[-1] > X.shape[0]:
        raise ValueError(
            f"checkpoints must be numbers of rows, 1 to {X.shape[0]}; got {list(checkpoints)!r}"
        )
    reports: dict[str, list[Report]] = {name: [] for name in trackers}
    start = 0
    for stop in points:
        rows = slice(start, stop)
        for tracker in trackers.values():
            tracker.learn_rows(X[rows], y[rows], None if weights is None else weights[rows])
        for name, tracker in trackers.items():  # the first one solves for all
            reports[name].append(tracker.report(seconds))
        start = stop
    return RegretCurve(points, reports)


def _make_trackers(
    estimators: Mapping[str, Estimator] | Sequence[Estimator], gap: float
) -> dict[str, Tracker]:
    """Return a tracker for each estimator, all with one sample: all events."""
    if not isinstance(estimators, Mapping):
        names = [repr(e.rule) if hasattr(e, "rule") else type(e).__name__ for e in estimators]
        if len(set(names)) < len(names):
            names = [f"{k + 1}: {name}" for k, name in enumerate(names)]
        estimators = dict(zip(names, estimators, strict=True))
    if not estimators:
        raise ValueError("estimators is empty; give at least one")
    trackers: dict[str, Tracker] = {}
    for name, estimator in estimators.items():
        beside = next(iter(trackers.values()), None)
        trackers[name] = Tracker(estimator, memory_bytes=None, seed=0, beside=beside, gap=gap)
    tasks = {name: tracker.ledger.task for name, tracker in trackers.items()}
    first = next(iter(tasks.values()))
    for name, task in tasks.items():
        if task != first:
            raise ValueError(
                f"{name} minimizes {task.loss!r} + {task.penalty!r} (intercept: {task.intercept}), "
                f"another {first.loss!r} + {first.penalty!r} (intercept: {first.intercept}); "
                "draw separate curves, because a comparator solves a single problem"
            )
        if class_weight(estimators[name]) != class_weight(next(iter(estimators.values()))):
            raise ValueError(
                f"{name} has another class_weight than the first estimator; draw separate curves, "
                "because a comparator is solved for one weighting of the events"
            )
    return trackers
