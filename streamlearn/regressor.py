"""LinearRegressor: numbers as labels, one or several targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from streamlearn import frames
from streamlearn.engine.learner import Single
from streamlearn.errors import BadEvent
from streamlearn.features import Reader
from streamlearn.linear import Event, Linear
from streamlearn.losses import Loss, Squared, VectorLoss
from streamlearn.penalties import Penalty
from streamlearn.rules import Refused, Rule

if TYPE_CHECKING:
    import pandas as pd


class LinearRegressor(Linear, base.MiniBatchRegressor):
    """A linear regressor that learns one event at a time.

    With nothing said it needs no tuning and no scaling: a mixture of rules that set their own
    steps (`sl.rules.Mixture`), squared loss, exact feature names. With the loss `MultiSquared`
    a label is a mapping (or sequence) of several targets.

    Parameters
    ----------
    rule
        How weights move; one of `sl.rules`.
    loss
        One of `sl.losses`; None: squared.
    penalty
        One of `sl.penalties`; None: none.
    features
        `sl.Names()` (None) or `sl.Hashing(bits)`.
    fit_intercept
        True: outside the penalty where the rule allows; "penalised": inside; False: none.
    average
        Which weights are shown and predict: "last", "uniform", "tail" or "random".
    batch
        How many events make one step.
    seed
        For `average="random"`.

    Examples
    --------
    >>> import streamlearn as sl
    >>> model = sl.LinearRegressor()
    >>> for hour in range(200):
    ...     model.learn_one({"hour": hour % 24}, 3.0 * (hour % 24) + 10.0)
    >>> abs(model.predict_one({"hour": 12}) - 46.0) < 2.0
    True
    """

    _default_loss = Squared()

    def __init__(
        self,
        rule: Rule | None = None,
        loss: Loss | VectorLoss | None = None,
        penalty: Penalty | None = None,
        *,
        features: Reader | None = None,
        fit_intercept: bool | str = True,
        average: str = "last",
        batch: int = 1,
        seed: int | None = None,
    ) -> None:
        self.rule = rule
        self.loss = loss
        self.penalty = penalty
        self.features = features
        self.fit_intercept = fit_intercept
        self.average = average
        self.batch = batch
        self.seed = seed
        self._assemble()

    def _assemble(self) -> None:
        super()._assemble()
        if self._loss.kind not in ("regression", "multitarget"):
            raise Refused(
                f"{type(self).__name__}: {self._loss!r} is a loss of classes; use LinearClassifier, "
                "or Squared, Absolute, Quantile .. for numbers"
            )
        # the names of the targets, with a loss of several
        self._targets: list[Any] | None = None

    # -- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn one event with label `y` and weight `w`; weight 0 changes nothing."""
        if w != 1.0:
            w = self._checked_weight(w)
        if w == 0.0:
            return
        if not self._single():
            self._model.check(x)
            self._model.learn_targets(x, self._vector(y), w)
            return
        try:
            label = float(y)
        except (TypeError, ValueError):
            raise BadEvent(f"the label must be a number, got {y!r}") from None
        if not self._loss.is_label(label):
            raise BadEvent(f"{y!r} is no label for {self._loss!r}")
        self._model.learn_one(x, label, w)

    def _vector(self, y: Any) -> np.ndarray[Any, Any]:
        """A label of several targets; the first one names them."""
        if isinstance(y, Mapping):
            names, values = list(y), list(y.values())
        else:
            values = list(y)
            names = list(range(len(values)))
        known = self._targets
        if known is not None and set(names) != set(known):
            raise BadEvent(f"the label has the targets {names}, those before had {known}")
        vector = np.array(values, dtype=float)
        if len(vector) == 0 or not np.isfinite(vector).all():
            raise BadEvent(f"the targets must be finite numbers, got {y!r}")
        if known is None:
            self._name_targets(names)
        return np.array([dict(zip(names, vector, strict=True))[name] for name in self._targets])

    def _name_targets(self, names: list[Any]) -> None:
        if self._loss.outputs not in (0, len(names)):
            raise BadEvent(f"{self._loss!r} takes {self._loss.outputs} targets, got {len(names)}")
        self._targets = names
        if len(names) > self._model.learner.outputs:
            self._model.learner.widen(len(names))

    def learn_rows(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a CSR matrix or an array, without the GIL.

        Column j is the feature named j, an int.
        """
        self._run(X, y, w, scored=False)

    def progressive_rows(self, X: Any, y: Any, w: Any = None) -> np.ndarray[Any, Any]:
        """Learn the rows, and return the score of each before it was learnt."""
        scores = self._run(X, y, w, scored=True)
        assert scores is not None
        return scores

    def _run(self, X: Any, y: Any, w: Any, *, scored: bool) -> np.ndarray[Any, Any] | None:
        y = np.ascontiguousarray(y, dtype=float)
        n = X.shape[0]
        if len(y) != n or y.ndim != (1 if self._single() else 2):
            raise ValueError(f"y must have one label for each of {n} rows, got shape {y.shape}")
        good = np.isfinite(y).all()
        if good and self._single() and self._loss.score_is_label is False:
            good = all(self._loss.is_label(label) for label in np.unique(y))
        if not good:
            raise BadEvent(f"a label is no label for {self._loss!r}")
        weights = self._checked_weights(w, n)
        rows = self._model.rows(X, True)
        if not self._single() and self._targets is None and n > 0:
            self._name_targets(list(range(y.shape[1])))
        scores = np.zeros((n, self._model.learner.outputs)) if scored else None
        self._model.learner.run(rows, y, weights, scores)
        if scores is None:
            return None
        return scores[:, 0] if self._single() else scores

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame."""
        for x, label in zip(frames.events(X), list(y), strict=True):
            self.learn_one(x, label)

    # -- predicting -------------------------------------------------------------------------------

    def _single(self) -> bool:
        return isinstance(self._model.learner, Single)

    def score_one(self, x: Event) -> Any:
        """The score that predictions are made of: <w, x> with the intercept; several by target.

        Rules that guard their scores (the default) keep them in the range of the labels seen.
        """
        if self._single():
            return self._model.score_one(x)
        names = self._targets or []
        scores = self._model.score_all(x)
        return {name: float(scores[k]) for k, name in enumerate(names)}

    def predict_one(self, x: Event) -> Any:
        """The prediction on the label's scale."""
        if self._single():
            return self._loss.response(self._model.score_one(x))
        return self.score_one(x)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """`predict_one` for the rows of a data frame."""
        return frames.series([self.predict_one(x) for x in frames.events(X)], X)

    # -- what was learnt ----------------------------------------------------------------------------

    @property
    def weights(self) -> dict[Any, Any]:
        """The weights by name, zeros left out; with several targets, by target first."""
        values = self._model.learner.coefficients()
        if self._single():
            return self._as_dict(values[0])
        return {name: self._as_dict(values[k]) for k, name in enumerate(self._targets or [])}

    @property
    def intercept(self) -> Any:
        """The intercept; with several targets, by target."""
        values = self._model.learner.intercepts()
        if self._single():
            return float(values[0])
        return {name: float(values[k]) for k, name in enumerate(self._targets or [])}

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"targets": self._targets}

    def _restore(self, state: dict[str, Any]) -> None:
        self._targets = state["targets"]
        super()._restore(state)
