"""The mixture of rules; with its default members, under l1 and l2 too (sparse.py)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .losses import Loss
from .penalties import Penalty
from .rule import Rule, Vector
from .sparse import _SparseMixture
from .tuned import BaseRate, Clip, CoinBetting, DiagonalNewton, NormalizedAdaptive, _Tuned

Maker = Callable[[int, Loss, Penalty], Rule]

DEFAULT: tuple[Maker, ...] = (
    partial(NormalizedAdaptive, rate=2.0, size="typical"),
    partial(DiagonalNewton, size="typical"),
    CoinBetting,
    partial(NormalizedAdaptive, rate=16.0, update="invariant", size="typical"),
    BaseRate,
)


class Mixture(Rule):
    """Exponentiated gradient over the members' scores: one linear model, w = sum pi_k w_k.

    `rules`: what makes the members, e.g. partial(NormalizedAdaptive, rate=4.0). The scores
    p_k are the members' own, those they learn from.
    """

    batches = False

    def __init__(
        self,
        n: int,
        loss: Loss,
        penalty: Penalty,
        rules: Sequence[Maker] | None = None,
        share: float = 1e-3,
    ) -> None:
        super().__init__(n, loss, penalty)
        self.sparse = None
        if rules is None and (getattr(penalty, "l1", 0.0) > 0.0 or penalty.l2 > 0.0):
            self.sparse = _SparseMixture(n, loss, penalty, share)
        self.members = [make(n, loss, penalty) for make in (DEFAULT if rules is None else rules)]
        self.share = share
        self.clip = Clip(loss)
        K = len(self.members)
        self.pi = np.full(K, 1.0 / K)
        self.c = np.zeros(K)
        self.V = 0.0
        self.scores = np.zeros(K)
        self.score = 0.0
        self.member_loss = np.zeros(K)  # progressive

    def move(self, X: Vector, y: Vector, weight: Vector) -> None:
        if len(X) != 1:
            raise ValueError("one row at a time")
        if self.sparse is not None:
            self.sparse.step(X, y, weight)
            self.w, self.score = self.sparse.w, self.sparse.score
            return
        x, label, K = X[0], float(y[0]), len(self.members)
        for k, member in enumerate(self.members):
            # members that tune themselves guard their scores, others do not
            if isinstance(member, _Tuned):
                self.scores[k] = self.clip(float(x @ member.rescaled(x)))
            else:
                self.scores[k] = x @ member.w
            self.member_loss[k] += weight[0] * float(self.loss.value(self.scores[k], label))
        p = self.score = float(self.pi @ self.scores)
        g = float(weight[0]) * float(self.loss.slope(p, label))
        apart = self.scores - p
        self.c = self.c + g * apart
        self.V += g**2 * float(self.pi @ apart**2)
        if self.V > 0.0:
            power = -np.sqrt(np.log(K) / self.V) * self.c
            pi = np.exp(power - np.max(power))
            self.pi = (1.0 - self.share) * pi / np.sum(pi) + self.share / K
        self.clip.see(label)
        for member in self.members:
            member.step(X, y, weight)
        self.w = self.pi @ np.stack([member.w for member in self.members])
