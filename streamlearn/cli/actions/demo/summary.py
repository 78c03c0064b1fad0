"""Summarize a run of the demo in words; every number and name is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.cli.actions.demo.view import SEGMENTS

if TYPE_CHECKING:
    from streamlearn.cli.actions.demo.view import Track, View
    from streamlearn.stream import Clicks

NEXT = """\
Try next:
  streamlearn demo --seed {seed} --no-drift   # other weights, no change
  streamlearn train --help               # your own files: CSV, JSON, svmlight, VW
  streamlearn run --help                 # your own Kafka: the daemon
"""


@dataclass(frozen=True)
class Summary:
    """The text, and the facts in it."""

    text: str
    facts: dict[str, Any]


def summarize(view: View, stream: Clicks) -> Summary:
    """Return the summary of a run."""
    if not view.seen or view.learners is None:
        return Summary("Interrupted before the first event.\n", {"events": 0})
    truth = stream.truth(view.seen - 1)
    found = {learner.name: discovered(learner.model.weights, truth) for learner in view.learners}
    kept = {learner.name: learner.model.nonzero for learner in view.learners}
    errors = {name: track.mean() for name, track in view.tracks.items()}
    order = sorted(errors, key=lambda name: errors[name])
    winner, second = order[0], order[1]
    constant_error = min(view.clicked, view.seen - view.clicked) / view.seen
    finder = max(found, key=lambda name: (found[name], -kept[name]))
    drifted = view.drift and view.seen > view.total // 2
    reason = why(view, winner, second, drifted=drifted)
    text = (
        f"{learned(view, errors, order, constant_error)}; "
        f"{discoveries(winner, finder, found, kept, truth)}"
        f".\n{winner} won: {reason}.\n\n"
        f"{NEXT.format(seed=stream.seed + 1)}"
    )
    facts = {
        "events": view.seen,
        "events/s": view.rate,
        "constant error": constant_error,
        "true weights": len(truth),
        "winner": winner,
        "why": reason,
        "learners": {
            name: {
                "error": errors[name],
                "regret": view.regrets.get(name),
                "found": found[name],
                "non-zeros": kept[name],
            }
            for name in order
        },
    }
    return Summary(text, facts)


def learned(view: View, errors: dict[str, float], order: list[str], constant_error: float) -> str:
    """Compare the best and the worst learner with a constant prediction."""
    clicks, best, worst = view.clicked / view.seen, order[0], order[-1]
    usual = "click" if clicks > 0.5 else "no click"
    return (
        f"Over {view.seen:,} events, {clicks:.0%} of them clicks, {best} mispredicted "
        f"{errors[best]:.1%} of unseen events and {worst} {errors[worst]:.1%}; "
        f"always predicting {usual} is wrong on {constant_error:.1%}"
    )


def discoveries(
    winner: str,
    finder: str,
    found: dict[str, int],
    kept: dict[str, int],
    truth: dict[str, float],
) -> str:
    """Compare the weights of the winner, and of who found most true ones, with the truth."""
    n = len(truth)
    first = (
        f"{winner} has {found[winner]} of the {n} true features among its {n} largest weights "
        f"and {kept[winner]:,} non-zero weights"
    )
    if finder == winner:
        return f"{first}; no learner found more"
    return f"{first}; {finder} has {found[finder]} and {kept[finder]:,}"


def discovered(weights: dict[Any, Any], truth: dict[str, float]) -> int:
    """Count the n true features that are among the n largest weights with the right sign."""
    largest = sorted(weights, key=lambda name: -abs(weights[name]))[: len(truth)]
    return sum(1 for name in largest if truth.get(name, 0.0) * weights[name] > 0.0)


def why(view: View, winner: str, second: str, *, drifted: bool) -> str:
    """Explain where the winner gained on the second."""
    ours, theirs = view.tracks[winner], view.tracks[second]
    half = SEGMENTS // 2
    spans = {"at the start": (0, half // 3), "later": (half // 3, None)}
    if drifted:
        spans = {
            "at the start": (0, half // 3),
            "before the weights changed": (half // 3, half),
            "right after the weights changed": (half, half + half // 3),
            "at the end": (half + half // 3, None),
        }
    gains = {name: gain(ours, theirs, span) for name, span in spans.items()}
    gains = {name: value for name, value in gains.items() if value > 0.0}
    if not gains:
        return f"it mispredicted {ours.mean():.2%} of the events, and so did {second}"
    best = max(gains, key=lambda name: gains[name])
    first, last = spans[best]
    return (
        f"it mispredicted {ours.mean():.2%} of all events, {second}, the second, "
        f"{theirs.mean():.2%}; most of the gain came {best}: {ours.mean(first, last):.2%} "
        f"versus {theirs.mean(first, last):.2%}"
    )


def gain(ours: Track, theirs: Track, span: tuple[int, int | None]) -> float:
    """Return how many fewer errors we made in a span."""
    first, last = span
    return sum(theirs.errors[first:last]) - sum(ours.errors[first:last])
