"""What the page is told of the board, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.telemetry.catalog import METRICS, REASONS

if TYPE_CHECKING:
    from streamlearn.telemetry.board import Board


def status(board: Board, *, config: bool) -> dict[str, Any]:
    """Everything of now."""
    about = board.about
    found: dict[str, Any] = {
        "state": about.state,
        "reason": about.reason,
        "ended": about.ended,
        "exit": about.exit,
        "source": about.source,
        "started": about.started,
        "window": about.window,
        "keeps": about.keeps,
        "rate": about.rate,
        "regret_followed": about.regret,
        "bad_events": [bad._asdict() for bad in reversed(list(board.bad))],
        "reasons": REASONS,
        "learners": [learner(board, name) for name in about.learners],
        "partitions": partitions(board),
    }
    for name, metric in METRICS.items():
        if not metric.labels and metric.kind != "info":
            found[name] = board.value(name)
    found["events_bad_total"] = {
        labels[0]: count for labels, count in board.values("events_bad_total").items()
    }
    found["events_polled_total"] = sum(board.values("events_polled_total").values())
    fates = board.values("late_labels_total")
    found["late_labels_total"] = {labels[0]: count for labels, count in fates.items()}
    found["version"] = next((labels[0] for labels in board.values("build_info")), "")
    if config:
        found["config"] = about.config
    return found


def learner(board: Board, name: str) -> dict[str, Any]:
    """All that is known of one learner."""
    mixture = board.values("mixture_weight_ratio")
    info = [labels for labels in board.values("learner_info") if labels[0] == name]
    return {
        "name": name,
        "model": info[0][1] if info else "",
        "loss_is": info[0][2] if info else "",
        "comparator": info[0][3] if info else "",
        "regret_unknown": board.about.regret_unknown.get(name),
        "mixture": {member: share for (who, member), share in mixture.items() if who == name},
        **board.of_learner(name),
    }


def partitions(board: Board) -> list[dict[str, Any]]:
    """Lag and position of each partition."""
    lag, offsets = board.values("lag_events"), board.values("position_offset")
    places = list(dict.fromkeys([*offsets, *lag]))
    return [
        {"topic": p[0], "partition": p[1], "lag": lag.get(p), "offset": offsets.get(p)}
        for p in places
    ]


def weights(board: Board, name: str, top: int, search: str) -> dict[str, Any] | None:
    """The largest weights of a learner whose names hold a text; None without such a learner."""
    if name not in board.weights:
        if name in board.about.learners:
            return {"learner": name, "time": None, "kept": 0, "weights": []}
        return None
    kept, wanted = board.weights[name], search.casefold()
    found = [weight for weight in kept if wanted in weight.name.casefold()]
    return {
        "learner": name,
        "time": board.weights_time,
        "kept": len(kept),  # a search looks through so many of the largest
        "matching": len(found),
        "weights": [weight._asdict() for weight in found[:top]],
    }
