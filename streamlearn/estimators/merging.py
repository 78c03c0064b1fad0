"""Merge what several copies of a model have learned from different events: see `rules.merging`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.engine.single import OneVersusRest
from streamlearn.errors import IncompatibleError
from streamlearn.rules import merging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.engine.joint import Joint
    from streamlearn.engine.single import Single
    from streamlearn.estimators.linear import Linear

State = dict[str, Any]


def why_no_merge(model: Linear) -> str | None:
    """Return why copies of a model cannot be merged; None if they can.

    >>> import streamlearn as sl
    >>> why_no_merge(sl.LinearClassifier()), why_no_merge(sl.LinearClassifier(calibrated=True))
    (None, 'calibration follows one stream of scores; use calibrated = false')
    """
    if model.average != "last":
        return f"its {model.average} average belongs to one stream; use average = 'last'"
    if model.batch != 1:
        return "mini-batches belong to one stream; use batch = 1"
    if model.calibrated:
        return "calibration follows one stream of scores; use calibrated = false"
    reasons = [rule.why_no_merge for rule in model.rules]
    return next((reason for reason in reasons if reason is not None), None)


def merged(model: Linear, base: Mapping[str, Any], states: Sequence[Mapping[str, Any]]) -> State:
    """Return the state of a model after copies have learned from `base` to these states.

    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier(sl.rules.DualAveraging(), features=sl.Hashing(4))
    >>> base, states = model.state(), []
    >>> for label in (False, True):
    ...     copy = model.clone()
    ...     copy.learn_one({"x": 1.0}, label)
    ...     states.append(copy.state())
    >>> model.restore(merged(model, base, states))
    Traceback (most recent call last):
    ...
    streamlearn.errors.IncompatibleError: the labels are not those of the base: know them before
    """
    known = base.get("labels")
    if any(state.get("labels") != known for state in states):
        raise IncompatibleError("the labels are not those of the base: know them before")
    learner = merged_learner(
        model.engine.learner, base["learner"], [state["learner"] for state in states]
    )
    return {**base, "learner": learner}


def merged_learner(
    learner: Single | OneVersusRest | Joint, base: State, states: Sequence[State]
) -> State:
    """Return the merged state of a model's engine."""
    if isinstance(learner, OneVersusRest):
        return {
            "singles": [
                merged_learner(single, base["singles"][k], [one["singles"][k] for one in states])
                for k, single in enumerate(learner.singles)
            ]
        }
    [rule] = learner.rules()
    rules = {"weights": rule}
    if "intercept" in base:
        rules["intercept"] = rule.for_intercept()
    result = {**base, "features": max(one["features"] for one in (base, *states))}
    for name, own in rules.items():
        before, *after = (one[name]["rule"] for one in (base, *states))
        result[name] = {"rule": merging.merged(own, before, after)}
    return result
