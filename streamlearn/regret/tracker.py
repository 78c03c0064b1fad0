"""A learner with its ledger."""

from __future__ import annotations

import dataclasses
import os
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamlearn.engine.single import OneVersusRest
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.hindsight.sharded import LocalHost
from streamlearn.losses import VectorLoss
from streamlearn.penalties import Zero
from streamlearn.regret.all_events import LearnedShard
from streamlearn.regret.ledger import MEMORY_BYTES, Ledger
from streamlearn.regret.member import FixedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.engine.joint import Joint
    from streamlearn.engine.single import Single
    from streamlearn.estimators.linear import Event
    from streamlearn.hindsight import Solution
    from streamlearn.hindsight.sharded import Host, ShardSource
    from streamlearn.regret.report import Report

ONE_VERSUS_REST = (
    "one versus the rest is a separate problem for each class, so events and losses are counted up "
    "to the third class only; for a regret of all classes use a joint loss, Softmax or "
    "MulticlassHinge"
)

MERGED = (
    "it is proved for one learner of all events; workers learned parts of them, and their models "
    "were merged"
)


class Tracker:
    """Learn and predict as an estimator does, and track its regret.

    Use `tracker.estimator` for everything else.

    Parameters
    ----------
    estimator
        A LinearClassifier, a LinearRegressor or a preset, before its first event.
    memory_bytes
        The memory for events; None: keep all. While all events fit, the comparator is solved on all
        events; after that, the regret is estimated from a uniform sample of them.
    seed
        Of the sample; None: a random one.
    beside
        A tracker whose estimator learns the same events: both use one sample of them, and one
        comparator if their objectives are the same.
    ledger_state
        The state of its ledger, to resume from if the estimator has learned already.
    part
        Whether its events are a part of another tracker's: see `Ledger.join`.
    options
        Options of `Ledger`: gap, seconds, cpu_share; targets.

    Examples
    --------
    >>> import streamlearn as sl
    >>> tracker = sl.regret.Tracker(sl.PegasosRegressor(l2=0.1), seed=0)
    >>> for i in range(100):
    ...     tracker.learn_one({"x": i % 5}, i % 5)
    >>> report = tracker.report()
    >>> report.events, report.certified, report.regret_low <= report.regret_high
    (100, True, True)
    """

    def __init__(
        self,
        estimator: LinearClassifier | LinearRegressor,
        memory_bytes: int | None = MEMORY_BYTES,
        seed: int | None = None,
        beside: Tracker | None = None,
        ledger_state: dict[str, Any] | None = None,
        *,
        part: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(estimator, LinearClassifier | LinearRegressor):
            raise ValueError(f"estimator must be a streamlearn estimator, not {estimator!r}")
        if estimator.steps and ledger_state is None and not part:
            raise ValueError(
                f"estimator has learned {estimator.steps} steps already, but regret counts from "
                "the first event; use a new one (estimator.clone())"
            )
        if beside is not None and sample_key(estimator) != sample_key(beside.estimator):
            raise ValueError(
                "beside has other labels or another class_weight; use a tracker without it"
            )
        self.estimator: LinearClassifier | LinearRegressor = estimator
        self._engine = estimator.engine
        learner = self._engine.learner
        loss, penalty, intercept = estimator.objective
        if isinstance(loss, VectorLoss) and loss.kind == "multitarget":
            options.setdefault("targets", loss.outputs)
        else:
            options["targets"] = 1
        if not options["targets"]:
            raise ValueError(f"{loss!r} needs the number of targets, as in Tracker(.., targets=2)")
        # As in the papers of rules that weigh the penalty once, regret is of the losses alone.
        self._includes_penalty = not any(rule.penalty_counts_once for rule in learner.rules())
        self.ledger: Ledger = Ledger(
            loss,
            penalty if self._includes_penalty else Zero(),
            intercept=intercept,
            memory_bytes=memory_bytes,
            seed=int.from_bytes(os.urandom(8)) if seed is None else seed,
            beside=None if beside is None else beside.ledger,
            **options,
        )
        if self._includes_penalty:
            self.ledger.sums.read_penalty = lambda: estimator.penalty_value
            self.ledger.sums.learner = learner
        self.ledger.read_weights = self._weights
        if ledger_state is not None:
            self.ledger.restore(ledger_state)
        if not isinstance(learner, OneVersusRest):
            learner.watcher = self.ledger.sums
        # The engine reports each event to the ledger, so these are the estimator's own methods.
        self.learn_many = estimator.learn_many
        self.learn_rows = estimator.learn_rows
        self.progressive_rows = estimator.progressive_rows
        self.progressive_events = estimator.progressive_events
        self.predict_one = estimator.predict_one
        self.predict_many = estimator.predict_many
        self.score_one = estimator.score_one
        self.score_rows = estimator.score_rows

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn an event as the estimator does, without the cost of a call to it."""
        if not self._engine.learn_one(x, y, w):
            self.estimator.learn_one(x, y, w)

    # `__getattr__` would forward all names, but makes every lookup slower, `learn_one` too.
    weights = property(attrgetter("estimator.weights"))
    intercept = property(attrgetter("estimator.intercept"))
    nonzero = property(attrgetter("estimator.nonzero"))
    penalty_value = property(attrgetter("estimator.penalty_value"))
    steps = property(attrgetter("estimator.steps"))

    @property
    def _learner(self) -> Single | OneVersusRest | Joint:
        return self._engine.learner

    def report(self, seconds: float = 10.0) -> Report:
        """Return the current report, after solving the comparator for up to `seconds`."""
        one_versus_rest = isinstance(self._learner, OneVersusRest)
        if one_versus_rest:
            return dataclasses.replace(self.ledger.paid(), why_unknown=ONE_VERSUS_REST)
        report = dataclasses.replace(self.ledger.report(seconds), nonzero=self.estimator.nonzero)
        found = self.ledger.findings
        if report.regret is None or found is None:
            return report
        bound, why = self._bound(found.minimum.solution)
        return dataclasses.replace(report, bound=bound, why_no_bound=why)

    def solve_all(
        self, shards: Sequence[ShardSource], host: Host | None = None, seconds: float = 600.0
    ) -> None:
        """Solve the comparator on all events, whatever memory they take; the next report has it.

        Parameters
        ----------
        shards
            The events that were learned, in shards: see `hindsight.solve_shards`. Their features
            must have the slots of the estimator's reader.
        host
            Where the shards are: None is a thread for each in this process.
        seconds
            The time limit, after the shards are loaded.
        """
        estimator, learner = self.estimator, self._learner
        if isinstance(learner, OneVersusRest) or not estimator.steps:
            return
        labels = estimator.labels if isinstance(estimator, LinearClassifier) else []
        factors, inside = class_weight(estimator), self.ledger.intercept == "inside"
        learned = [LearnedShard(one, labels, factors, inside) for one in shards]
        self.ledger.solve_all(learned, LocalHost() if host is None else host, seconds)

    def _weights(self) -> FixedModel | None:
        """Return the current weights, as a fixed model."""
        learner = self._learner
        if isinstance(learner, OneVersusRest):
            return None
        w, intercepts = learner.coefficients(), learner.intercepts()
        if self.ledger.intercept == "inside":
            w, intercepts = np.column_stack([intercepts, w]), np.zeros_like(intercepts)
        if isinstance(self.estimator.objective.loss, VectorLoss):
            return FixedModel(w, intercepts)
        return FixedModel(w[0], float(intercepts[0]))

    def _bound(self, solution: Solution) -> tuple[float | None, str | None]:
        """Return the paper's bound on the sum over events, or why there is none."""
        learner, batch = self._learner, self.estimator.batch
        if isinstance(learner, OneVersusRest):
            return None, ONE_VERSUS_REST
        if self.ledger.sums.joined:
            return None, MERGED
        if self.estimator.average != "last":
            return None, "the bound is proved for the iterates of the rule, not for their averages"
        if batch > 1 and learner.batch is not None and learner.batch.count:
            return None, f"the bound is proved for whole batches of {batch}, and one is incomplete"
        bound, why = learner.bound(*self._for_learner(solution))
        # The rule learns the mean of a batch.
        return (None if bound is None else batch * bound), why

    def _for_learner(self, solution: Solution) -> tuple[Array, Any]:
        """Return the comparator's weights for the learner's slots, and its intercept."""
        features = self._learner.features
        w, intercept = solution.w, solution.intercept
        if self.ledger.intercept == "inside":
            w, intercept = w[..., 1:], w[..., 0]
        wide = np.zeros((*w.shape[:-1], features))
        wide[..., : w.shape[-1]] = w[..., :features]
        return wide, intercept

    def close(self) -> None:
        """Stop background solves; leaving `with Tracker(..) as tracker:` does this too."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> dict[str, Any]:
        """Return the learner and its ledger as plain data and arrays."""
        return {"estimator": self.estimator.state(), "ledger": self.ledger.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit."""
        self.estimator.restore(state["estimator"])
        self.ledger.restore(state["ledger"])
        if not isinstance(self._learner, OneVersusRest):
            self._learner.watcher = self.ledger.sums


def sample_key(estimator: LinearClassifier | LinearRegressor) -> str:
    """Return a key that is equal for estimators that can share a sample of the same events.

    They give them the same labels and weights.
    """
    loss = estimator.objective.loss
    labels = (loss.kind, loss.outputs) if isinstance(loss, VectorLoss) else "scalar"
    return repr((labels, sorted(class_weight(estimator).items(), key=repr)))


def class_weight(estimator: LinearClassifier | LinearRegressor) -> dict[Any, float]:
    """Return the factors on the weights of events by label, without those of 1."""
    factors = getattr(estimator, "class_weight", None) or {}
    return {label: float(factor) for label, factor in factors.items() if factor != 1.0}
