"""Show a model, or explain a prediction."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.cli import saved_models
from streamlearn.cli.tables import counted, show, show_facts, show_json
from streamlearn.config.expressions import unparse
from streamlearn.estimators.classifier import LinearClassifier

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.cli.saved_models import Model
    from streamlearn.estimators.linear import Contribution, Event
    from streamlearn.stream.formats.label_set import LabelSet

TOP = 20  # weights that are shown


def run(options: Options) -> int:
    """Show the model, or the contributions to one prediction."""
    model, notes = saved_models.load(options.model, options.learner)
    if options.why is not None:
        labels = saved_models.labels_of(model, notes)
        explain(
            model,
            saved_models.features(read_event(options.why), notes, model.reader.fields),
            labels,
            options,
        )
        return 0
    facts = {**about(model), **made(notes)}
    weights = largest(model, options.top or TOP)
    history = notes.get("history", [])
    if options.json:
        show_json({**facts, "weights": weights, "history": history})
        return 0
    show_facts(facts)
    for title, rows in (("history", history), (f"{options.top or TOP} largest weights", weights)):
        if rows:
            sys.stdout.write(f"\n{title}\n")
            show(rows)
    return 0


def about(model: Model) -> dict[str, Any]:
    """Return what the model is made of, and its counts."""
    loss, penalty, _ = model.objective
    bound, reader = model.regret_bound(), model.reader
    return {
        "model": unparse(model),
        "rule": unparse(model.rules[0]),
        "loss": unparse(loss),
        "penalty": unparse(penalty),
        "features": f"{reader!r}, {reader.size:,} slots",
        **({"labels": model.labels} if isinstance(model, LinearClassifier) else {}),
        "steps": model.steps,
        "non-zeros": model.nonzero,
        "intercept": model.intercept,
        "penalty value": model.penalty_value,
        "regret bound": bound if bound is not None else f"none: {model.why_no_bound()}",
    }


def made(notes: dict[str, Any]) -> dict[str, Any]:
    """Return the origin of the model."""
    return {name: notes[name] for name in ("made by", "made at") if name in notes}


def largest(model: Model, top: int) -> list[dict[str, Any]]:
    """Return the largest weights by absolute value, in descending order."""
    coefficients = model.coefficients()
    names = model.feature_names()
    labels = model.outputs
    order = np.argsort(-np.abs(coefficients).ravel(), kind="stable")[:top]
    rows = []
    for k, j in zip(*np.unravel_index(order, coefficients.shape), strict=True):
        if coefficients[k, j] == 0.0:
            break
        label = {"label": str(labels[k])} if len(coefficients) > 1 else {}
        rows.append({**label, "feature": str(names[j]), "weight": float(coefficients[k, j])})
    return rows


def read_event(path: str) -> dict[str, Any]:
    """Read a file with one event."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        event = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected one event, a JSON object: {error}") from None
    if not isinstance(event, dict):
        raise ValueError(f"{path}: expected one event, a JSON object")
    return event


def explain(model: Model, event: Event, labels: LabelSet, options: Options) -> None:
    """Show what each feature adds to the score of the predicted label."""
    score, prediction = model.score_one(event), model.predict_one(event)
    facts: dict[str, Any] = {"prediction": prediction}
    if isinstance(model, LinearClassifier) and len(model.labels) > 1:
        # as in `predict`: of two labels the probability is that of the positive one
        probabilities = model.predict_proba_one(event)
        if labels.positive in probabilities:
            facts["probability"] = probabilities[labels.positive]
        else:
            facts["probabilities"] = {str(label): value for label, value in probabilities.items()}
    if isinstance(score, dict):
        score = score[prediction if prediction in model.outputs else model.outputs[0]]
    rows = [row(one) for one in model.explain_one(event)]
    facts |= {"score": score, "sum": sum(one["adds"] for one in rows)}
    others = [] if options.top is None else rows[options.top :]
    rows = rows[: options.top]
    if options.json:
        show_json({**facts, "contributions": rows})
        return
    show_facts(facts)
    if abs(score - facts["sum"]) > 1e-6 * (1.0 + abs(score)):
        sys.stdout.write("the rule clips scores to the range of the labels seen\n")
    sys.stdout.write("\n")
    show(rows)
    if others:
        total = sum(one["adds"] for one in others)
        sys.stdout.write(f"and {counted(len(others), 'feature')} more, which add {total:.4g}\n")


def row(one: Contribution) -> dict[str, Any]:
    """Return a row of the table."""
    name = "(intercept)" if one.name is None else str(one.name)
    return {"feature": name, "value": one.value, "weight": one.weight, "adds": one.contribution}
