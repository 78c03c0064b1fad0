"""What the demonstration has shown, in words: every number and every name in it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.cli.demo.view import STRETCHES

if TYPE_CHECKING:
    from streamlearn.cli.demo.view import Track, View
    from streamlearn.stream import Clicks

NEXT = """\
Try next:
  streamlearn demo --seed {seed} --no-drift
  streamlearn check config/clicks.toml
  streamlearn run --help
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
    first = (
        f"From {view.seen:,} events, {view.clicked / view.seen:.0%} of them clicks, "
        f"the learners came to err on {errors[winner]:.1%} ({winner}) to "
        f"{errors[order[-1]]:.1%} ({order[-1]}) of events not seen before, where the better "
        f"constant answer errs on {share:.1%}; of the {len(planted)} features that matter "
        f"{'now' if drifted else 'in truth'}, {finder} has {found[finder]} among its "
        f"{len(planted)} largest weights and keeps {kept[finder]:,} in all."
    )
    text = f"{first}\n{winner} won: {reason}.\n\n{NEXT.format(seed=stream.seed + 1)}"
    facts = {
        "events": view.seen,
        "events/s": view.rate,
        "constant error": share,
        "planted": len(planted),
        "winner": winner,
        "why": reason,
        "learners": {
            name: {"error": errors[name], "found": found[name], "non-zeros": kept[name]}
            for name in order
        },
    }
    return Story(text, facts)


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
            "right after it changed": (half, half + half // 3),
            "once it had adapted": (half + half // 3, None),
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
