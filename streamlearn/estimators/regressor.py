"""LinearRegressor: numeric labels, one or several targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from river import base

from streamlearn.core.weights import checked_weight
from streamlearn.engine.joint import Joint
from streamlearn.errors import IncompatibleError, InvalidEventError
from streamlearn.estimators.linear import Event, LabeledRun, Linear
from streamlearn.losses import Loss, Squared, VectorLoss

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.features import Reader
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


class TargetRows(NamedTuple):
    """Labels as numbers, a row each if there are several targets, and the names of these."""

    values: Array
    names: list[Any] | None = None


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

    def _learn_checked(self, x: Event, y: Any, w: float) -> None:
        if w != 1.0:
            w = checked_weight(w)
        if w == 0.0:
            return
        if self._single_output():
            self.engine.learn_coded(x, self._number_label(y), w)
            return
        names, vector = self._target_vector(y, self._targets)
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

    def _target_vector(self, y: Any, known: list[Any] | None) -> tuple[list[Any], Array]:
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
        names = self._checked_targets(list(named), known)
        return names, np.array([named[name] for name in names], dtype=float)

    def _checked_targets(self, names: list[Any], known: list[Any] | None) -> list[Any]:
        """Return the targets in the order of the outputs; InvalidEventError if they changed."""
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

    @property
    def learns(self) -> Literal["numbers", "restricted numbers"]:
        """What labels are; "restricted numbers" are those that the loss accepts."""
        return "numbers" if self._loss.score_is_label else "restricted numbers"

    def check_labels(self, labels: Sequence[Any]) -> None:
        """Raise InvalidEventError unless all of these labels can be learned."""
        for label in labels:
            self._number_label(label)

    def parts(self, events: Events) -> Iterator[LabeledRun]:
        """Yield decoded events in parts: all in one, because labels are numbers."""
        if not self._single_output():
            raise ValueError(
                f"{self._loss!r} has several targets, but a decoded event has one label"
            )
        labels, weights = self.codes_of(events), events.learned_weights()
        if not self._loss.score_is_label:
            self.check_labels(np.unique(labels[weights > 0.0]).tolist())
        return self._encode(TargetRows(labels), weights)

    def codes_of(self, events: Events) -> Array:
        """Return the labels of decoded events, 0 where an event has none or weight 0."""
        labels = events.labels.copy()
        for k, label in enumerate(events.classes):
            labels[events.of_class(k)] = self._number_label(label)
        labels[events.learned_weights() == 0.0] = 0.0
        return labels

    def _labels_of_rows(self, y: Any, weights: Array | None, n: int) -> TargetRows:  # noqa: ARG002 - a classifier's
        if self._single_output():
            return TargetRows(self._label_rows(y, n))
        if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1:
            known, vectors = self._targets, []
            for label in y.tolist():
                known, vector = self._target_vector(label, known)
                vectors.append(vector)
            return TargetRows(np.array(vectors), known)
        values = self._label_rows(y, n)
        # Columns are the targets in their order, whatever their names.
        names = self._targets or list(range(values.shape[1]))
        if len(names) != values.shape[1]:
            raise InvalidEventError(f"y has {values.shape[1]} columns, the targets are {names}")
        return TargetRows(values, self._checked_targets(names, self._targets))

    def _encode(self, labels: TargetRows, weights: Array | None) -> Iterator[LabeledRun]:
        values, names = labels
        if names is not None and len(values):
            self._set_targets(names)
        scores = np.empty((len(values), self.engine.learner.outputs))
        yield LabeledRun(0, len(values), values, weights, scores)

    def _losses(self, scores: Array, labels: Array) -> Array:
        return np.asarray(self._loss.value(np.ascontiguousarray(scores[:, 0]), labels))

    def _residuals(self, scores: Array, labels: Array) -> Array:
        return self._responses(np.ascontiguousarray(scores[:, 0])) - labels

    @np.errstate(over="ignore")
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
        if not self._single_output():
            return [dict(zip(self.outputs, row, strict=False)) for row in scores.tolist()]
        listed: list[Any] = self._responses(np.ascontiguousarray(scores)).tolist()
        return listed

    def prediction(self, score: float, known: int | None = None) -> Any:  # noqa: ARG002 - a classifier's
        """Return the prediction for a score."""
        return self._loss.response(score) if isinstance(self._loss, Loss) else score

    def probabilities(self, scores: Array) -> None:
        """Return None: a number has no probability."""

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

    # -- predicting -------------------------------------------------------------------------------

    def predict_one(self, x: Event) -> Any:
        """Return the prediction on the label's scale."""
        if isinstance(self._loss, Loss):
            return self._loss.response(self.engine.score_one(x))
        return self.score_one(x)

    # -- weights ----------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[Any]:
        """What each score is for: the targets; empty with one target."""
        return list(self._targets or [])

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays; see `Linear.state`."""
        return super().state(features=features) | {"targets": self._targets}

    def restore_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Restore the outputs of a description."""
        if not self._single_output() and outputs["names"]:
            self._set_targets(list(outputs["names"]))

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; features that it lacks are restored before."""
        self._targets = state["targets"]
        super().restore(state)
