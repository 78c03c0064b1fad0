"""LinearClassifier: labels of any kind, two classes or more, classes that appear over time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from streamlearn import frames
from streamlearn.engine.learner import Joint, OneVersusRest, Single
from streamlearn.errors import BadEvent
from streamlearn.features import Reader
from streamlearn.linear import Event, Linear
from streamlearn.losses import Logistic, Loss, VectorLoss
from streamlearn.penalties import Penalty
from streamlearn.rules import Refused, Rule

if TYPE_CHECKING:
    import pandas as pd


class LinearClassifier(Linear, base.MiniBatchClassifier):
    """A linear classifier that learns one event at a time.

    With nothing said it needs no tuning and no scaling: a mixture of rules that set their own
    steps (`sl.rules.Mixture`), logistic loss, exact feature names.

    More than two classes are learnt one versus the rest, or jointly with a loss of several
    outputs (`Softmax`, `MulticlassHinge`). Of two classes the greater is the positive one if they
    are numbers or bools; otherwise the one seen second.

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
        True: outside the penalty where the rule allows; "penalised": inside; False: none.
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
        kind = self._loss.kind
        if kind not in ("binary", "one-class", "multiclass", "multitarget"):
            raise Refused(
                f"{type(self).__name__}: {self._loss!r} is a loss of numbers; use LinearRegressor, "
                "or Logistic, Hinge, Softmax .. for classes"
            )
        self._factors = dict(self.class_weight or {})
        for label, factor in self._factors.items():
            if not 0.0 <= factor < np.inf:
                raise Refused(f"class_weight of {label!r} must be >= 0 and finite, got {factor!r}")
        # labels in the order of the outputs, and what the learner is told of each
        self._labels: list[Any] = []
        self._codes: dict[Any, float] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    # -- labels -----------------------------------------------------------------------------------

    def _code(self, label: Any) -> float:
        """What the learner is told of a label; a new one is met first."""
        try:
            code = self._codes.get(label)
        except TypeError:
            raise BadEvent(f"a label must be hashable, got {label!r}") from None
        return self._meet(label) if code is None else code

    def _meet(self, label: Any) -> float:
        """A label seen for the first time."""
        label = label.item() if isinstance(label, np.generic) else label
        if label is None or label != label:
            raise BadEvent(f"{label!r} is no label")
        learner = self._model.learner
        if isinstance(learner, Joint):
            self._labels.append(label)
            self._codes[label] = float(len(self._labels) - 1)
            if len(self._labels) > learner.outputs:
                learner.widen(len(self._labels))
            if hasattr(self._loss, "bound"):
                learner.use_loss(self._loss.bound(self._labels))
        elif isinstance(learner, OneVersusRest):
            learner.add(self._fresh_learner())
            self._labels.append(label)
            self._codes[label] = float(len(self._labels) - 1)
        elif isinstance(label, bool) and not self._labels:
            self._labels = [False, True]
            self._codes = {False: -1.0, True: 1.0}
        elif len(self._labels) < 2:
            self._meet_second(label) if self._labels else self._meet_first(label)
        else:
            self._meet_third(label)
        return self._codes[label]

    def _meet_first(self, label: Any) -> None:
        self._labels = [label]
        self._codes[label] = 1.0 if isinstance(label, int | float) and label == 1 else -1.0

    def _meet_second(self, label: Any) -> None:
        (first,) = self._labels
        ordered = isinstance(first, int | float) and isinstance(label, int | float)
        first_is_positive = first > label if ordered else False
        symmetric = self._loss.kind == "binary" and not self._penalty.on_simplex
        if symmetric and first_is_positive != (self._codes[first] > 0.0):
            # what was learnt of the one class alone, seen from the other side
            self._model.learner.mirror()
            self._codes[first] = -self._codes[first]
        self._codes[label] = -self._codes[first]
        self._labels = [label, first] if self._codes[first] > 0.0 else [first, label]

    def _meet_third(self, label: Any) -> None:
        """Two classes that were each other's rest become two of three."""
        if self._loss.kind != "binary" or self._penalty.on_simplex:
            raise BadEvent(
                f"label {label!r} is a third class after {self._labels}, and {self._loss!r} with "
                f"{self._penalty!r} tells only two apart; use LinearClassifier(loss=Logistic())"
            )
        positive = self._model.learner
        negative = self._fresh_learner()
        negative.restore(positive.state())
        negative.mirror()
        self._model.learner = OneVersusRest([negative, positive])
        self._model.learner.add(self._fresh_learner())
        self._labels.append(label)
        self._codes = {known: float(k) for k, known in enumerate(self._labels)}

    # -- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn one event with label `y` and weight `w`; weight 0 changes nothing."""
        if w != 1.0:
            w = self._checked_weight(w)
        if self._factors:
            w *= self._factors.get(y, 1.0)
        if w == 0.0:
            return
        try:
            code = self._codes[y]
        except (KeyError, TypeError):
            self._model.check(x)
            code = self._code(y)
        self._model.learn_one(x, code, w)

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
        y = np.asarray(y)
        n = X.shape[0]
        if y.shape != (n,):
            raise ValueError(f"y must have one label for each of {n} rows, got shape {y.shape}")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise BadEvent("a label is not a finite number")
        weights = self._checked_weights(w, n)
        rows = self._model.rows(X, True)
        parts: list[np.ndarray[Any, Any]] = []
        start = 0
        while start < n:
            # as far as the labels are known, so that a new one is met when its turn comes
            codes, stop = self._encode(y[start:])
            stop += start
            if stop == start:
                before = self._codes.copy()
                self._code(y[start])
                if scored and any(self._codes.get(k) == -c for k, c in before.items()):
                    parts = [-part for part in parts]
                continue
            labels = np.zeros(n)
            labels[start:stop] = codes[: stop - start]
            used = self._with_factors(weights, y, start, stop)
            scores = np.zeros((n, self._model.learner.outputs)) if scored else None
            self._model.learner.run(rows, labels, used, scores, start, stop)
            if scores is not None:
                parts.append(scores[start:stop])
            start = stop
        return self._joined(parts) if scored else None

    def _encode(self, y: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
        """The codes of the labels, and up to where they are known."""
        if y.dtype.kind == "O":
            found = [self._codes.get(label, np.nan) for label in y]
            codes = np.array(found, dtype=float)
        else:
            codes = np.full(len(y), np.nan)
            for label, code in self._codes.items():
                if np.result_type(y.dtype, np.asarray(label).dtype).kind == y.dtype.kind or (
                    not isinstance(label, str)
                ):
                    codes[y == label] = code
        unknown = np.flatnonzero(np.isnan(codes))
        return codes, int(unknown[0]) if len(unknown) else len(y)

    def _with_factors(
        self, weights: np.ndarray[Any, Any] | None, y: np.ndarray[Any, Any], start: int, stop: int
    ) -> np.ndarray[Any, Any] | None:
        if not self._factors:
            return weights
        factors = np.ones(len(y)) if weights is None else weights.copy()
        factors[start:stop] *= [self._factors.get(label, 1.0) for label in y[start:stop].tolist()]
        return factors

    def _joined(self, parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Scores of stretches with one, two or more classes known, as one array."""
        outputs = self._model.learner.outputs
        wide = []
        for part in parts:
            if part.shape[1] == 1 and outputs > 1 and isinstance(
                self._model.learner, OneVersusRest
            ):
                part = np.hstack([-part, part])
            wide.append(np.pad(part, ((0, 0), (0, outputs - part.shape[1]))))
        scores = np.concatenate(wide) if wide else np.zeros((0, outputs))
        return scores[:, 0] if outputs == 1 else scores

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a data frame."""
        for x, label in zip(frames.events(X), list(y), strict=True):
            self.learn_one(x, label)

    # -- predicting -------------------------------------------------------------------------------

    def _single(self) -> bool:
        return isinstance(self._model.learner, Single)

    def score_one(self, x: Event) -> Any:
        """The score that predictions are made of: <w, x> with the intercept.

        Positive predicts the positive class. With more than two classes, a score for each label.
        Rules that guard their scores against outlandish values (the default) do so here too.
        """
        if self._single():
            return self._model.score_one(x)
        scores = self._model.score_all(x)
        return {label: float(scores[k]) for k, label in enumerate(self._labels)}

    def predict_one(self, x: Event) -> Any:
        """The most likely label; False before any was seen."""
        if len(self._labels) < 2:
            return self._labels[0] if self._labels else False
        if self._single():
            return self._labels[1 if self._model.score_one(x) > 0.0 else 0]
        return self._labels[int(np.argmax(self._model.score_all(x)[: len(self._labels)]))]

    def predict_proba_one(self, x: Event) -> dict[Any, float]:
        """The probability of each label.

        NotImplementedError where the loss defines none (Hinge, for instance).
        """
        if not self._loss.has_probability:
            raise NotImplementedError(f"{self._loss!r} defines no probability; use score_one")
        if not self._labels:
            return {False: 0.5, True: 0.5}
        if len(self._labels) == 1:
            return {self._labels[0]: 1.0}
        if self._single():
            p = self._loss.probability(self._model.score_one(x))
            return {self._labels[0]: 1.0 - p, self._labels[1]: p}
        shares = self._shares(self._model.score_all(x)[None, :])[0]
        return {label: float(shares[k]) for k, label in enumerate(self._labels)}

    def _shares(self, scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The probabilities of K classes from their scores."""
        shares = np.asarray(self._loss.probability(scores))
        if isinstance(self._model.learner, Joint):
            return shares
        total = shares.sum(axis=1, keepdims=True)
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.where(total > 0.0, shares / np.where(total > 0.0, total, 1.0), even)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """`predict_proba_one` for the rows of a data frame."""
        return frames.table([self.predict_proba_one(x) for x in frames.events(X)], X)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """`predict_one` for the rows of a data frame."""
        return frames.series([self.predict_one(x) for x in frames.events(X)], X)

    # -- what was learnt ----------------------------------------------------------------------------

    @property
    def weights(self) -> dict[Any, Any]:
        """The weights by name, zeros left out; with more than two classes, by label first."""
        values = self._model.learner.coefficients()
        if self._single():
            return self._as_dict(values[0])
        return {label: self._as_dict(values[k]) for k, label in enumerate(self._labels)}

    @property
    def intercept(self) -> Any:
        """The intercept; with more than two classes, by label."""
        values = self._model.learner.intercepts()
        if self._single():
            return float(values[0])
        return {label: float(values[k]) for k, label in enumerate(self._labels)}

    @property
    def labels(self) -> list[Any]:
        """The labels seen, in the order of the outputs; of two, the positive one last."""
        return list(self._labels)

    def _state(self) -> dict[str, Any]:
        codes = [self._codes[label] for label in self._labels]
        return super()._state() | {"labels": list(self._labels), "codes": codes}

    def _restore(self, state: dict[str, Any]) -> None:
        self._labels = list(state["labels"])
        self._codes = dict(zip(self._labels, state["codes"], strict=True))
        if "singles" in state["learner"]:
            singles = [self._fresh_learner() for _ in state["learner"]["singles"]]
            self._model.learner = OneVersusRest(singles)
        super()._restore(state)
        if isinstance(self._model.learner, Joint) and hasattr(self._loss, "bound"):
            self._model.learner.use_loss(self._loss.bound(self._labels))
