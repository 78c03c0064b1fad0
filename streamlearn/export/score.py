"""How a model computes its score: weighted members, each a clipped sum over features.

A model of one rule has one member, which is not clipped. A member of the default treats values
beyond the largest that it has learned in a way of its own; see `Term`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamlearn.core.arrays import Array
    from streamlearn.estimators.linear import Linear


@dataclass(frozen=True, slots=True)
class Term:
    """What a feature of value x adds to the score of a member.

    It is `weight` x while |x| is at most `largest`. Beyond, x counts as `largest`, or with a
    `wealth`, as `wealth` x / (|x| (`absolute` + `beta` |x|) + `ridge`).
    """

    weight: float
    largest: float = math.inf
    wealth: float | None = None
    absolute: float = 0.0
    beta: float = 0.0
    ridge: float = 0.0

    def at(self, x: float) -> float:
        """Return what the value x adds.

        >>> Term(2.0, largest=3.0).at(5.0), Term(2.0, 3.0, wealth=8.0, beta=1.0).at(4.0)
        (6.0, 2.0)
        """
        size = abs(x)
        if size <= self.largest:
            return self.weight * x
        if self.wealth is None:
            return self.weight * math.copysign(self.largest, x)
        return self.wealth * x / (size * (self.absolute + self.beta * size) + self.ridge)

    @property
    def bound(self) -> float:
        """The largest size of what any value adds."""
        inside = abs(self.weight) * self.largest if self.weight else 0.0
        if self.wealth is None:
            return inside
        beyond = self.absolute + self.beta * self.largest
        return max(inside, abs(self.wealth) / beyond if beyond else math.inf)


@dataclass(frozen=True)
class MixtureTerm:
    """A sum over features, clipped to [low, high], with its share in the score."""

    share: float
    intercept: float
    low: float
    high: float
    weights: Array
    largest: Array | None = None
    wealth: Array | None = None
    absolute: Array | None = None
    ridge: Array | None = None
    beta: float = 0.0

    def term(self, slot: int) -> Term:
        """Return what the feature of a slot adds."""
        weight = float(self.weights[slot])
        if self.largest is None:
            return Term(weight)
        largest = float(self.largest[slot])
        if self.wealth is None or self.absolute is None:
            return Term(weight, largest)
        ridge = 0.0 if self.ridge is None else float(self.ridge[slot])
        wealth, absolute = float(self.wealth[slot]), float(self.absolute[slot])
        return Term(weight, largest, wealth, absolute, self.beta, ridge)

    def without_intercept(self) -> MixtureTerm:
        """Return this member, whose first slot is the intercept, with the intercept apart."""

        def rest(column: Array | None) -> Array | None:
            return None if column is None else column[1:]

        return replace(
            self,
            intercept=self.term(0).at(1.0),
            weights=self.weights[1:],
            largest=rest(self.largest),
            wealth=rest(self.wealth),
            absolute=rest(self.absolute),
            ridge=rest(self.ridge),
        )

    @property
    def clipped(self) -> bool:
        """Whether the sum is clipped."""
        return not (math.isinf(self.low) and math.isinf(self.high))

    @property
    def used(self) -> Array:
        """The slots that add something."""
        used = self.weights != 0.0
        if self.wealth is not None:
            used |= self.wealth != 0.0
        return np.flatnonzero(used)


@dataclass(frozen=True)
class Output:
    """A score: `offset` plus the shares of the members."""

    name: Any  # the label or the target; None with one output
    offset: float
    members: list[MixtureTerm] = field(default_factory=list)

    @property
    def used(self) -> Array:
        """The slots that add something."""
        return np.unique(np.concatenate([member.used for member in self.members]))


def outputs_of(model: Linear) -> list[Output]:
    """Return how each output of a model is computed."""
    learner = model.engine.learner
    forms, free = learner.scoring()
    names = model.outputs if len(forms) > 1 else [None]
    return [
        Output(
            name,
            0.0 if free is None else float(free[k]),
            list(members_of(form, 1.0, learner.shift)),
        )
        for k, (name, form) in enumerate(zip(names, forms, strict=False))
    ]


def members_of(form: Mapping[str, Any], share: float, shift: int) -> Iterator[MixtureTerm]:
    """Yield the members of a form of `docs/reference/snapshots.md`."""
    if form["kind"] == "mixture":
        for part, member in zip(form["shares"], form["members"], strict=True):
            yield from members_of(member, share * part, shift)
        return
    columns = form["columns"]
    weights = columns["weight"] * form.get("factor", 1.0)
    if "inverse" in columns:
        weights = weights * columns["inverse"]
    whole = MixtureTerm(
        share,
        0.0,
        form.get("low", -math.inf),
        form.get("high", math.inf),
        weights,
        columns.get("largest"),
        columns.get("wealth"),
        columns.get("absolute"),
        columns.get("ridge"),
        form.get("beta", 1.0),
    )
    yield whole.without_intercept() if shift else whole
