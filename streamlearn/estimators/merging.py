"""Merge what several copies of a model have learned from different events: see `rules.merging`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.engine.single import OneVersusRest
from streamlearn.errors import IncompatibleError
from streamlearn.rules import merging, moves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.engine.joint import Joint
    from streamlearn.engine.single import Single
    from streamlearn.estimators.linear import Linear
    from streamlearn.rules.rule import Rule


@dataclass(frozen=True)
class ModelMove:
    """What a model has learned since a base: see `rules.moves`."""

    outputs: list[Any]  # whose labels these are
    features: int
    rules: list[moves.Move]  # of all outputs and intercepts

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(move.nbytes for move in self.rules)

    @property
    def has_nan(self) -> bool:
        """Whether any number of a slot, or a scalar, is not a number."""
        return any(move.has_nan for move in self.rules)


class ModelSnapshot:
    """A base: a copy of a model's state, from which it learns, and to which it returns.

    The model must keep its labels.
    """

    def __init__(self, model: Linear) -> None:
        self.model = model
        self._rules = [moves.Snapshot(rule) for rule in all_rules(model)]

    def moved(self) -> ModelMove:
        """Return what the model has learned."""
        features = self.model.engine.learner.features
        return ModelMove(self.model.outputs, features, [one.moved() for one in self._rules])

    def restore(self, move: ModelMove | None = None) -> None:
        """Let the model forget what it has learned: `move`, if that is known."""
        for k, one in enumerate(self._rules):
            one.restore(None if move is None else move.rules[k])

    def advance(self, move: ModelMove) -> None:
        """Move with the model, which has learned nothing since."""
        self.model.engine.learner.extend(move.features)
        for one, own in zip(self._rules, move.rules, strict=True):
            one.advance(own)


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


def merge(model: Linear, learned: Sequence[ModelMove]) -> ModelMove:
    """Move a model by what copies of it have learned, and return how it moved.

    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier(sl.rules.DualAveraging(), features=sl.Hashing(4))
    >>> model.know_labels([False, True])
    >>> learned = []
    >>> for label in (False, True):
    ...     copy = model.clone()
    ...     copy.know_labels([False, True])
    ...     base = ModelSnapshot(copy)
    ...     copy.learn_one({"x": 1.0}, label)
    ...     learned.append(base.moved())
    >>> merge(model, learned).features, model.predict_proba_one({"x": 1.0})
    (16, {False: 0.5, True: 0.5})
    """
    if any(move.outputs != model.outputs for move in learned):
        raise IncompatibleError("the labels are not those of the base: know them before")
    learner = model.engine.learner
    learner.extend(max((move.features for move in learned), default=0))
    found = []
    for k, rule in enumerate(all_rules(model)):
        found.append(merging.merged(rule, [move.rules[k] for move in learned]))
        moves.put(rule, found[-1])
    return ModelMove(model.outputs, learner.features, found)


def all_rules(model: Linear) -> list[Rule]:
    """Return the rules of a model's outputs, and of their free intercepts."""
    learner = model.engine.learner
    singles = learner.singles if isinstance(learner, OneVersusRest) else [learner]
    return [rule for single in singles for rule in own_rules(single)]


def own_rules(learner: Single | Joint) -> list[Rule]:
    """Return the rules of one output."""
    weights = (learner.weights, learner.free_intercept)
    return [one.rule for one in weights if one is not None]
