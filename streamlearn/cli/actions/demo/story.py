"""What the demonstration has shown, in words: every number and every name in it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.cli.actions.demo.view import STRETCHES

if TYPE_CHECKING:
    from streamlearn.cli.actions.demo.view import Track, View
    from streamlearn.stream import Clicks

NEXT = """\
Try next:
  streamlearn demo --seed {seed} --no-drift   # another truth, which stays
  streamlearn train --help              # your own files: CSV, JSON, svmlight
  streamlearn run --help                # your own Kafka: the daemon
"""


@dataclass(frozen=True)
class Story:
    """The summary, and what it was made of."""

    text: str
    facts: dict[str, Any]


def told(view: View, stream: Clicks) -> Story:
    """The story of a run."""
    if not view.seen or view.learners is None:
        return Story("It ended before the first event.\n", {"events": 0})
    planted = stream.truth(view.seen - 1)
    found = {learner.name: discovered(learner.model.weights, planted) for learner in view.learners}
    kept = {learner.name: learner.model.nonzero for learner in view.learners}
    errors = {name: track.mean() for name, track in view.tracks.items()}
    order = sorted(errors, key=lambda name: errors[name])
    winner, second = order[0], order[1]
    share = min(view.clicked, view.seen - view.clicked) / view.seen
    finder = max(found, key=lambda name: (found[name], -kept[name]))
    drifted = view.drift and view.seen > view.total // 2
    reason = why(view, winner, second, drifted=drifted)
    text = (
        f"{learned(view, errors, order, share)}; "
        f"{discoveries(winner, finder, found, kept, planted)}"
        f".\n{winner} won: {reason}.\n\n"
        f"{NEXT.format(seed=stream.seed + 1)}"
    )
    facts = {
        "events": view.seen,
        "events/s": view.rate,
        "constant error": share,
        "planted": len(planted),
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
    return Story(text, facts)


def learned(view: View, errors: dict[str, float], order: list[str], share: float) -> str:
    """How well the best and the worst predict, beside who always says the same."""
    clicks, best, worst = view.clicked / view.seen, order[0], order[-1]
    usual = "click" if clicks > 0.5 else "no click"
    return (
        f"From {view.seen:,} events, {clicks:.0%} of them clicks, {best} learned to err on "
        f"{errors[best]:.1%} of what it had not seen before and {worst} on {errors[worst]:.1%}, "
        f"where always saying {usual} errs on {share:.1%}"
    )


def discoveries(
    winner: str,
    finder: str,
    found: dict[str, int],
    kept: dict[str, int],
    planted: dict[str, float],
) -> str:
    """How much of the truth the winner has found, and who has found most."""
    n = len(planted)
    first = (
        f"{winner} has {found[winner]} of the {n} planted features among its {n} largest weights "
        f"and keeps {kept[winner]:,} weights in all"
    )
    if finder == winner:
        return f"{first}, and nobody has found more of the truth"
    return f"{first}, {finder} has {found[finder]} and keeps {kept[finder]:,}"


def discovered(weights: dict[Any, Any], planted: dict[str, float]) -> int:
    """How many planted features are among as many largest weights, with the right sign."""
    largest = sorted(weights, key=lambda name: -abs(weights[name]))[: len(planted)]
    return sum(1 for name in largest if planted.get(name, 0.0) * weights[name] > 0.0)


def why(view: View, winner: str, second: str, *, drifted: bool) -> str:
    """Where the winner was better than the next one."""
    ours, theirs = view.tracks[winner], view.tracks[second]
    half = STRETCHES // 2
    spans = {"at the beginning": (0, half // 3), "later": (half // 3, None)}
    if drifted:
        spans = {
            "at the beginning": (0, half // 3),
            "before the truth changed": (half // 3, half),
            "right after the truth changed": (half, half + half // 3),
            "in the end": (half + half // 3, None),
        }
    gains = {name: gain(ours, theirs, span) for name, span in spans.items()}
    gains = {name: value for name, value in gains.items() if value > 0.0}
    if not gains:
        return f"it erred on {ours.mean():.2%} of the events, and {second} on as many"
    best = max(gains, key=lambda name: gains[name])
    first, last = spans[best]
    return (
        f"it erred on {ours.mean():.2%} of all events, next came {second} with "
        f"{theirs.mean():.2%}; most of that it gained {best}, with {ours.mean(first, last):.2%} "
        f"against {theirs.mean(first, last):.2%}"
    )


def gain(ours: Track, theirs: Track, span: tuple[int, int | None]) -> float:
    """How many errors fewer we made there."""
    first, last = span
    return sum(theirs.errors[first:last]) - sum(ours.errors[first:last])
