"""LinearClassifier: labels of any kind, two classes or more, classes that appear over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from river import base

from streamlearn.engine.joint import Joint
from streamlearn.engine.labels import LabelColumn
from streamlearn.engine.single import OneVersusRest, Single
from streamlearn.errors import DivergenceError, IncompatibleError, InvalidEventError
from streamlearn.estimators import frames
from streamlearn.estimators.frames import Frame, Matrix, checked_weight, checked_weights
from streamlearn.estimators.linear import Contribution, Event, Linear, Memory
from streamlearn.losses import Logistic, Loss, MulticlassHinge, VectorLoss

if TYPE_CHECKING:
    import pandas as pd

    from streamlearn.engine.events import Events
    from streamlearn.estimators.frames import Array, RowTable
    from streamlearn.features import Reader
    from streamlearn.penalties import Penalty
    from streamlearn.rules import Rule


class LinearClassifier(Linear, base.MiniBatchClassifier):
    """A linear classifier that learns one event at a time.

    With nothing said it needs no tuning and no scaling: a mixture of rules that set their own
    steps (`sl.rules.Mixture`), logistic loss, exact feature names.

    More than two classes are learned one versus the rest, or jointly with a loss of several
    outputs (`Softmax`, `MulticlassHinge`). Of two classes the greater is the positive one if they
    are numbers or bools; otherwise the one seen second. A label may appear at any time, and each
    takes a set of weights. Before the first one a prediction is None, and there are no
    probabilities: `{}`, and no columns in data frames.

    Parameters
    ----------
    rule
        How weights move; one of `sl.rules`.
    loss
        One of `sl.losses`; None: logistic.
    penalty
        One of `sl.penalties`; None: none.
    features
        `sl.Names()` (None) or `sl.Hashing(bits)`.
    fit_intercept
        True: outside the penalty where the rule allows; "penalized": inside; False: none.
    class_weight
        Factors on the weight of events, by label.
    average
        Which weights are shown and predict: "last", "uniform", "tail" or "random".
    batch
        How many events make one step.
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
        self.average = average
        self.batch = batch
        self.seed = seed
        self._assemble()

    def _assemble(self) -> None:
        super()._assemble()
        if self._loss.kind not in ("binary", "one-class", "multiclass"):
            raise IncompatibleError(
                f"{type(self).__name__}: {self._loss!r} is a loss of numbers; "
                "use LinearRegressor, or Logistic, Hinge, Softmax .. for classes"
            )
        if not isinstance(self.class_weight, Mapping | None):
            raise IncompatibleError(
                f"class_weight maps labels to factors, got {self.class_weight!r}"
            )
        # by labels as Python has them, as all labels are
        self._factors: dict[Any, Any] = {
            label.item() if isinstance(label, np.generic) else label: factor
            for label, factor in (self.class_weight or {}).items()
        }
        for label, factor in self._factors.items():
            if not isinstance(factor, int | float | np.number) or not 0.0 <= factor < np.inf:
                raise IncompatibleError(
                    f"class_weight of {label!r} must be >= 0 and finite, got {factor!r}"
                )
        # labels in the order of the outputs, and what the learner is told of each
        self._labels: list[Any] = []
        self._codes: dict[Any, float] = {}
        # with factors the code of a label is not all that there is to it
        self.engine.codes = {} if self._factors else self._codes

    @property
    def _multiclass(self) -> bool:
        return True

    # -- labels -----------------------------------------------------------------------------------

    def _refuse(self, labels: list[Any]) -> None:
        """InvalidEventError if these labels, distinct and in this order, cannot all be learned."""
        seen = set(self._codes)
        fixed = self._loss.outputs if isinstance(self._loss, VectorLoss) else 0
        for label in labels:
            if label in seen:
                continue
            if frames.missing(label):
                raise InvalidEventError(f"{label!r} is no label")
            if fixed and label not in range(fixed):
                raise InvalidEventError(
                    f"label {label!r}: the costs of {self._loss!r} are those of the labels 0 to "
                    f"{fixed - 1}; give costs as a mapping from labels for others"
                )
            if not isinstance(self.engine.learner, Single):
                continue
            # of bools both are known at once
            seen |= {False, True} if not seen and isinstance(label, bool | np.bool_) else {label}
            if len(seen) > 2 and not self._splits():
                raise InvalidEventError(
                    f"label {label!r} is a third class, and {self._loss!r} with "
                    f"{self._penalty!r} tells only two apart; "
                    "use LinearClassifier(loss=Logistic())"
                )

    def _splits(self) -> bool:
        """Whether two classes, each other's rest, may become two of three."""
        return self._loss.kind == "binary" and not self._penalty.on_simplex

    def _meet(self, label: Any) -> None:
        """A label seen for the first time; `_refuse` let it pass."""
        self.engine.waiting()  # another thread must not find its learner replaced
        label = label.item() if isinstance(label, np.generic) else label
        learner = self.engine.learner
        if isinstance(learner, Joint | OneVersusRest):
            self._labels.append(label)
            self._codes[label] = float(len(self._labels) - 1)
            self._widen(learner)
        elif isinstance(label, bool) and not self._labels:
            self._labels = [False, True]
            self._codes.update({False: -1.0, True: 1.0})
        elif len(self._labels) == 0:
            self._meet_first(label)
        elif len(self._labels) == 1:
            self._meet_second(label, learner)
        else:
            self._meet_third(label, learner)

    def _widen(self, learner: Joint | OneVersusRest) -> None:
        """An output for the newest label."""
        if isinstance(learner, OneVersusRest):
            learner.add(self._fresh_single())
            return
        if len(self._labels) > learner.outputs:
            learner.widen(len(self._labels))
        if isinstance(self._loss, MulticlassHinge):
            learner.use_loss(self._loss.bound(self._labels))

    def _fresh_single(self) -> Single:
        """A learner of one class against its rest."""
        learner = self._fresh_learner()
        if not isinstance(learner, Single):
            raise TypeError(f"{self._loss!r} learns all classes at once")
        return learner

    def _meet_first(self, label: Any) -> None:
        self._labels = [label]
        self._codes[label] = 1.0 if isinstance(label, int | float) and label == 1 else -1.0

    def _meet_second(self, label: Any, learner: Single) -> None:
        (first,) = self._labels
        ordered = isinstance(first, int | float) and isinstance(label, int | float)
        first_is_positive = first > label if ordered else False
        if self._splits() and first_is_positive != (self._codes[first] > 0.0):
            # what was learned of the one class alone, seen from the other side
            learner.mirror()
            self._codes[first] = -self._codes[first]
        self._codes[label] = -self._codes[first]
        self._labels = [label, first] if self._codes[first] > 0.0 else [first, label]

    def _meet_third(self, label: Any, positive: Single) -> None:
        """Two classes that were each other's rest become two of three."""
        negative = self._fresh_single()
        negative.restore(positive.state())
        negative.mirror()
        several = OneVersusRest([negative, positive])
        several.add(self._fresh_single())
        self.engine.learner = several
        self._labels.append(label)
        self._codes.update({known: float(k) for k, known in enumerate(self._labels)})

    # -- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn one event with label `y` and weight `w`; weight 0 changes nothing."""
        if not self.engine.learn_one(x, y, w):
            self._learn_another(x, y, w)

    def _learn_another(self, x: Event, y: Any, w: float) -> None:
        """Learn one event whatever its label and weight."""
        if w != 1.0 or self._factors:
            w = self._weighed(y, w)
            if w == 0.0:
                return
        try:
            code = self._codes[y]
        except KeyError:
            code = self._first_code(x, y)
        except TypeError:
            raise InvalidEventError(f"a label must be hashable, got {y!r}") from None
        self.engine.learn_coded(x, code, w)

    def _first_code(self, x: Event, y: Any) -> float:
        """The code of a label that is new, as far as one can see."""
        label = y.item() if isinstance(y, np.generic) else y
        if label not in self._codes:
            self._refuse([label])
            # the event is read as a whole before its label counts as seen
            self.engine.check(x)
            self._meet(label)
        return self._codes[label]

    def _weighed(self, y: Any, w: float) -> float:
        """The weight of an event with its class's factor."""
        w = checked_weight(w)
        try:
            return checked_weight(w * self._factors.get(y, 1.0))
        except TypeError:
            raise InvalidEventError(f"a label must be hashable, got {y!r}") from None

    def learn_rows(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a CSR matrix or an array, without the GIL.

        Column j is the feature named j, an int.
        """
        rows = Matrix(X)
        self._run(rows, *self._labeled(y, w, rows.n), scored=False)

    def progressive_rows(self, X: Any, y: Any, w: Any = None) -> Array:
        """Learn the rows, and return the score of each before it was learned."""
        rows = Matrix(X)
        return self._joined(self._run(rows, *self._labeled(y, w, rows.n), scored=True))

    def _labeled(self, y: Any, w: Any, n: int) -> tuple[Array, Array | None]:
        """The labels of n rows, and their weights with the factors of their classes."""
        y = frames.label_array(y, n)
        return y, self._all_weighed(y, checked_weights(w, n))

    def _run(self, X: RowTable, y: Array, weights: Array | None, *, scored: bool) -> list[Array]:
        """Learn the rows; their scores in stretches, for each new label the next."""
        n = X.n
        if weights is not None and not weights.any():
            return [self._scores_of(X)] if scored else []
        # a label of weight 0 is not met
        labels = LabelColumn(y, None if weights is None else weights > 0.0)
        self._refuse(labels.distinct)
        rows = X.rows(self.engine, grow=True)
        codes = np.empty(n)

        def learn(start: int, stop: int) -> Array | None:
            codes[start:stop] = labels.coded(self._codes, start, stop)
            scores = np.zeros((n, self.engine.learner.outputs)) if scored else None
            if self.engine.learner.run(rows, codes, weights, scores, start, stop) < stop:
                raise DivergenceError
            return None if scores is None else scores[start:stop]

        seen = zip(labels.first, labels.distinct, strict=True)
        new = [(row, label) for row, label in seen if label not in self._codes]
        return self._in_stretches(n, new, learn)

    def _in_stretches(
        self,
        n: int,
        new: list[tuple[int, Any]],
        learn: Callable[[int, int], Array | None],
        memory: Memory | None = None,
    ) -> list[Array]:
        """Learn n rows as far as the labels are known; each new one is met when its turn comes."""
        parts: list[Array] = []
        start = 0
        for stop, label in [*new, (n, None)]:
            if stop > start:
                scores = learn(start, stop)
                if scores is not None:
                    parts.append(scores)
            if stop < n and label not in self._codes:  # of bools both are met at once
                first = self._positive_code()
                self._meet(label)
                if first is not None and self._positive_code() == -first:
                    parts = [-part for part in parts]
                    if memory is not None:
                        memory.mirror()
            start = stop
        return parts

    @property
    def learns(self) -> Literal["classes"]:
        """What a label is here."""
        return "classes"

    def check_labels(self, labels: Sequence[Any]) -> None:
        """Raise InvalidEventError unless these labels, each once, can be learned in this order."""
        self._refuse(list(labels))

    def progressive_events(
        self,
        events: Events,
        measures: Mapping[str, Array] | None = None,
        memory: Memory | None = None,
    ) -> Array:
        """Learn decoded events, and return the score of each before it was learned.

        Those without a label, or of weight 0, are scored only; one whose score is not finite, or
        whose gradient is too large to be squared, is left out, and its score NaN. The features must
        be those that the events were decoded with (`share_features`). With more than
        two classes there is a column for each label.

        `measures` are arrays to be filled, by name: "loss", "error" (1 where another label was
        predicted), "log_loss" of the probability; NaN for events that were not learned. "known" is
        how many labels were known when the event was scored. With a `memory`, scores and measures
        are those of when each event was predicted.
        """
        n = len(events)
        measures = dict(measures or {})
        known = measures.pop("known", None)
        before = len(self._labels)
        weights = events.learned_weights()
        if self._factors:
            factors = events.codes(self._factors, 1.0)
            weights = np.asarray(checked_weights(weights * factors, n))

        def encode() -> Array:
            return events.codes(self._codes, weights=weights)

        def learn(start: int, stop: int) -> Array:
            nonlocal before
            now = encode() if new else codes
            if known is not None:
                known[start], known[start + 1 : stop] = before, len(self._labels)
                before = len(self._labels)  # the first row may bring a label of its own
            scores = self._learn_events(events, now, weights, start, stop, memory)
            # while the labels are those known so far: a new one changes what scores mean
            self._measure(measures, scores, now, weights, start)
            return scores

        codes = encode()
        first: dict[Any, int] = {}
        for i in np.flatnonzero(np.isnan(codes)).tolist():
            first.setdefault(events.label_of(i), i)
        new = [(i, label) for label, i in first.items()]
        self._refuse(list(first))
        return self._joined(self._in_stretches(n, new, learn, memory))

    def code_of(self, label: Any) -> tuple[float, float]:
        """The code of a label, and the factor on the weight of its events."""
        return self._codes.get(label, math.nan), self._factors.get(label, 1.0)

    def _losses(self, scores: Array, codes: Array) -> Array:
        """The loss of each row; of several learners side by side, the sum of theirs."""
        if isinstance(self._loss, VectorLoss):
            return np.asarray(self._loss.value(scores, codes))
        if self._single():
            return self._loss.value(np.ascontiguousarray(scores[:, 0]), codes)
        total = np.zeros(len(scores))
        for k in range(scores.shape[1]):
            sides = np.where(codes == k, 1.0, -1.0)
            total += self._loss.value(np.ascontiguousarray(scores[:, k]), sides)
        return total

    def _errors(self, scores: Array, codes: Array) -> Array:
        """1 where another label is predicted, else 0."""
        if self._single():
            return np.asarray((scores[:, 0] > 0.0) != (codes > 0.0), dtype=float)
        return np.asarray(scores.argmax(axis=1) != codes, dtype=float)

    def _log_losses(self, scores: Array, codes: Array) -> Array:
        """Minus the logarithm of the probability of each row's label."""
        place = (codes > 0.0).astype(int) if self._single() else codes.astype(int)
        shares = self._shares(scores)[np.arange(len(scores)), place]
        return np.asarray(-np.log(np.maximum(shares, 1e-15)))

    measured = MappingProxyType({"loss": _losses, "error": _errors, "log_loss": _log_losses})

    def _positive_code(self) -> float | None:
        """The sign of the first label seen, as long as one output tells two classes apart."""
        return next(iter(self._codes.values()), None) if self._single() else None

    def _all_weighed(self, y: Array, weights: Array | None) -> Array | None:
        """The weights of rows with their classes' factors."""
        if not self._factors:
            return weights
        try:
            factors = np.array([self._factors.get(label, 1.0) for label in y.tolist()], dtype=float)
        except TypeError:
            raise InvalidEventError("a label is not hashable") from None
        return factors if weights is None else checked_weights(weights * factors, len(y))

    def _joined(self, parts: list[Array]) -> Array:
        """Scores of stretches with one, two or more classes known, as one array."""
        outputs = self.engine.learner.outputs
        split = isinstance(self.engine.learner, OneVersusRest)
        wide = []
        for part in parts:
            columns = np.hstack([-part, part]) if split and part.shape[1] == 1 else part
            missing = outputs - columns.shape[1]
            wide.append(np.pad(columns, ((0, 0), (0, missing))) if missing else columns)
        if len(wide) == 1:  # nearly always: then there is nothing to copy
            scores = wide[0]
        else:
            scores = np.concatenate(wide) if wide else np.zeros((0, outputs))
        return scores[:, 0] if outputs == 1 else scores

    def learn_many(self, X: pd.DataFrame, y: pd.Series[Any], w: Any = None) -> None:
        """Learn the rows of a data frame: all of them, or none if one cannot be read.

        Values that are missing by a column's type are left out; a NaN among floats is refused, for
        it may be a mistake: if it is none, give `X.convert_dtypes()`.
        """
        labels, weights = self._labeled(y, w, len(X))
        if weights is not None:
            learned = np.flatnonzero(weights)  # of the others no name becomes known
            X, labels, weights = X.iloc[learned], labels[learned], weights[learned]
        rows = Frame(X)
        self._run(rows, labels, weights, scored=False)
        self._name_labels(y)

    # -- predicting -------------------------------------------------------------------------------

    def _single(self) -> bool:
        return isinstance(self.engine.learner, Single)

    def score_one(self, x: Event) -> Any:
        """The score that predictions are made of: <w, x> with the intercept.

        Positive predicts the positive class. With more than two classes, a score for each label.
        Rules that guard their scores against outlandish values (the default) do so here too.
        """
        if self._single():
            return self.engine.score_one(x)
        return self.engine.scores_one(x, self._labels)

    def predict_one(self, x: Event) -> Any:  # type: ignore[override] # river's drops any **kwargs
        """The most likely label; None before any was seen."""
        labels = self._labels
        if len(labels) < 2:
            return labels[0] if labels else None
        return self.engine.class_one(x, labels)

    def predict_proba_one(self, x: Event) -> dict[Any, float]:  # type: ignore[override] # river's drops any **kwargs
        """The probability of each label; `{}` before any was seen.

        Where the loss defines none (Hinge, for instance) the logistic function of the score
        stands in, as in river: it orders labels as scores do, but is not calibrated. Of several
        classes, each learned versus the rest, it is the softmax of (K - 1) / K times the K scores,
        for two classes that same function.
        """
        labels = self._labels
        if len(labels) < 2:
            return dict.fromkeys(labels, 1.0)
        return self.engine.classes_one(x, labels)

    def _shares(self, scores: Array) -> Array:
        """The probabilities of two or more labels from their scores."""
        return self.engine.learner.probabilities(scores)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """`predict_proba_one` for the rows of a data frame: a column for each label seen."""
        if len(self._labels) < 2:
            return frames.table(np.ones((len(X), len(self._labels))), self._labels, X)
        scores = self._scores_of(Frame(X))[:, : len(self._labels)]
        return frames.table(self._shares(scores), self._labels, X)

    def predicted(self, scores: Array, known: Array | None = None) -> list[Any]:
        """The label that each score of `progressive_events` stands for; None: none was known.

        `known` says how many labels were when each was scored ("known" of the measures); None: all
        that are known now.
        """
        found: list[Any] = [None] * len(scores)
        for rows, columns in self._alike(scores, known):
            n = columns.shape[1]
            if n < 2:
                labels = list(self._codes)[:n] * len(columns)  # the first that was seen
            elif self._single():
                labels = [self._labels[place] for place in (columns[:, 1] > 0.0).tolist()]
            else:
                labels = [self._labels[place] for place in columns.argmax(axis=1).tolist()]
            if len(labels) == len(scores):
                return labels
            for row, label in zip(rows.tolist(), labels, strict=False):
                found[row] = label
        return found

    def prediction(self, score: Any, known: int | None = None) -> Any:
        """`predicted` of one score, or those of all outputs."""
        count = len(self._labels) if known is None else known
        if count < 2:
            return next(iter(self._codes), None) if count else None
        if self._single():
            return self._labels[score > 0.0]
        return self._labels[int(score[:count].argmax())]

    def probabilities(self, scores: Array, known: Array | None = None) -> Array | None:
        """The probability of each of `labels` (a column) by the scores of `progressive_events`.

        NaN where a label was not known, or no other one, when the event was scored: see
        `predicted`. None if the loss defines no probability.
        """
        if not self._loss.has_probability:
            return None
        shares = np.full((len(scores), len(self._labels)), np.nan)
        for rows, columns in self._alike(scores, known):
            n = columns.shape[1]
            learner = self.engine.learner
            if n == 2 and isinstance(learner, OneVersusRest):  # which shared one output then
                learner = learner.singles[1]
            if n > 1:
                one = isinstance(learner, Single)
                shares[rows, :n] = learner.probabilities(columns[:, 1:] if one else columns)
        return shares

    def _alike(self, scores: Array, known: Array | None) -> Iterator[tuple[Array, Array]]:
        """The rows that were scored when as many labels were known, and a score for each label."""
        whole = scores[:, None] if scores.ndim == 1 else scores
        if self._single():
            whole = np.hstack([-whole, whole])
        if known is None or np.all(known == len(self._labels)):
            yield np.arange(len(scores)), whole[:, : len(self._labels)]
            return
        for count in np.unique(known).astype(int).tolist():
            rows = np.flatnonzero(known == count)
            yield rows, whole[rows, :count]

    def predict_many(self, X: pd.DataFrame) -> pd.Series[Any]:
        """`predict_one` for the rows of a data frame."""
        scores = self._scores_of(Frame(X))
        single = self._single()
        return frames.series(
            self.predicted(scores[:, 0] if single else scores), self._label_name, X
        )

    # -- what was learned --------------------------------------------------------------------------

    @property
    def weights(self) -> dict[Any, Any]:
        """The weights by name, zeros left out; with more than two classes, by label first."""
        values = self.coefficients()
        if self._single():
            return self._by_name(values[0])
        return {label: self._by_name(values[k]) for k, label in enumerate(self._labels)}

    @property
    def intercept(self) -> Any:
        """The intercept; with more than two classes, by label."""
        values = self.engine.learner.intercepts()
        if self._single():
            return float(values[0])
        return {label: float(values[k]) for k, label in enumerate(self._labels)}

    def why(self, x: Event, output: Any = None) -> list[Contribution]:
        """What each feature of an event adds to the score of a class; None: of the one predicted.

        See `Linear.why`. Of two classes it is always the score of the positive one.
        """
        return super().why(x, self.predict_one(x) if output is None else output)

    @property
    def outputs(self) -> list[Any]:
        """What each score is of: the labels seen."""
        return self.labels

    @property
    def labels(self) -> list[Any]:
        """The labels seen, in the order of the outputs; of two, the positive one last."""
        return list(self._labels)

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays; see `Linear.state`."""
        codes = [self._codes[label] for label in self._labels]
        return super().state(features=features) | {"labels": list(self._labels), "codes": codes}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; features that it lacks are restored before."""
        self._labels = list(state["labels"])
        self._codes.clear()
        self._codes.update(zip(self._labels, state["codes"], strict=True))
        if "singles" in state["learner"]:
            singles = [self._fresh_single() for _ in state["learner"]["singles"]]
            self.engine.learner = OneVersusRest(singles)
        super().restore(state)
        learner = self.engine.learner
        if isinstance(learner, Joint) and isinstance(self._loss, MulticlassHinge) and self._labels:
            learner.use_loss(self._loss.bound(self._labels))
