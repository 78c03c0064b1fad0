"""Summarize a run of the demo in words; every number and name is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamlearn.cli.actions.demo.explained import explained
from streamlearn.cli.tables import cell

if TYPE_CHECKING:
    from streamlearn.cli.actions.demo.files import DemoFiles
    from streamlearn.cli.actions.demo.view import Row, View

WINDOW = 3000  # events, at least, that errors after the change are averaged over
NEAR = 0.01  # of the error rate: as before
MORAL = (
    "That is what streamlearn does with your events: it learns each as it comes, follows what "
    "changes, keeps the few weights that matter, and says why."
)


@dataclass(frozen=True)
class Summary:
    """The text, and the facts in it."""

    text: str
    facts: dict[str, Any]


class Recovery(NamedTuple):
    """What the change of the truth did to a learner."""

    before: float  # its error rate in the quarter of the stream before
    worst: float  # right after
    events: int | None  # until its distance from the truth was as before; None: not yet


def summarize(view: View, files: DemoFiles, shown: str) -> Summary:
    """Return the summary of a run, after saving the learner that is shown."""
    if not view.seen or view.learners is None:
        return Summary("Interrupted before the first event.\n", {"events": 0})
    rows = {row.name: row for row in view.rows() if not row.is_truth}
    truth = next(row for row in view.rows() if row.is_truth)
    winner = min(rows.values(), key=lambda row: row.error)
    usual = min(view.clicked, view.seen - view.clicked) / view.seen
    back = recovery(view, winner.name)
    model = next(learner.model for learner in view.learners if learner.name == shown)
    why = explained(model, view.stream, view.seen)
    is_saved = files.save(model, view.decoder_state(), view.stream, view.seen)
    paragraphs = [
        errors(view, winner, truth, usual),
        *([change(view, winner.name, back)] if back is not None else []),
        weights(rows[shown], truth.kept, model.reader.size),
        why.text(shown),
        MORAL,
        files.text(shown, is_saved=is_saved),
    ]
    facts = {
        "events": view.seen,
        "events/s": view.rate,
        "constant error": usual,
        "truth's error": truth.error,
        "true weights": truth.kept,
        "winner": winner.name,
        "change": None if back is None else back._asdict(),
        "learners": {
            row.name: {
                "error": row.error,
                "regret": row.regret,
                "non-zeros": row.kept,
                "real": row.real,
            }
            for row in rows.values()
        },
        "explained": why.facts(),
        "saved": str(files.directory) if is_saved else None,
    }
    return Summary("\n\n".join(part.rstrip("\n") for part in paragraphs) + "\n", facts)


def errors(view: View, winner: Row, truth: Row, usual: float) -> str:
    """Compare the best learner with the truth and with a constant prediction."""
    constant = "click" if view.clicked > view.seen / 2 else "no click"
    return (
        f"Over {view.seen:,} events, {winner.name} was wrong on {winner.error:.1%} of those it had "
        f'not learned yet. The truth itself errs on {truth.error:.1%}, always saying "{constant}" '
        f"on {usual:.1%}."
    )


def change(view: View, name: str, back: Recovery) -> str:
    """Describe what the change of the truth did to the best learner."""
    end = (
        f"and were as near to the truth's as before after {back.events:,} more"
        if back.events is not None
        else "and were not yet as near to the truth's as before at the end"
    )
    return (
        f"What mattered changed after event {view.half:,}: the errors of {name} rose from "
        f"{back.before:.1%} to {back.worst:.1%}, {end}. Nobody told it."
    )


def weights(row: Row, true: int, features: int) -> str:
    """Compare the weights that the shown learner kept with the truth."""
    return (
        f"{row.name}: {cell(row.kept)} weights kept, {cell(row.real)} real. The truth has {true}, "
        f"among {features:,} features that the stream showed."
    )


def recovery(view: View, name: str) -> Recovery | None:
    """Return what the change did to a learner; None if too little of the stream shows it."""
    if view.half is None:
        return None
    ours, truth = view.tracks[name], view.truth
    half, span = view.half // view.length, max(-(-WINDOW // view.length), 3)
    if half < span or len(ours.errors) < half + span:
        return None
    usual = ours.mean(half // 2, half) - truth.mean(half // 2, half)
    starts = range(half, len(ours.errors) - span + 1)
    events = next(
        (
            (k - half) * view.length
            for k in starts
            if ours.mean(k, k + span) - truth.mean(k, k + span) <= usual + NEAR
        ),
        None,
    )
    return Recovery(ours.mean(half // 2, half), ours.mean(half, half + 1), events)
