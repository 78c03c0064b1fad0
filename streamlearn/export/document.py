"""A model as plain data, for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from streamlearn.export.score import MixtureTerm, outputs_of
from streamlearn.features import Names

if TYPE_CHECKING:
    from streamlearn.estimators.linear import Linear

FORMAT = 1


def document(model: Linear) -> dict[str, Any]:
    """Return features and weights, with which another program computes the same scores.

    docs/guides/export.md describes them.

    >>> import streamlearn as sl
    >>> model = sl.PegasosClassifier(l2=0.1)
    >>> model.learn_one({"user": "ann", "price": 0.5}, True)
    >>> found = document(model)
    >>> found["labels"], [sorted(one["weights"]) for one in found["outputs"][0]["members"]]
    ([False, True], [['price', 'user=ann']])
    """
    reader = model.reader
    state = reader.state(names=False) if isinstance(reader, Names) else reader.state()
    features = {
        name: state[name] for name in ("kind", "bits", "fields", "buckets") if name in state
    }
    return {
        "format": FORMAT,
        "estimator": type(model).__name__,
        "loss": repr(model.objective.loss),
        "labels": getattr(model, "labels", None),
        "features": features,
        "outputs": [
            {
                "name": output.name,
                "offset": output.offset,
                "members": [plain(model, member) for member in output.members],
            }
            for output in outputs_of(model)
        ],
    }


def plain(model: Linear, member: MixtureTerm) -> dict[str, Any]:
    """Return a member as plain data."""
    slots = member.used.tolist()
    exact = isinstance(model.reader, Names)
    names = [str(model.reader.name_of(slot)) if exact else str(slot) for slot in slots]
    found: dict[str, Any] = {
        "share": member.share,
        "low": None if math.isinf(member.low) else member.low,
        "high": None if math.isinf(member.high) else member.high,
        "intercept": member.intercept,
        "weights": dict(zip(names, member.weights[slots].tolist(), strict=True)),
    }
    for name in ("largest", "wealth", "absolute", "ridge"):
        column = getattr(member, name)
        if column is not None:
            found[name] = dict(zip(names, column[slots].tolist(), strict=True))
    return {**found, "beta": member.beta} if member.wealth is not None else found
