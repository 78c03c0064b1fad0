"""The pictures of a tested model: what each kind of model has to show."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamlearn.cli.report.axes import Axis, linear, log_odds, logit, shares, short
from streamlearn.cli.report.charts import Chart, bars, legend
from streamlearn.cli.tables import cell
from streamlearn.quality import ClassifierQuality, RegressorQuality
from streamlearn.quality.ranking import (
    average_precision,
    calibration,
    precision_recall,
    roc_area,
    roc_curve,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamlearn.cli.actions.test import Tested
    from streamlearn.quality.ranking import ScoredGroups

MOST_FIELDS = 15
SCORE_BINS = 48
TAILS = (0.002, 0.998)  # of the scores that are drawn
WIDE_RATIO = 8.0  # of the largest and the smallest probability: an axis of log-odds shows both


class ReportPanel(NamedTuple):
    """A titled part of the page."""

    title: str
    text: str
    body: str  # HTML
    wide: bool = False


def panels(tested: Tested, notes: Mapping[str, Any]) -> Iterator[ReportPanel]:
    """Yield the panels of a model."""
    quality = tested.quality
    if isinstance(quality, ClassifierQuality) and quality.binary:
        groups = quality.ranking.groups()
        if groups.positive.any() and groups.negative.any():
            yield roc(groups)
            yield recall(groups)
            if quality.has_probability:
                yield reliability(groups)
            yield scores(groups, quality)
    elif isinstance(quality, ClassifierQuality):
        yield confusion(quality)
    elif isinstance(quality, RegressorQuality):
        yield predictions(quality)
        yield residuals(quality)
    yield from importance(tested)
    yield losses(tested)
    history = notes.get("history", [])
    if len(history) > 3:
        yield training(history)


def roc(groups: ScoredGroups) -> ReportPanel:
    """Return the ROC curve."""
    chart = Chart(shares("false positive rate"), shares("true positive rate"))
    false, true = roc_curve(groups)
    chart.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ideal")
    chart.area(false, true, "first")
    chart.line(false, true, "first")
    area = cell(roc_area(groups))
    keys = legend([("first", f"this model, area {area}"), ("ideal", "at random, area 0.5")])
    text = "Of the positive events, how many are found at each rate of false alarms."
    return ReportPanel("ROC", text, figure(chart, f"ROC curve, area {area}", keys))


def recall(groups: ScoredGroups) -> ReportPanel:
    """Return precision over recall."""
    chart = Chart(shares("recall"), shares("precision"))
    found, precision = precision_recall(groups)
    base = groups.positive.sum() / (groups.positive.sum() + groups.negative.sum())
    start = int(np.flatnonzero(found)[0])
    found, precision = found[start:], precision[start:]
    chart.line(np.array([0.0, 1.0]), np.array([base, base]), "ideal")
    chart.area(found, precision, "first")
    chart.line(found, precision, "first")
    average = cell(average_precision(groups))
    keys = legend(
        [("first", f"this model, average {average}"), ("ideal", f"at random, {base:.1%}")]
    )
    text = "Of the events that are called positive, how many are, as more of them are to be found."
    return ReportPanel("Precision and recall", text, figure(chart, "precision over recall", keys))


def reliability(groups: ScoredGroups) -> ReportPanel:
    """Return true over predicted shares of positives."""
    bins = calibration(groups)
    spread = 2.0 * np.sqrt(bins.positive * (1.0 - bins.positive) / bins.weight)
    low, high = np.maximum(bins.positive - spread, 0.0), np.minimum(bins.positive + spread, 1.0)
    values = np.concatenate([bins.predicted, bins.positive])
    least, most = values[values > 0.0].min(), values.max()
    axes = [shares(title) for title in ("predicted probability", "share of positive events")]
    if most / least > WIDE_RATIO:
        axes = [log_odds(axis.title, 0.7 * least, 1.0 - 0.7 * (1.0 - most)) for axis in axes]
    else:
        axes = [linear(axis.title, 0.9 * least, min(1.1 * most, 1.0)) for axis in axes]
    chart = Chart(axes[0], axes[1])
    ends = np.array([1e-9, 1.0])
    chart.line(ends, ends, "ideal")
    chart.whiskers(bins.predicted, low, high, "first")
    texts = [
        f"predicted {p:.3%}, true {q:.3%}, weight {w:,.0f}"
        for p, q, w in zip(bins.predicted, bins.positive, bins.weight, strict=True)
    ]
    chart.dots(bins.predicted, bins.positive, texts, "first")
    keys = legend([("first", "bins of equal weight, ± 2 standard errors"), ("ideal", "ideal")])
    text = f"Calibration error {cell(bins.error)}: the mean distance of dots and ideal."
    return ReportPanel("Calibration", text, figure(chart, "true over predicted shares", keys))


def scores(groups: ScoredGroups, quality: ClassifierQuality) -> ReportPanel:
    """Return the distributions of the scores of both classes."""
    weight = groups.positive + groups.negative
    places, name = groups.scores, "score"
    if quality.has_probability:
        places, name = groups.predicted / weight, "predicted probability"
    x = limits(places, weight, name, probability=quality.has_probability)
    drawn = []
    for side, kind in ((groups.negative, "second"), (groups.positive, "first")):
        drawn.append((heights(x.share(places), side), kind))
    highest = max(float(height.max()) for height, _ in drawn)
    chart = Chart(x, linear("share of the class", 0.0, 1.08 * highest, 4))
    across = centers(x)
    for height, kind in drawn:
        chart.area(across, height, kind)
        chart.line(across, height, kind)
    labels = [str(label) for label in quality.model.labels]
    keys = legend([("first", labels[-1]), ("second", labels[0])])
    text = "The less the two classes overlap, the better the model tells them apart."
    return ReportPanel("Scores", text, figure(chart, "distributions of scores by class", keys))


def heights(places: Any, weights: Any) -> Any:
    """Return the shares of weight in each bin of an axis, given places on it."""
    inside = (places > 0.0) & (places < 1.0)
    found, _ = np.histogram(places[inside], SCORE_BINS, (0.0, 1.0), weights=weights[inside])
    return found / weights.sum()


def centers(axis: Axis) -> Any:
    """Return the numbers in the middle of the bins of an axis."""
    middle = (np.arange(SCORE_BINS) + 0.5) / SCORE_BINS
    places = axis.low + middle * (axis.high - axis.low)
    return 1.0 / (1.0 + np.exp(-places)) if axis.scale is logit else places


def limits(places: Any, weight: Any, name: str, *, probability: bool) -> Axis:
    """Return the axis of nearly all scores."""
    total = np.cumsum(weight) / weight.sum()
    ordered = np.sort(places)
    ends = np.minimum(np.searchsorted(total, TAILS), len(total) - 1)
    low, high = ordered[ends].tolist()
    if not probability:
        return linear(name, low, high)
    return log_odds(name, max(low, 1e-6), min(high, 1.0 - 1e-6))


def confusion(quality: ClassifierQuality) -> ReportPanel:
    """Return how often each label is taken for each other one."""
    labels = [escape(str(label)) for label in quality.model.labels]
    table = quality.confusion
    head = "".join(f"<th>{label}</th>" for label in labels)
    rows = "".join(
        f"<tr><th>{label}</th>"
        + "".join(
            f'<td class="{"right" if i == k else ""}">{table[i, k]:,.0f}</td>'
            for k in range(len(labels))
        )
        + f"<td>{share(table[i, i], table[i].sum())}</td></tr>"
        for i, label in enumerate(labels)
    )
    last = "".join(f"<td>{share(table[k, k], table[:, k].sum())}</td>" for k in range(len(labels)))
    body = (
        f'<div class="scroll"><table><thead><tr><th></th>{head}<th>recall</th></tr></thead>'
        f"<tbody>{rows}<tr><th>precision</th>{last}<td></td></tr></tbody></table></div>"
    )
    text = "True labels in rows, predicted ones in columns."
    return ReportPanel("Confusion", text, body, wide=True)


def share(part: float, whole: float) -> str:
    """Return a share as text; nothing of nothing is unknown."""
    return f"{part / whole:.1%}" if whole else "-"


def predictions(quality: RegressorQuality) -> ReportPanel:
    """Return true over predicted labels."""
    weight, predicted, true = quality.by_prediction()
    both = np.concatenate([predicted, true])
    low, high = float(both.min()), float(both.max())
    edge = 0.05 * (high - low)
    chart = Chart(
        linear("prediction", low - edge, high + edge), linear("label", low - edge, high + edge)
    )
    ends = np.array([low, high])
    chart.line(ends, ends, "ideal")
    texts = [
        f"predicted {short(p)}, true {short(q)}, weight {w:,.0f}"
        for w, p, q in zip(weight, predicted, true, strict=True)
    ]
    chart.dots(predicted, true, texts, "first")
    keys = legend([("first", "mean label, in bins of equal weight"), ("ideal", "ideal")])
    text = "Where dots leave the line, predictions of this size are too high or too low."
    return ReportPanel("Predictions", text, figure(chart, "labels over predictions", keys))


def residuals(quality: RegressorQuality) -> ReportPanel:
    """Return the distribution of the errors."""
    places, weight = quality.residuals()
    x = limits(places, weight, "prediction - label", probability=False)
    height = heights(x.share(places), weight)
    chart = Chart(x, linear("share", 0.0, 1.08 * float(height.max()), 4))
    chart.area(centers(x), height, "first")
    chart.line(centers(x), height, "first")
    text = "How far predictions are off, but for the most extreme ones."
    return ReportPanel("Errors", text, figure(chart, "distribution of errors", ""))


def importance(tested: Tested) -> Iterator[ReportPanel]:
    """Yield the shares of fields in the scores."""
    found = tested.importance.shares()
    if found:
        rows = list(found.items())
        rest = sum(amount for _, amount in rows[MOST_FIELDS:])
        some = rows[:MOST_FIELDS]
        if rest:
            some.append((f"{len(rows) - MOST_FIELDS:,} other fields", rest))
        text = "What each field contributes to the scores: its share of the mean |weight x value|."
        yield ReportPanel("Importance", text, bars(some))


def losses(tested: Tested) -> ReportPanel:
    """Return the loss over the files."""
    ends, means = tested.losses.means()
    constant = tested.quality.facts().get("constant's loss")
    highest = max(float(means.max()), constant or 0.0)
    chart = Chart(
        linear("labeled events", 0.0, float(ends[-1])), linear("loss", 0.0, 1.05 * highest)
    )
    keys = [("first", "this model")]
    if constant is not None:
        chart.line(np.array([0.0, ends[-1]]), np.array([constant, constant]), "ideal")
        keys.append(("ideal", "best constant"))
    x, y = (ends, means) if len(ends) > 1 else (np.array([0.0, ends[-1]]), np.repeat(means, 2))
    chart.line(x, y, "first")
    text = "In the order of the files. A loss that grows means that the stream has changed."
    return ReportPanel("Loss over time", text, figure(chart, "loss over the files", legend(keys)))


def training(history: Sequence[Mapping[str, Any]]) -> ReportPanel:
    """Return the progressive loss of the training."""
    events = np.array([float(point["events"]) for point in history])
    means = np.array([float(point["loss"]) for point in history])
    first, last = np.log10(events[[0, -1]])
    ticks = tuple(
        (float(power), short(10.0**power)) for power in range(int(np.ceil(first)), int(last) + 1)
    )
    x = Axis("events learned", float(first), float(last), ticks, np.log10)
    chart = Chart(x, linear("loss", 0.0, 1.05 * float(means.max())))
    chart.line(events, means, "first")
    text = "The mean loss of events before they were learned."
    return ReportPanel("Training", text, figure(chart, "progressive loss of the training", ""))


def figure(chart: Chart, label: str, keys: str) -> str:
    """Return a chart and its legend."""
    return f'<figure>{chart.svg(label)}<figcaption class="keys">{keys}</figcaption></figure>'
