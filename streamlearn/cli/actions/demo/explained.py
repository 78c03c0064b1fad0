"""Explain one event: what each feature adds to the log-odds, as learned and in truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from streamlearn.cli.saved_models import Model
    from streamlearn.stream import Clicks

RECENT = 200  # events, among which the one with most true features is explained
MOST = 10  # features that are shown
LEAST = 0.005  # of what they add


class ExplainedTerm(NamedTuple):
    """What a feature adds to the log-odds."""

    name: str
    learned: float
    truth: float


@dataclass(frozen=True)
class Explained:
    """An event with its parts."""

    event: dict[str, Any]
    clicked: bool
    learned: float  # probability of a click
    truth: float
    parts: list[ExplainedTerm]  # those of the largest first

    def text(self, name: str) -> str:
        """Return it as a table; indented lines are not to be wrapped."""
        fields = ", ".join(
            f"{field} {str(value).lower() if isinstance(value, bool) else value}"
            for field, value in self.event.items()
        )
        happened = "It was clicked." if self.clicked else "It was not clicked."
        intro = (
            f"Why? One of the last events: {fields}. {happened} What its features add to the "
            "log-odds of a click, as learned and in truth:"
        )
        lines = [
            intro,
            row("", name, "truth"),
            *(row(one.name, f"{one.learned:+.2f}", f"{one.truth:+.2f}") for one in self.parts),
            row("probability of a click", f"{self.learned:.1%}", f"{self.truth:.1%}"),
        ]
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "event": self.event,
            "clicked": self.clicked,
            "probability": self.learned,
            "truth": self.truth,
            "adds": {one.name: {"learned": one.learned, "truth": one.truth} for one in self.parts},
        }


def row(name: str, learned: str, truth: str) -> str:
    """Return a line of the table."""
    return f"  {name:<24}{learned:>9}{truth:>9}"


def explained(model: Model, stream: Clicks, seen: int) -> Explained:
    """Explain the event with most true features among the last ones that were seen."""
    start, weights = max(seen - RECENT, 0), stream.truth(seen - 1)
    events = [msgspec.json.decode(value) for value in stream.values(start, seen - start)]

    def true_features(place: int) -> int:
        return sum(f"{name}={value}" in weights for name, value in events[place].items())

    place = max(range(len(events)), key=true_features)
    event = events[place]
    clicked = event.pop("clicked")
    parts = [ExplainedTerm("intercept", 0.0, 0.0)]
    for one in model.explain_one(event):
        if one.name is None:
            parts[0] = ExplainedTerm("intercept", one.contribution, stream.intercept(seen - 1))
        else:
            true = weights.get(one.name, 0.0) * one.value
            parts.append(ExplainedTerm(str(one.name), one.contribution, true))
    shown = [one for one in parts if max(abs(one.learned), abs(one.truth)) >= LEAST]
    shown.sort(key=lambda one: -max(abs(one.learned), abs(one.truth)))
    probability = 1.0 / (1.0 + math.exp(-model.score_one(event)))
    (truth,) = stream.chances(start + place, 1)
    return Explained(event, clicked, probability, float(truth), shown[:MOST])
