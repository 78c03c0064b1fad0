"""The board as plain data for the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from streamlearn.core.invalid_record import CODES
from streamlearn.telemetry.catalog import METRICS

if TYPE_CHECKING:
    from streamlearn.telemetry.board import Board


def status(board: Board, *, config: bool) -> dict[str, Any]:
    """Return the current values."""
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
        "note": about.note,
        "rate": about.rate,
        "regret_enabled": about.regret,
        "invalid_records": [bad._asdict() for bad in reversed(list(board.invalid_records))],
        "reasons": CODES,
        "learners": [learner(board, name) for name in about.learners],
        "partitions": partitions(board),
        "workers": workers(board),
        "served": [{key: finite(x) for key, x in row.items()} for row in about.served],
    }
    for name, metric in METRICS.items():
        if not metric.labels and metric.kind != "info":
            found[name] = board.value(name)
    found["invalid_records_total"] = {
        labels[0]: count for labels, count in board.values("invalid_records_total").items()
    }
    refused = board.values("rounds_refused_total")
    found["rounds_refused_total"] = {labels[0]: count for labels, count in refused.items()}
    found["events_polled_total"] = sum(board.values("events_polled_total").values())
    outcomes = board.values("delayed_labels_total")
    found["delayed_labels_total"] = {labels[0]: count for labels, count in outcomes.items()}
    found["version"] = next((labels[0] for labels in board.values("build_info")), "")
    if config:
        found["config"] = about.config
    return found


def finite(value: Any) -> Any:
    """Return a value, or None for a number that JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def learner(board: Board, name: str) -> dict[str, Any]:
    """Return the values of one learner."""
    mixture = board.values("mixture_weight_ratio")
    info = [labels for labels in board.values("learner_info") if labels[0] == name]
    return {
        "name": name,
        "model": info[0][1] if info else "",
        "loss_name": info[0][2] if info else "",
        "comparator": info[0][3] if info else "",
        "regret_unknown": board.about.regret_unknown.get(name),
        "mixture": {member: share for (who, member), share in mixture.items() if who == name},
        **board.of_learner(name),
    }


def partitions(board: Board) -> list[dict[str, Any]]:
    """Return lag and position of each partition."""
    lag, offsets = board.values("lag_events"), board.values("position_offset")
    places = list(dict.fromkeys([*offsets, *lag]))
    return [
        {"topic": p[0], "partition": p[1], "lag": lag.get(p), "offset": offsets.get(p)}
        for p in places
    ]


def workers(board: Board) -> list[dict[str, Any]]:
    """Return what is known of each worker."""
    partitions, rates, lags, rounds = (
        board.values(f"worker_{name}")
        for name in ("partitions", "events_per_second", "lag_events", "round_timestamp_seconds")
    )
    return [
        {
            "worker": one[0],
            "partitions": count,
            "rate": rates.get(one),
            "lag": lags.get(one),
            "round": rounds.get(one),
        }
        for one, count in partitions.items()
    ]


def weights(board: Board, name: str, top: int, search: str) -> dict[str, Any] | None:
    """Return a learner's largest weights whose names contain a text; None if it is unknown."""
    if name not in board.weights:
        if name in board.about.learners:
            return {"learner": name, "time": None, "kept": 0, "weights": []}
        return None
    kept, wanted = board.weights[name], search.casefold()
    found = [weight for weight in kept if wanted in weight.name.casefold()]
    return {
        "learner": name,
        "time": board.weights_time,
        "kept": len(kept),  # the number of largest weights that are searched
        "matching": len(found),
        "weights": [weight._asdict() for weight in found[:top]],
    }
