"""LinearClassifier: two or more classes, labels of any type, classes that appear over time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from river import base

from streamlearn.core.labels import is_positive_alone, positive_last
from streamlearn.core.weights import MAX_WEIGHT, checked_weight, checked_weights
from streamlearn.engine.joint import Joint
from streamlearn.engine.labels import LabelColumn, column_of_array, column_of_events
from streamlearn.engine.single import OneVersusRest, Single
from streamlearn.errors import IncompatibleError, InvalidEventError
from streamlearn.estimators import frames
from streamlearn.estimators.linear import Contribution, Event, LabeledRun, Linear
from streamlearn.losses import Logistic, Loss, MulticlassHinge, VectorLoss

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.features import Reader
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


class LinearClassifier(Linear, base.MiniBatchClassifier):
    """A linear classifier that learns one event at a time.

    The defaults need no tuning and no scaling: a mixture of rules that set their own steps
    (`sl.rules.Mixture`), logistic loss, exact feature names.

    More than two classes are learned one versus the rest, or jointly with a loss of several
    outputs (`Softmax`, `MulticlassHinge`). The positive one of two classes is the greater if they
    are numbers or bools, or texts that write them, otherwise the one seen second. A new label may
    appear at any time and adds a set of weights. Before the first label a prediction is None, and
    there are no probabilities: `{}`, and no columns in data frames.

    Parameters
    ----------
    rule
        The update rule, from `sl.rules`; None: `Mixture()`.
    loss
        From `sl.losses`; None: `Logistic()`.
    penalty
        From `sl.penalties`; None: no penalty. The default rule takes `L1`, `L2` and `ElasticNet`.
    features
        `sl.Names()` or `sl.Hashing(bits)`; None: `Names()`.
    fit_intercept
        True: an intercept, not penalized where the rule allows; "penalized": one inside the
        penalty; False: none.
    class_weight
        A factor on the weight of events for each label.
    calibrated
        Scores are log-odds that two numbers, learned from the scores before each label was used,
        have calibrated. For the logistic loss.
    average
        Which iterate is reported and predicts: "last", "uniform", "tail" or "random".
    batch
        How many events one step learns.
    seed
        For `average="random"`.

    Examples
    --------
    >>> import streamlearn as sl
    >>> model = sl.LinearClassifier()
    >>> for _ in range(20):
    ...     model.learn_one({"word": "free", "length": 12}, "spam")
    ...     model.learn_one({"word": "hello", "length": 48}, "ham")
    >>> model.predict_one({"word": "free", "length": 12})
    'spam'
    """

    _default_loss = Logistic()

    def __init__(
        self,
        rule: Rule | None = None,
        loss: Loss | VectorLoss | None = None,
        penalty: Penalty | None = None,
        *,
        features: Reader | None = None,
        fit_intercept: bool | str = True,
        class_weight: Mapping[Hashable, float] | None = None,
        calibrated: bool = False,
        average: str = "last",
        batch: int = 1,
        seed: int | None = None,
    ) -> None:
        self.rule = rule
        self.loss = loss
        self.penalty = penalty
        self.features = features
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibrated = calibrated
        self.average = average
        self.batch = batch
        self.seed = seed
        self._assemble()

    def _assemble(self) -> None:
        super()._assemble()
        if self._loss.kind not in ("binary", "one-class", "multiclass"):
            raise IncompatibleError(
                f"{type(self).__name__}: {self._loss!r} is a regression loss; "
                "use LinearRegressor, or a loss of classes such as Logistic, Hinge or Softmax"
            )
        if self.calibrated and not isinstance(self._loss, Logistic):
            raise IncompatibleError(
                f"{type(self).__name__}: the scores of {self._loss!r} are no log-odds that could "
                "be calibrated; use loss=Logistic(), or calibrated=False"
            )
        if not isinstance(self.class_weight, Mapping | None):
            raise IncompatibleError(
                f"class_weight must map labels to factors, got {self.class_weight!r}"
            )
        # By Python labels: NumPy's are converted everywhere.
        self._factors: dict[Any, Any] = {
            label.item() if isinstance(label, np.generic) else label: factor
            for label, factor in (self.class_weight or {}).items()
        }
        for label, factor in self._factors.items():
            if not isinstance(factor, int | float | np.number) or not (0.0 <= factor <= MAX_WEIGHT):
                raise IncompatibleError(
                    f"class_weight of {label!r} must be from 0 to {MAX_WEIGHT:g}, got {factor!r}"
                )
        # Labels in the order of the outputs, and the engine's code for each.
        self._labels: list[Any] = []
        self._codes: dict[Any, float] = {}
        self._order: Sequence[Any] = ()  # of labels that may come, see `order_labels`
        # The engine's fast path ignores factors, so it gets no codes then.
        self.engine.codes = {} if self._factors else self._codes

    @property
    def _multiclass(self) -> bool:
        return True

    # -- labels -----------------------------------------------------------------------------------

    def check_labels(self, labels: Sequence[Any]) -> None:
        """Raise InvalidEventError unless these distinct labels can be learned in this order."""
        seen = set(self._codes)
        fixed = self._loss.outputs if isinstance(self._loss, VectorLoss) else 0
        for label in labels:
            if label in seen:
                continue
            if frames.is_missing(label):
                raise InvalidEventError(f"{label!r} is not a label")
            if fixed and label not in range(fixed):
                raise InvalidEventError(
                    f"label {label!r}: {self._loss!r} has costs for the labels 0 to {fixed - 1}; "
                    "for other labels, give costs as a mapping from labels"
                )
            if not isinstance(self.engine.learner, Single):
                continue
            # The first bool adds both.
            seen |= {False, True} if not seen and isinstance(label, bool | np.bool_) else {label}
            if len(seen) > 2 and not self._can_split():
                raise InvalidEventError(
                    f"label {label!r} is a third class, but {self._loss!r} with "
                    f"{self._penalty!r} supports only two; use LinearClassifier(loss=Logistic())"
                )

    def know_labels(self, labels: Sequence[Any]) -> None:
        """Add labels, in this order, before they are seen."""
        self.check_labels(labels)
        for label in labels:
            if label not in self._codes:
                self._add_label(label)

    def order_labels(self, labels: Sequence[Any]) -> None:
        """Say which of two labels is the positive one, if both are among these: the later one."""
        self._order = labels

    def _can_split(self) -> bool:
        """Return whether a third class may split two that share one output."""
        return self._loss.kind == "binary" and not self._penalty.on_simplex

    def _add_label(self, label: Any) -> None:
        """Add a new label, which `check_labels` has accepted."""
        self.engine.raise_if_busy()  # another thread must not have its learner replaced
        label = label.item() if isinstance(label, np.generic) else label
        learner = self.engine.learner
        if isinstance(learner, Joint | OneVersusRest):
            self._labels.append(label)
            self._codes[label] = float(len(self._labels) - 1)
            self._add_output(learner)
        elif isinstance(label, bool) and not self._labels:
            self._labels = [False, True]
            self._codes.update({False: -1.0, True: 1.0})
        elif len(self._labels) == 0:
            self._add_first_label(label)
        elif len(self._labels) == 1:
            self._add_second_label(label, learner)
        else:
            self._split_classes(label, learner)

    def _add_output(self, learner: Joint | OneVersusRest) -> None:
        """Add an output for the newest label."""
        if isinstance(learner, OneVersusRest):
            learner.add(self._new_single())
            return
        if len(self._labels) > learner.outputs:
            learner.widen(len(self._labels))
        if isinstance(self._loss, MulticlassHinge):
            learner.use_loss(self._loss.bound(self._labels))

    def _new_single(self) -> Single:
        """Return a new learner of one class versus the rest."""
        learner = self._new_learner()
        if not isinstance(learner, Single):
            raise TypeError(f"{self._loss!r} learns all classes jointly")
        return learner

    def _add_first_label(self, label: Any) -> None:
        self._labels = [label]
        # not by the order, which may be told after this event or before, as batches are cut
        self._codes[label] = 1.0 if is_positive_alone(label) else -1.0

    def _add_second_label(self, label: Any, learner: Single) -> None:
        (first,) = self._labels
        given = [one for one in self._order if one in (first, label)]
        ordered = given if len(given) == 2 else positive_last([first, label])
        first_is_positive = ordered[1] == first
        if self._can_split() and first_is_positive != (self._codes[first] > 0.0):
            # What was learned from the first class alone, with the signs swapped.
            learner.swap_classes()
            self._codes[first] = -self._codes[first]
        self._codes[label] = -self._codes[first]
        self._labels = [label, first] if self._codes[first] > 0.0 else [first, label]

    def _split_classes(self, label: Any, positive: Single) -> None:
        """Give each of two classes an output of its own, and add the third."""
        negative = self._new_single()
        negative.restore(positive.state())
        negative.swap_classes()
        several = OneVersusRest([negative, positive])
        several.add(self._new_single())
        self.engine.learner = several
        self._labels.append(label)
        self._codes.update({known: float(k) for k, known in enumerate(self._labels)})

    # -- learning ---------------------------------------------------------------------------------

    def _learn_checked(self, x: Event, y: Any, w: float) -> None:
        if w != 1.0 or self._factors:
            w = self._class_weighted(y, w)
            if w == 0.0:
                return
        try:
            code = self._codes[y]
        except KeyError:
            code = self._code_of_new_label(x, y)
        except TypeError:
            raise InvalidEventError(f"a label must be hashable, got {y!r}") from None
        self.engine.learn_coded(x, code, w)

    def _code_of_new_label(self, x: Event, y: Any) -> float:
        """Return the code of a label; add it if it is new."""
        label = y.item() if isinstance(y, np.generic) else y
        if label not in self._codes:
            self.check_labels([label])
            # An invalid event must not add its label.
            self.engine.check(x)
            self._add_label(label)
        return self._codes[label]

    def _class_weighted(self, y: Any, w: float) -> float:
        """Return the weight of an event times the factor of its class."""
        w = checked_weight(w)
        try:
            return float(w * self._factors.get(y, 1.0))
        except TypeError:
            raise InvalidEventError(f"a label must be hashable, got {y!r}") from None

    def _weights(self, y: Any, w: Any, n: int) -> Array | None:
        """Return the weights of n rows times the factors of their classes."""
        weights = checked_weights(w, n)
        if not self._factors:
            return weights
        factors = column_of_array(frames.label_array(y, n), weights).coded(self._factors, 1.0)
        return factors if weights is None else weights * factors

    def _labels_of_rows(self, y: Any, weights: Array | None, n: int) -> LabelColumn:
        # A label that has weight 0 throughout is not added.
        labels = column_of_array(frames.label_array(y, n), weights)
        self.check_labels(labels.distinct)
        return labels

    def parts(self, events: Events) -> Iterator[LabeledRun]:
        """Yield decoded events in parts; each is to be learned before the next is asked for."""
        weights = events.learned_weights()
        labels = column_of_events(events, weights)
        if self._factors:
            weights = weights * labels.coded(self._factors, 1.0)
            labels = column_of_events(events, weights)
        self.check_labels(labels.distinct)
        return self._encode(labels, weights)

    def codes_of(self, events: Events) -> Array:
        """Return the engine's number for each event's label, 0 where it has none or weight 0."""
        labels = column_of_events(events, events.learned_weights())
        for label in labels.distinct:
            if label not in self._codes:
                raise InvalidEventError(
                    f"the model has not learned the label {label!r}; it knows {self._labels}"
                )
        return labels.coded(self._codes)

    def _encode(self, labels: LabelColumn, weights: Array | None) -> Iterator[LabeledRun]:
        n, start, before = len(labels.index), 0, len(self._labels)
        for stop, label in zip([*labels.first, n], [*labels.distinct, None], strict=True):
            if stop < n and label in self._codes:
                continue
            if stop > start:
                codes = labels.coded(self._codes, start=start, stop=stop)
                now = None if weights is None else weights[start:stop]
                scores = np.empty((stop - start, self.engine.learner.outputs))
                yield LabeledRun(
                    start, stop, codes, now, scores, self.sign, len(self._labels), before
                )
                before = len(self._labels)
            if stop < n:
                self._add_label(label)
            start = stop

    @property
    def sign(self) -> float:
        """The sign of scores for the first label seen; 0 before it."""
        codes = iter(self._codes.values())
        return 0.0 if not self._codes else 1.0 if next(codes) > 0.0 else -1.0

    @property
    def learns(self) -> Literal["classes"]:
        """What labels are."""
        return "classes"

    def code_and_factor(self, label: Any) -> tuple[float, float]:
        """Return a label's code for the engine, and the factor on the weight of its events."""
        return self._codes.get(label, math.nan), self._factors.get(label, 1.0)

    def _losses(self, scores: Array, codes: Array) -> Array:
        """Return the loss of each row; one versus the rest, the sum over classes."""
        if isinstance(self._loss, VectorLoss):
            return np.asarray(self._loss.value(scores, codes))
        if self._single_output():
            return self._loss.value(np.ascontiguousarray(scores[:, 0]), codes)
        total = np.zeros(len(scores))
        for k in range(scores.shape[1]):
            sides = np.where(codes == k, 1.0, -1.0)
            total += self._loss.value(np.ascontiguousarray(scores[:, k]), sides)
        return total

    def _errors(self, scores: Array, codes: Array) -> Array:
        """Return 1 where another label is predicted, else 0."""
        if self._single_output():
            return np.asarray((scores[:, 0] > 0.0) != (codes > 0.0), dtype=float)
        return np.asarray(scores.argmax(axis=1) != codes, dtype=float)

    def _log_losses(self, scores: Array, codes: Array) -> Array:
        """Return minus the logarithm of the probability of each row's label."""
        place = (codes > 0.0).astype(int) if self._single_output() else codes.astype(int)
        shares = self._probabilities(scores)[np.arange(len(scores)), place]
        return np.asarray(-np.log(np.maximum(shares, 1e-15)))

    score_measures = MappingProxyType({"loss": _losses, "error": _errors, "log_loss": _log_losses})

    # -- predicting -------------------------------------------------------------------------------

    def predict_one(self, x: Event) -> Any:  # type: ignore[override] # river's drops any **kwargs
        """Return the most likely label; None before the first label."""
        labels = self._labels
        if len(labels) < 2:
            return labels[0] if labels else None
        return self.engine.class_one(x, labels)

    def predict_proba_one(self, x: Event) -> dict[Any, float]:  # type: ignore[override] # river's drops any **kwargs
        """Return the probability of each label; `{}` before the first label.

        If the loss defines no probability (Hinge, for instance), return the logistic function of
        the score, as river does: it orders labels as scores do, but is not calibrated. With K
        classes, one versus the rest, it is the softmax of (K - 1) / K times the K scores, which for
        two classes is the same function.
        """
        labels = self._labels
        if len(labels) < 2:
            return dict.fromkeys(labels, 1.0)
        return self.engine.probabilities_one(x, labels)

    def _probabilities(self, scores: Array) -> Array:
        """Return the probabilities of two or more labels from their scores."""
        return self.engine.learner.probabilities(scores)

    def predict_proba_many(self, X: Any) -> Any:
        """Return `predict_proba_one` for the rows of a data frame, a column for each label.

        The result is a frame of the same library, a pyarrow table for other objects with
        `__arrow_c_stream__`. Only the columns of pandas have labels that are no text.
        """
        scores = self._scores_of_frame(X)[:, : len(self._labels)]
        if len(self._labels) < 2:
            return frames.table(np.ones((len(scores), len(self._labels))), self._labels, X)
        return frames.table(self._probabilities(scores), self._labels, X)

    def predictions(self, scores: Array, known: Array | None = None) -> list[Any]:
        """Return the label that each score of `progressive_events` predicts; None: no label yet."""
        found: list[Any] = [None] * len(scores)
        for rows, columns in self._group_by_known(scores, known):
            n = columns.shape[1]
            if n < 2:
                labels = list(self._codes)[:n] * len(columns)  # the first label seen
            elif self._single_output():
                labels = [self._labels[place] for place in (columns[:, 1] > 0.0).tolist()]
            else:
                labels = [self._labels[place] for place in columns.argmax(axis=1).tolist()]
            if len(labels) == len(scores):
                return labels
            for row, label in zip(rows.tolist(), labels, strict=False):
                found[row] = label
        return found

    def prediction(self, score: Any, known: int | None = None) -> Any:
        """Return the label that one score, or one row of scores, predicts; see `predictions`."""
        count = len(self._labels) if known is None else known
        if count < 2:
            return next(iter(self._codes), None) if count else None
        if self._single_output():
            return self._labels[score > 0.0]
        return self._labels[int(score[:count].argmax())]

    def probabilities(self, scores: Array, known: Array | None = None) -> Array | None:
        """Return the probability of each label, a column each, for scores of `progressive_events`.

        NaN where fewer than two labels, or not this one, were known when the event was scored; see
        `predictions`. None if the loss defines no probability.
        """
        if not self._loss.has_probability:
            return None
        shares = np.full((len(scores), len(self._labels)), np.nan)
        for rows, columns in self._group_by_known(scores, known):
            n = columns.shape[1]
            learner = self.engine.learner
            if n == 2 and isinstance(learner, OneVersusRest):  # two classes shared an output then
                learner = learner.singles[1]
            if n > 1:
                one = isinstance(learner, Single)
                shares[rows, :n] = learner.probabilities(columns[:, 1:] if one else columns)
        return shares

    def _group_by_known(self, scores: Array, known: Array | None) -> Iterator[tuple[Array, Array]]:
        """Yield the rows with the same number of known labels, with a score for each label."""
        columns = scores[:, None] if scores.ndim == 1 else scores
        if self._single_output():
            columns = np.hstack([-columns, columns])
        if known is None or np.all(known == len(self._labels)):
            yield np.arange(len(scores)), columns[:, : len(self._labels)]
            return
        for count in np.unique(known).astype(int).tolist():
            rows = np.flatnonzero(known == count)
            yield rows, columns[rows, :count]

    # -- weights ----------------------------------------------------------------------------------

    def explain_one(self, x: Event, output: Any = None) -> list[Contribution]:
        """Return what the intercept and each feature add to an event's score, largest first.

        Explain the score of the class `output`; None: of the predicted class. With two classes, it
        is always the score of the positive one. The name of the intercept is None.
        """
        return super().explain_one(x, self.predict_one(x) if output is None else output)

    @property
    def outputs(self) -> list[Any]:
        """What each score is for: the labels seen."""
        return self.labels

    @property
    def labels(self) -> list[Any]:
        """The labels seen, in the order of the outputs; the positive one of two is the last."""
        return list(self._labels)

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays; see `Linear.state`."""
        codes = [self._codes[label] for label in self._labels]
        return super().state(features=features) | {"labels": list(self._labels), "codes": codes}

    def description(self) -> dict[str, Any]:
        """Return what turns scores into predictions; see `Linear.description`."""
        found = super().description()
        found["outputs"]["codes"] = [self._codes[label] for label in self._labels]
        return found

    def restore_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Restore the outputs of a description."""
        self._restore_labels(outputs["names"], outputs["codes"])
        learner, count = self.engine.learner, outputs["count"]
        if isinstance(learner, Single) and count > 1:
            self.engine.learner = OneVersusRest([self._new_single() for _ in range(count)])
        elif isinstance(learner, Joint) and count > learner.outputs:
            learner.widen(count)
        self._bind_loss()

    def _bind_loss(self) -> None:
        """Bind a loss with costs of labels to the labels."""
        learner = self.engine.learner
        if isinstance(learner, Joint) and isinstance(self._loss, MulticlassHinge) and self._labels:
            learner.use_loss(self._loss.bound(self._labels))

    def _restore_labels(self, labels: Sequence[Any], codes: Sequence[float]) -> None:
        """Restore the labels and their codes."""
        self._labels = list(labels)
        self._codes.clear()
        self._codes.update(zip(self._labels, codes, strict=True))

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; features that it lacks are restored before."""
        self._restore_labels(state["labels"], state["codes"])
        if "singles" in state["learner"]:
            singles = [self._new_single() for _ in state["learner"]["singles"]]
            self.engine.learner = OneVersusRest(singles)
        super().restore(state)
        self._bind_loss()
