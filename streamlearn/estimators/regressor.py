"""LinearRegressor: numeric labels, one or several targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from river import base

from streamlearn.engine.joint import Joint
from streamlearn.engine.single import Single
from streamlearn.errors import DivergenceError, IncompatibleError, InvalidEventError
from streamlearn.estimators import frames
from streamlearn.estimators.frames import Frame, Matrix, checked_weight, checked_weights
from streamlearn.estimators.linear import Event, Linear, ScoreMemory
from streamlearn.losses import Loss, Squared, VectorLoss

if TYPE_CHECKING:
    import pandas as pd

    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.estimators.frames import RowTable
    from streamlearn.features import Reader
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


class LinearRegressor(Linear, base.MiniBatchRegressor):
    """A linear regressor that learns one event at a time.

    The defaults need no tuning and no scaling: a mixture of rules that set their own steps
    (`sl.rules.Mixture`), squared loss, exact feature names. With the loss `MultiSquared`, a label
    is a mapping (or sequence) of several targets.

    Parameters
    ----------
    rule
        The update rule, from `sl.rules`; None: `Mixture()`.
    loss
        From `sl.losses`; None: `Squared()`.
    penalty
        From `sl.penalties`; None: no penalty.
    features
        `sl.Names()` or `sl.Hashing(bits)`; None: `Names()`.
    fit_intercept
        True: an intercept, not penalized where the rule allows; "penalized": one inside the
        penalty; False: none.
    average
        Which iterate is reported and predicts: "last", "uniform", "tail" or "random".
    batch
        How many events one step learns.
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
            raise IncompatibleError(
                f"{type(self).__name__}: {self._loss!r} is a classification loss; "
                "use LinearClassifier, or a loss of numbers such as Squared, Absolute or Quantile"
            )
        # The names of the targets, with a loss of several.
        self._targets: list[Any] | None = None

    # -- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn an event with label `y` and weight `w`; a weight of 0 changes nothing."""
        if not self.engine.learn_one(x, y, w):
            self._learn_general(x, y, w)

    def _learn_general(self, x: Event, y: Any, w: float) -> None:
        """Learn an event with any label and weight."""
        if w != 1.0:
            w = checked_weight(w)
        if w == 0.0:
            return
        if self._single_output():
            self.engine.learn_coded(x, self._number_label(y), w)
            return
        names, vector = self._target_vector(y)
        self.engine.check(x)
        self._set_targets(names)
        self.engine.learn_targets(x, vector, w)

    def _number_label(self, y: Any) -> float:
        """Return a label of one target as a float."""
        try:
            if isinstance(y, str | bytes):
                raise TypeError  # noqa: TRY301 - caught right below
            label = float(y)
        except (TypeError, ValueError):
            raise InvalidEventError(f"the label must be a number, got {y!r}") from None
        except OverflowError:
            raise InvalidEventError("the label is too large for a float: scale it down") from None
        if not (isinstance(self._loss, Loss) and self._loss.is_label(label)):
            raise InvalidEventError(f"{y!r} is not a label for {self._loss!r}")
        return label

    def _target_vector(self, y: Any) -> tuple[list[Any], Array]:
        """Return the names of several targets, and their values in that order."""
        try:
            named = dict(y) if isinstance(y, Mapping) else dict(enumerate(y))
            vector = np.array([float(value) for value in named.values()])
        except (TypeError, ValueError):
            raise InvalidEventError(f"the label must map targets to numbers, got {y!r}") from None
        except OverflowError:
            raise InvalidEventError("a target is too large for a float: scale it down") from None
        if len(vector) == 0 or not np.isfinite(vector).all():
            raise InvalidEventError(f"the targets must be finite numbers, got {y!r}")
        names = self._checked_targets(list(named))
        return names, np.array([named[name] for name in names], dtype=float)

    def _checked_targets(self, names: list[Any]) -> list[Any]:
        """Return the targets in the order of the outputs; InvalidEventError if they changed."""
        known = self._targets
        if known is not None:
            if set(names) != set(known):
                raise InvalidEventError(
                    f"the label has the targets {names}, earlier labels had {known}"
                )
            return known
        loss = self._loss
        if isinstance(loss, VectorLoss) and loss.outputs not in (0, len(names)):
            raise InvalidEventError(f"{loss!r} takes {loss.outputs} targets, got {len(names)}")
        return names

    def _set_targets(self, names: list[Any]) -> None:
        """Take the names of the targets from the first label."""
        if self._targets is None:
            self._targets = names
            learner = self.engine.learner
            if isinstance(learner, Joint) and len(names) > learner.outputs:
                learner.widen(len(names))

    def learn_rows(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a CSR matrix or an array, without the GIL.

        Column j is the feature named j, an int.
        """
        self._learn_table(Matrix(X), y, w, scored=False)

    def progressive_rows(self, X: Any, y: Any, w: Any = None) -> Array:
        """Learn the rows and return the score of each before it was learned."""
        scores = np.asarray(self._learn_table(Matrix(X), y, w, scored=True))
        return scores[:, 0] if self._single_output() else scores

    @property
    def learns(self) -> Literal["numbers", "restricted numbers"]:
        """What labels are; "restricted numbers" are those that the loss accepts."""
        return "numbers" if self._loss.score_is_label else "restricted numbers"

    def check_labels(self, labels: Sequence[Any]) -> None:
        """Raise InvalidEventError unless all of these labels can be learned."""
        for label in labels:
            self._number_label(label)

    def progressive_events(
        self,
        events: Events,
        measures: Mapping[str, Array] | None = None,
        memory: ScoreMemory | None = None,
    ) -> Array:
        """Learn decoded events and return the score of each before it was learned.

        Events without a label or of weight 0 are only scored. An event that diverges (its score is
        not finite, or its gradient too large to square) is not learned, and its score is NaN. The
        events must have been decoded with this model's features (`share_features`).

        `measures` are arrays to fill, by name: "loss", and the "squared" and "absolute" errors of
        the prediction; NaN for events that were not learned. With a `memory`, scores and measures
        are those of the time when each event was predicted.
        """
        if not self._single_output():
            raise ValueError(
                f"{self._loss!r} has several targets, but a decoded event has one label"
            )
        labels = events.labels.copy()
        for k, label in enumerate(events.classes):
            labels[events.of_class(k)] = self._number_label(label)
        weights = events.learned_weights()
        labels[weights == 0.0] = 0.0
        if not self._loss.score_is_label:
            self.check_labels(np.unique(labels[weights > 0.0]).tolist())
        scores = self._learn_events(events, labels, weights, 0, len(events), memory)
        self._fill_measures(measures or {}, scores, labels, weights, 0)
        return scores[:, 0]

    def _losses(self, scores: Array, labels: Array) -> Array:
        return np.asarray(self._loss.value(np.ascontiguousarray(scores[:, 0]), labels))

    def _residuals(self, scores: Array, labels: Array) -> Array:
        return self._responses(np.ascontiguousarray(scores[:, 0])) - labels

    def _squared(self, scores: Array, labels: Array) -> Array:
        return self._residuals(scores, labels) ** 2

    def _absolute(self, scores: Array, labels: Array) -> Array:
        return np.abs(self._residuals(scores, labels))

    score_measures = MappingProxyType({"loss": _losses, "squared": _squared, "absolute": _absolute})

    def _responses(self, scores: Array) -> Array:
        """Return scores on the label's scale."""
        return self._loss.response(scores) if isinstance(self._loss, Loss) else scores

    def predictions(self, scores: Array, known: Array | None = None) -> list[Any]:  # noqa: ARG002 - a classifier's
        """Return the prediction for each score of `progressive_events`."""
        listed: list[Any] = self._responses(scores).tolist()
        return listed

    def prediction(self, score: float, known: int | None = None) -> Any:  # noqa: ARG002 - a classifier's
        """Return the prediction for a score."""
        return self._loss.response(score) if isinstance(self._loss, Loss) else score

    def probabilities(self, scores: Array) -> None:
        """Return None: a number has no probability."""

    def _learn_table(self, X: RowTable, y: Any, w: Any, *, scored: bool) -> Array | None:
        n = X.n
        y = self._label_rows(y, n)
        weights = checked_weights(w, n)
        if weights is not None and not weights.any():
            return self._scores_of(X) if scored else None
        if not self._single_output() and n > 0:
            # Columns are the targets in their order, whatever their names.
            names = self._targets or list(range(y.shape[1]))
            if len(names) != y.shape[1]:
                raise InvalidEventError(f"y has {y.shape[1]} columns, the targets are {names}")
            names = self._checked_targets(names)
        rows = X.rows(self.engine, grow=True)
        if not self._single_output() and n > 0:
            self._set_targets(names)
        scores = np.zeros((n, self.engine.learner.outputs)) if scored else None
        if self.engine.learner.run(rows, y, weights, scores) < n:
            raise DivergenceError
        return scores

    def _label_rows(self, y: Any, n: int) -> Array:
        """Return the labels of n rows as floats, or raise InvalidEventError."""
        y = np.asarray(y)
        if y.dtype.kind in "USM":
            raise InvalidEventError(f"labels must be numbers, got {y.dtype}")
        if y.dtype == object and y.ndim == 1 and self._single_output():
            y = np.array([self._number_label(label) for label in y.tolist()])
        try:
            labels: Array = np.ascontiguousarray(y, dtype=float)
        except (TypeError, ValueError):
            raise InvalidEventError("a label is not a number") from None
        except OverflowError:
            raise InvalidEventError("a label is too large for a float: scale it down") from None
        if len(labels) != n or labels.ndim != (1 if self._single_output() else 2):
            raise ValueError(
                f"y must have one label for each of {n} rows, got shape {labels.shape}"
            )
        good = bool(np.isfinite(labels).all())
        if good and isinstance(self._loss, Loss) and not self._loss.score_is_label:
            good = all(self._is_valid_label(label) for label in np.unique(labels))
        if not good:
            row, label = next(
                (row, label)
                for row, label in enumerate(labels.tolist())
                if not self._is_valid_label(label)
            )
            raise InvalidEventError(f"row {row}: {label!r} is not a label for {self._loss!r}")
        return labels

    def _is_valid_label(self, label: Any) -> bool:
        """Return whether a number, or a row of them, can be learned."""
        finite = bool(np.isfinite(label).all())
        return finite and (not isinstance(self._loss, Loss) or self._loss.is_label(label))

    def learn_many(self, X: pd.DataFrame, y: pd.Series[Any], w: Any = None) -> None:
        """Learn the rows of a data frame: all of them, or none if one is invalid.

        Missing values of nullable columns are skipped. A NaN in a float column is refused, because
        it may be a mistake; if it means missing, pass `X.convert_dtypes()`.
        """
        weights = checked_weights(w, len(X))
        if weights is not None:
            learned = np.flatnonzero(weights)  # rows of weight 0 add no names
            X, y, weights = X.iloc[learned], y.iloc[learned], weights[learned]
        if self._single_output():
            self._learn_table(Frame(X), y, weights, scored=False)
        else:
            self._learn_targets(Frame(X).events(), y.tolist(), weights)
        self._remember_label_name(y)

    def _learn_targets(
        self, events: list[dict[Any, Any]], labels: list[Any], weights: Array | None
    ) -> None:
        """Learn events with several targets: all of them, or none if one is invalid."""
        for x, label in zip(events, labels, strict=True):
            self._target_vector(label)
            self.engine.check(x)
        for i, (x, label) in enumerate(zip(events, labels, strict=True)):
            self.learn_one(x, label, 1.0 if weights is None else weights[i])

    # -- predicting -------------------------------------------------------------------------------

    def _single_output(self) -> bool:
        return isinstance(self.engine.learner, Single)

    def score_one(self, x: Event) -> Any:
        """Return the score <w, x>, with the intercept; with several targets, by target.

        Rules that clip scores of outliers (the default does) keep them in the range of the labels.
        """
        if self._single_output():
            return self.engine.score_one(x)
        return self.engine.scores_one(x, self._targets or [])

    def predict_one(self, x: Event) -> Any:
        """Return the prediction on the label's scale."""
        if isinstance(self._loss, Loss):
            return self._loss.response(self.engine.score_one(x))
        return self.score_one(x)

    def predict_many(self, X: pd.DataFrame) -> pd.Series[Any]:
        """Return `predict_one` for the rows of a data frame."""
        if not self._single_output():
            events = Frame(X).events()
            return frames.series([self.predict_one(x) for x in events], self._label_name, X)
        scores = self._scores_of(Frame(X))[:, 0]
        return frames.series(self.predictions(np.ascontiguousarray(scores)), self._label_name, X)

    # -- weights ----------------------------------------------------------------------------------

    @property
    def weights(self) -> dict[Any, Any]:
        """The non-zero weights by name; with several targets, by target first."""
        values = self.coefficients()
        if self._single_output():
            return self._by_name(values[0])
        return {name: self._by_name(values[k]) for k, name in enumerate(self._targets or [])}

    @property
    def outputs(self) -> list[Any]:
        """What each score is for: the targets; empty with one target."""
        return list(self._targets or [])

    @property
    def intercept(self) -> Any:
        """The intercept; with several targets, by target."""
        values = self.engine.learner.intercepts()
        if self._single_output():
            return float(values[0])
        return {name: float(values[k]) for k, name in enumerate(self._targets or [])}

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays; see `Linear.state`."""
        return super().state(features=features) | {"targets": self._targets}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; features that it lacks are restored before."""
        self._targets = state["targets"]
        super().restore(state)
