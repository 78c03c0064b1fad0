"""The mixture of rules, which under l1 and l2 charges its members their penalties."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from .composite import _Composite
from .losses import Loss
from .penalties import Penalty, TargetNonzero
from .rule import Rule, Vector
from .tuned import (
    BaseRate,
    Clip,
    CoinBetting,
    DiagonalNewton,
    MirrorDescent,
    NormalizedAdaptive,
    PolynomialAverage,
    _Tuned,
)

Maker = Callable[[int, Loss, Penalty], Rule]

DEFAULT: tuple[Maker, ...] = (
    partial(NormalizedAdaptive, rate=2.0, size="typical"),
    partial(DiagonalNewton, size="typical"),
    CoinBetting,
    partial(NormalizedAdaptive, rate=16.0, update="invariant", size="typical"),
    BaseRate,
)
PENALIZED: tuple[Maker, ...] = (
    partial(NormalizedAdaptive, rate=2.0, size="typical"),
    CoinBetting,
    partial(DiagonalNewton, size="typical"),
    partial(MirrorDescent, rate=16.0),
    partial(PolynomialAverage, rule=partial(MirrorDescent, rate=16.0)),
    BaseRate,
)


class Mixture(Rule):
    """Exponentiated gradient over the members' scores: one linear model, w = sum pi_k w_k.

    `rules`: what makes the members, e.g. partial(NormalizedAdaptive, rate=4.0). The scores
    p_k are the members' own, those they learn from. The penalty of a member is the sum over slots
    of the penalties when each was last touched: an event changes it only where its features are.
    """

    batches = False
    free = 0
    targeted: ClassVar[Any] = None  # for TargetNonzero (target.py)

    def __new__(cls, *given: Any, **_: Any) -> Self:
        kind: Any = cls.targeted if isinstance(given[2], TargetNonzero) else cls
        made: Self = object.__new__(kind)
        return made

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        rules: Sequence[Maker] | None = None,
        share: float = 1e-3,
    ) -> None:
        super().__init__(n, loss, penalty)
        self.penalized = penalty.shrinks
        default = PENALIZED if self.penalized else DEFAULT
        self.members: list[Any] = [
            make(n, loss, penalty) for make in (default if rules is None else rules)
        ]
        self.share = share
        self.clip = Clip(loss)
        K = len(self.members)
        self.pi = np.full(K, 1.0 / K)
        self.c = np.zeros(K)
        self.V = 0.0
        self.scores = np.zeros(K)
        self.score = 0.0
        self.member_loss = np.zeros(K)  # progressive
        self.psi = np.zeros((K, n))
        self.selecting = np.array(
            [isinstance(member, _Composite) and member.selects for member in self.members]
        )
        if self.selecting.any():
            leader = self.members[int(np.argmax(self.selecting))]
            for k in np.flatnonzero(self.selecting):
                self.members[k].leader = leader

    def support(self) -> Any:
        """Where members that select weights have some that are not 0."""
        if self.penalty.l1 == 0.0 or not self.selecting.any():
            return True
        voters = self.selecting & (self.pi >= 0.1 * np.max(self.pi[self.selecting]))
        return np.any([self.members[k].w != 0.0 for k in np.flatnonzero(voters)], axis=0)

    def heard(self) -> Vector:
        if not self.penalized:
            return self.pi
        pi = np.where(self.pi >= 0.3 / len(self.pi), self.pi, 0.0)
        return np.asarray(pi / pi.sum())

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        if len(X) != 1:
            raise ValueError("one row at a time")
        x, label, K = X[0], float(y[0]), len(self.members)
        for k, member in enumerate(self.members):
            # members that tune themselves guard their scores, others do not
            if isinstance(member, _Tuned):
                self.scores[k] = self.clip(float(x @ member.rescaled(x)))
            else:
                self.scores[k] = x @ member.w
            self.member_loss[k] += weight[0] * float(self.loss.value(self.scores[k], label))
        heard = self.heard()
        p = self.score = float(heard @ self.scores)
        g = float(weight[0]) * float(self.loss.slope(p, label))
        self.clip.see(label)
        for member in self.members:
            if isinstance(member, _Tuned):
                member.free, member.support = self.free, self.support
            member.step(X, y, weight)
        d = g * (self.scores - p)
        if self.penalized:
            here = (x != 0.0) & (np.arange(self.n) >= self.free)
            size = np.abs(np.stack([member.w for member in self.members]))
            psi = self.penalty.l1 * size + 0.5 * self.penalty.l2 * size**2
            self.psi = np.where(here, psi, self.psi)
            d = d + self.charges()
        self.c = self.c + d
        self.V += float(self.pi @ d**2)
        if self.V > 0.0:
            power = -np.sqrt(np.log(K) / self.V) * self.c
            pi = np.exp(power - np.max(power))
            self.pi = (1.0 - self.share) * pi / np.sum(pi) + self.share / K
        self.steer(x)
        for member in self.members:
            if isinstance(member, _Tuned):
                member.refresh()
        self.w = self.heard() @ np.stack([member.w for member in self.members])

    def charges(self) -> Vector:
        """What each member pays more than the mixture for its weights."""
        psi = self.psi.sum(axis=1)
        return np.asarray(psi - self.heard() @ psi)

    def steer(self, x: Vector) -> None:
        """Set the strength of l1, where it follows the events."""
