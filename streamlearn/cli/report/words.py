"""The numbers of a model as sentences, for readers who do not know their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SAME = 0.005  # relative differences below are none


def sentences(facts: Mapping[str, float | None]) -> Iterator[str]:
    """Yield what the numbers of `Quality.facts` mean.

    >>> list(sentences({"loss": 0.3, "constant's loss": 0.4, "ROC area": 0.83}))[0]
    'Its loss is 25% lower than that of the best constant prediction (0.3 against 0.4).'
    """
    loss, constant = facts.get("loss"), facts.get("constant's loss")
    if loss is not None and constant:
        yield (
            f"Its loss is {compared(loss, constant)} that of the best constant prediction "
            f"({cell(loss)} against {cell(constant)})."
        )
    area = facts.get("ROC area")
    if area is not None:
        yield f"It scores a positive event above a negative one in {area:.1%} of pairs."
    ratio, error = facts.get("calibration ratio"), facts.get("calibration error")
    if ratio is not None and error is not None:
        sums = "as many positives as there were"
        if abs(ratio - 1.0) >= SAME:
            more = "more" if ratio > 1.0 else "fewer"
            sums = f"{abs(ratio - 1.0):.1%} {more} positives than there were"
        yield (
            f"Its probabilities predict {sums}, and are off by {100.0 * error:.2g} percentage "
            "points on average."
        )
    errors, usual = facts.get("error rate"), facts.get("constant's error rate")
    if errors is not None and usual is not None and area is None:
        yield (
            f"It names the wrong label for {errors:.1%} of events; always naming the most frequent "
            f"one is wrong for {usual:.1%}."
        )
    distance, usual = facts.get("MAE"), facts.get("mean's MAE")
    if distance is not None:
        yield f"It is off by {cell(distance)} on average, the mean label by {cell(usual)}."
    explained = facts.get("R2")
    if explained is not None and explained > 0.0:
        yield f"It explains {explained:.1%} of the variance of the labels."


def compared(value: float, other: float) -> str:
    """Return how a loss compares with another one.

    >>> compared(0.3, 0.4), compared(0.5, 0.4), compared(0.4, 0.4)
    ('25% lower than', '25% higher than', 'about')
    """
    change = value / other - 1.0
    if abs(change) < SAME:
        return "about"
    return f"{abs(change):.0%} {'lower' if change < 0.0 else 'higher'} than"
