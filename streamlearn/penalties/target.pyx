"""A number of weights in place of a strength."""

from streamlearn.penalties.penalty cimport Penalty

from streamlearn.core.integers import integer
from streamlearn.penalties.norms import Zero


cdef class TargetNonzero(Penalty):
    """About k non-zero weights: the default rule steers the strength of l1 so that they remain.

    With several classes or targets, each has k weights of its own. There are fewer where fewer
    features were seen. The strength in use is `model.rules[0].strength`. Psi(w) is 0: nothing is
    paid for the weights, so the objective is the loss, and no regret is known.

    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier(penalty=TargetNonzero(2))
    >>> for i in range(200):
    ...     model.learn_one({"a": i % 2, "b": i % 3, "c": i % 5, "d": i % 7}, i % 6 < 3)
    >>> model.nonzero
    2
    """

    _names = ("k",)
    _examples = ((3,), (200,))
    simple = True
    steered = True
    cdef readonly object k

    def __init__(self, k):
        self.k = integer("TargetNonzero: k", k, 1)

    def value(self, w):
        return 0.0

    def prox(self, v, step=1.0):
        return Zero().prox(v, step)
