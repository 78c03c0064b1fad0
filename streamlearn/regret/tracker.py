"""A learner and its ledger as one."""

from __future__ import annotations

import dataclasses
import os
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamlearn.engine.single import OneVersusRest
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.losses import VectorLoss
from streamlearn.penalties import Zero
from streamlearn.regret.ledger import Ledger

if TYPE_CHECKING:
    from streamlearn.engine.joint import Joint
    from streamlearn.engine.single import Single
    from streamlearn.estimators.frames import Array
    from streamlearn.estimators.linear import Event
    from streamlearn.regret.report import Report

SEVERAL = (
    "one versus the rest is a problem for each class, so events and losses are counted up to the "
    "third class only; for one regret of all classes use a loss of several outputs, Softmax or "
    "MulticlassHinge"
)


class Tracker:
    """Learns and predicts as an estimator does, and keeps its regret.

    All else that the estimator has is in `tracker.estimator`.

    Parameters
    ----------
    estimator
        A LinearClassifier or LinearRegressor, or a preset, that has learned nothing yet.
    kept
        The state of the ledger of an estimator that has learned already, to go on from.
    memory
        How many events are kept for the comparator. Up to so many the comparator is that of all
        events; beyond, it is estimated from two disjoint uniform samples of half that size.
    seed
        Of the sample; None: a fresh one.
    options
        Those of `Ledger`: gap, seconds, cpu_share.

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
        memory: int = 100_000,
        seed: int | None = None,
        kept: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(estimator, LinearClassifier | LinearRegressor):
            raise ValueError(f"{estimator!r} is not one of streamlearn's estimators")
        if estimator.steps and kept is None:
            raise ValueError(
                f"the model has learned {estimator.steps} steps already, and regret counts from "
                "the first event on; give a fresh one (estimator.clone())"
            )
        self.estimator = estimator
        self._engine = estimator.engine
        learner = self._engine.learner
        loss, penalty, intercept = estimator.objective
        if isinstance(loss, VectorLoss) and loss.kind == "multitarget":
            options.setdefault("targets", loss.outputs)
        else:
            options["targets"] = 1
        if not options["targets"]:
            raise ValueError(f"say how many targets {loss!r} has: Tracker(.., targets=2)")
        # as in the paper of such a rule, the regret is then of the losses alone
        self._priced = not any(rule.weighs_once for rule in learner.rules())
        self.ledger = Ledger(
            loss,
            penalty if self._priced else Zero(),
            intercept=intercept,
            memory=memory,
            seed=int.from_bytes(os.urandom(8)) if seed is None else seed,
            **options,
        )
        if self._priced:
            self.ledger.account.look = lambda: estimator.penalty_value
            self.ledger.account.learner = learner
        if kept is not None:
            self.ledger.restore(kept)
        if not isinstance(learner, OneVersusRest):
            learner.watcher = self.ledger.account
        # The engine tells the ledger of each event, so these are the estimator's own.
        self.learn_many = estimator.learn_many
        self.learn_rows = estimator.learn_rows
        self.progressive_rows = estimator.progressive_rows
        self.progressive_events = estimator.progressive_events
        self.predict_one = estimator.predict_one
        self.predict_many = estimator.predict_many
        self.score_one = estimator.score_one
        self.score_rows = estimator.score_rows

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn one event, as the estimator does; calling the estimator costs time."""
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
        """All that is known now, after up to so many seconds spent on a better comparator."""
        several = isinstance(self._learner, OneVersusRest)
        report = self.ledger.report(0.0 if several else seconds)
        if several:
            return dataclasses.replace(
                report,
                comparator=None,
                regret=None,
                regret_low=None,
                regret_high=None,
                why_no_comparator=SEVERAL,
            )
        report = dataclasses.replace(report, nonzero=self.estimator.nonzero)
        if self.ledger.found is None or report.comparator is None:
            return report
        bound, why = self._bound()
        return dataclasses.replace(report, bound=bound, why_no_bound=why)

    def _bound(self) -> tuple[float | None, str | None]:
        """The paper's bound on the sum over events, or why there is none."""
        learner, batch = self._learner, self.estimator.batch
        if isinstance(learner, OneVersusRest):
            return None, SEVERAL
        if self.estimator.average != "last":
            return None, "it is proved for the rule's own weights; those that predict are averages"
        if batch > 1 and learner.batch is not None and learner.batch.count:
            return None, f"it is proved for whole batches of {batch}, and one is not complete"
        bound, why = learner.bound(*self._comparator())
        # of a batch the rule learns the mean
        return (None if bound is None else batch * bound), why

    def _comparator(self) -> tuple[Array, Any]:
        """The weights of the comparator by slot, as many as the learner has, and its intercept."""
        if self.ledger.found is None:
            raise ValueError("no comparator was solved yet")
        solution, features = self.ledger.found.solution, self._learner.features
        w, intercept = solution.w, solution.intercept
        if self._learner.shift:
            w, intercept = w[..., 1:], w[..., 0]
        wide = np.zeros((*w.shape[:-1], features))
        wide[..., : w.shape[-1]] = w[..., :features]
        return wide, intercept

    def close(self) -> None:
        """Stop solving in the background; `with Tracker(..) as tracker:` does so at its end."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> dict[str, Any]:
        """The learner and its ledger as plain data and arrays."""
        return {"estimator": self.estimator.state(), "ledger": self.ledger.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`, to the bit."""
        self.estimator.restore(state["estimator"])
        self.ledger.restore(state["ledger"])
        if not isinstance(self._learner, OneVersusRest):
            self._learner.watcher = self.ledger.account
