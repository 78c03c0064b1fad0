"""The base of classifiers and regressors: rule x penalty x loss x features."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from river import base
from river.utils.pretty import print_table

from streamlearn.core.integers import is_integer
from streamlearn.core.weights import checked_weights
from streamlearn.engine.event_learner import EventLearner
from streamlearn.engine.joint import Joint
from streamlearn.engine.single import OneVersusRest, Single
from streamlearn.errors import IncompatibleError, ModelFileError
from streamlearn.estimators import checkpoints, frames, model_file
from streamlearn.estimators.parameter_data import all_subclasses, decode_param, encode_param
from streamlearn.estimators.scored_events import ScoredEvents
from streamlearn.features import Names, Reader, exact_names
from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import Penalty, Zero
from streamlearn.rules import Mixture, Rule
from streamlearn.rules.requirements import check
from streamlearn.storage import is_url

if TYPE_CHECKING:
    from streamlearn.core.arrays import Array
    from streamlearn.engine.events import Events
    from streamlearn.engine.rows import Rows
    from streamlearn.estimators.frames import RowTable


@dataclass(slots=True)
class LabeledRun:
    """Consecutive rows between which no label is new."""

    start: int
    stop: int
    codes: Array  # the engine's number for each label, or a row of targets
    weights: Array | None
    scores: Array  # before learning, once it is learned
    sign: float = 0.0  # of scores for the first label seen; 0: unknown, or never swapped
    known: int = 0  # labels known when the rows were scored
    known_first: int = 0  # when the first of them was scored, whose label may be new


class EstimatorObjective(NamedTuple):
    """What an estimator minimizes: loss + penalty."""

    loss: Loss | VectorLoss
    penalty: Penalty
    intercept: str  # "none", "free" of the penalty, or "inside" it


AVERAGES = ("last", "uniform", "tail", "random")
Event = Mapping[Any, Any]


class Linear(base.Estimator):
    """Rule x penalty x loss x features, as a river estimator."""

    rule: Rule | None
    loss: Loss | VectorLoss | None
    penalty: Penalty | None
    features: Reader | None
    fit_intercept: bool | str
    average: str
    batch: int
    seed: int | None
    calibrated: bool = False

    _default_loss: Loss

    def _assemble(self) -> None:
        """Check the parameters and build the model."""
        name = type(self).__name__
        self._rule = Mixture() if self.rule is None else self.rule
        self._penalty = Zero() if self.penalty is None else self.penalty
        self._loss = self._default_loss if self.loss is None else self.loss
        for part, kind in ((self._rule, Rule), (self._penalty, Penalty)):
            if not isinstance(part, kind):
                raise IncompatibleError(f"{name}: {part!r} is not a {kind.__name__.lower()}")
        if not isinstance(self._loss, Loss | VectorLoss):
            raise IncompatibleError(f"{name}: {self._loss!r} is not a loss")
        self._check_options()
        check(self._rule, self._penalty, self._loss)
        self._intercept = self._intercept_placement()
        self.objective = EstimatorObjective(self._loss, self._penalty, self._intercept)
        if self.seed is None:
            # As in river, two runs without a seed differ where they depend on chance.
            self._seed = int.from_bytes(os.urandom(8)) if self.average == "random" else 0
        else:
            self._seed = int(self.seed)
        reader = Names() if self.features is None else self.features.fresh()
        # The name of the last series of labels, which predict_many gives to its own.
        self._label_name: str | int | None = None
        # Internal; `late` and `regret` use it too.
        self.engine = EventLearner(reader, self._new_learner(), self._penalty.on_simplex)

    def _check_options(self) -> None:
        name = type(self).__name__
        if self.average not in AVERAGES:
            raise IncompatibleError(
                f"{name}: average must be one of {', '.join(AVERAGES)}, not {self.average!r}"
            )
        if self._penalty.steered and self.average in ("uniform", "tail"):
            raise IncompatibleError(
                f"{name} with {self._penalty!r}: an average has the weights of many steps, and so "
                "far more than asked for; use average='last'"
            )
        if not is_integer(self.batch) or self.batch < 1:
            raise IncompatibleError(f"{name}: batch must be an integer >= 1, not {self.batch!r}")
        if self.seed is not None and (not is_integer(self.seed) or not 0 <= self.seed < 2**64):
            raise IncompatibleError(
                f"{name}: seed must be None or an integer >= 0, not {self.seed!r}"
            )
        if self.features is not None and not isinstance(self.features, Reader):
            raise IncompatibleError(
                f"{name}: features must be Names() or Hashing(), not {self.features!r}"
            )

    def _intercept_placement(self) -> str:
        wanted = self.fit_intercept
        if wanted not in (True, False, "penalized"):
            raise IncompatibleError(
                f"{type(self).__name__}: fit_intercept must be True, False or 'penalized', "
                f"not {wanted!r}"
            )
        if wanted == False:  # noqa: E712 - NumPy's False too
            return "none"
        if self._penalty.on_simplex:
            raise IncompatibleError(
                f"{type(self).__name__} with {self._penalty!r}: weights on a simplex exclude an "
                "intercept; use fit_intercept=False"
            )
        return "inside" if wanted == "penalized" else self._rule.intercept

    def _new_learner(self) -> Single | Joint:
        rule, penalty, loss = self._rule, self._penalty, self._loss
        intercept, batch, seed = self._intercept, int(self.batch), self._seed
        if isinstance(loss, VectorLoss):
            outputs = max(loss.outputs, 1)
            return Joint(rule, penalty, loss, intercept, self.average, batch, seed, outputs)
        calibrated = bool(self.calibrated)
        return Single(rule, penalty, loss, intercept, self.average, batch, seed, calibrated)

    # -- internal interface -----------------------------------------------------------------------
    #
    # For the other packages of streamlearn. It may change; users do not need it.

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's parameters by name."""
        params: dict[str, Any] = self._get_params()
        return params

    @property
    def reader(self) -> Reader:
        """The features in use: the estimator's own, or shared with other estimators."""
        return self.engine.reader

    def feature_names(self) -> Sequence[Any]:
        """Return the name of each slot."""
        return self.engine.reader.names()

    def coefficients(self) -> Array:
        """Return the weights by slot, a row for each output."""
        return self.engine.learner.coefficients()

    # -- learning ---------------------------------------------------------------------------------

    def learn_one(self, x: Event, y: Any, w: float = 1.0) -> None:
        """Learn an event with label `y` and weight `w`; a weight of 0 changes nothing."""
        if not self.engine.learn_one(x, y, w):
            self._learn_checked(x, y, w)

    def _learn_checked(self, x: Event, y: Any, w: float) -> None:
        """Learn an event with any label and weight."""
        raise NotImplementedError

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a data frame: all of them, or none if one is invalid.

        X is a frame of pandas, Polars or pyarrow, or of another library that narwhals knows; y and
        w are series of it, arrays or lists. Nulls and NaN are missing fields. Of other objects with
        `__arrow_c_stream__`, such as a DuckDB relation, this holds batch by batch.
        """
        if frames.is_stream(X):
            self._learn_chunks(X, y, w)
        else:
            frame = frames.Frame(X)
            labels = frames.label_array(y, frame.n)
            self._learn_table(frame, labels, self._weights(labels, w, frame.n))
        name = getattr(y, "name", None)
        self._label_name = name if isinstance(name, str | int) else None

    def _learn_chunks(self, X: Any, y: Any, w: Any) -> None:
        """Learn a stream of columns, of which labels and weights are given for all rows."""
        labels = frames.label_array(y, len(y))
        weights = checked_weights(w, len(labels))
        start = 0
        for chunk in frames.chunks(X):
            if start + chunk.n > len(labels):
                raise ValueError(f"y has {len(labels)} labels for at least {start + chunk.n} rows")
            part = slice(start, start + chunk.n)
            given = None if weights is None else weights[part]
            y = frames.label_array(labels[part], chunk.n)
            self._learn_table(chunk, y, self._weights(y, given, chunk.n))
            start += chunk.n
        if start < len(labels):
            raise ValueError(f"y has {len(labels)} labels for {start} rows")

    def learn_arrow(self, data: Any, label: str, weight: str | None = None) -> None:
        """Learn the rows of a table or a stream of columns, in which labels are a column.

        `data` is anything with `__arrow_c_stream__`: a frame, a DuckDB relation, a
        `pyarrow.RecordBatchReader`. It is read in batches, each of which is learned completely, or
        not at all if a row is invalid; so memory does not grow with the rows. Rows without a label
        are skipped; a missing weight is 1.

        >>> import polars as pl
        >>> import streamlearn as sl
        >>> clicks = pl.DataFrame({"ad": ["shoes", "hats"] * 50, "clicked": [True, False] * 50})
        >>> model = sl.LinearClassifier()
        >>> model.learn_arrow(clicks, label="clicked")
        >>> model.predict_one({"ad": "shoes"})
        True
        """
        aside = frozenset([label] if weight is None else [label, weight])
        for chunk in frames.chunks(data, aside):
            y, w = frames.labels_and_weights(chunk.batch, label, weight)
            self._learn_table(chunk, y, self._weights(y, w, chunk.n))

    def learn_rows(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a CSR matrix or an array, without the GIL.

        Column j is the feature named j, an int.
        """
        rows = frames.Matrix(X)
        self._learn_table(rows, y, self._weights(y, w, rows.n))

    def progressive_rows(self, X: Any, y: Any, w: Any = None) -> Array:
        """Learn the rows and return the score of each before it was learned."""
        rows = frames.Matrix(X)
        scored = ScoredEvents(self, rows.n)
        self._learn_table(rows, y, self._weights(y, w, rows.n), scored)
        return scored.end().scores

    def _learn_table(
        self, X: RowTable, y: Any, weights: Array | None, scored: ScoredEvents | None = None
    ) -> None:
        """Learn rows: all of them, or none if one is invalid. Add them to `scored`, if given."""
        labels = self._labels_of_rows(y, weights, X.n)
        if weights is not None and not weights.any():
            if scored is not None:
                scored.add(LabeledRun(0, X.n, weights, weights, self._scores_of(X)))
            return
        rows = X.rows(self.engine, grow=True, weights=weights)
        for part in self._encode(labels, weights):
            if scored is None:
                run = self.engine.learner.run
                run(rows, part.codes, part.weights, None, part.start, part.stop)
            else:
                self.learn_part(rows, part, skip=False)
                scored.add(part)

    def _weights(self, y: Any, w: Any, n: int) -> Array | None:  # noqa: ARG002 - a classifier's
        """Return the weights with which n rows are learned; None: all are 1."""
        return checked_weights(w, n)

    def _labels_of_rows(self, y: Any, weights: Array | None, n: int) -> Any:
        """Return the labels of n rows, for `_encode`; InvalidEventError if they are invalid."""
        raise NotImplementedError

    def _encode(self, labels: Any, weights: Array | None) -> Iterator[LabeledRun]:
        """Yield the rows in parts; each is to be learned before the next, which has a new label."""
        raise NotImplementedError

    # -- scores ---------------------------------------------------------------------------------

    def _single_output(self) -> bool:
        return isinstance(self.engine.learner, Single)

    def score_one(self, x: Event) -> Any:
        """Return the score <w, x>, with the intercept, on which predictions are based.

        With several outputs, return a score for each label or target. A positive score predicts the
        positive one of two classes. Rules that clip scores of outliers (the default does) clip them
        here too.
        """
        if self._single_output():
            return self.engine.score_one(x)
        return self.engine.scores_one(x, self.outputs)

    def score_rows(self, X: Any) -> Array:
        """Return the scores <w, x> of the rows of a CSR matrix or an array; n x K for K outputs."""
        scores = self._scores_of(frames.Matrix(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores_of(self, X: RowTable) -> Array:
        """Return the scores of rows, a column for each output."""
        return self.engine.learner.score(X.rows(self.engine, grow=False))

    def predictions(self, scores: Array, known: Array | None = None) -> list[Any]:
        """Return the prediction for each score of `progressive_events`.

        `known` is the number of labels known when each event was scored;
        None: all that are known now. None is predicted before the first label.
        """
        raise NotImplementedError

    def _scores_of_frame(self, X: Any) -> Array:
        """Return the scores of the rows of a data frame, or a stream of columns."""
        if not frames.is_stream(X):
            return self._scores_of(frames.Frame(X))
        parts = [self._scores_of(chunk) for chunk in frames.chunks(X)]
        return np.concatenate([np.empty((0, self.engine.learner.outputs)), *parts])

    def predict_many(self, X: Any) -> Any:
        """Return `predict_one` for the rows of a data frame, as a series of its library.

        For other objects with `__arrow_c_stream__` it is an array of pyarrow.
        """
        scores = self._scores_of_frame(X)
        scores = scores[:, 0] if self._single_output() else scores
        return frames.series(self.predictions(scores), self._label_name, X)

    # -- decoded events ---------------------------------------------------------------------------

    def share_features(self, reader: Reader) -> None:
        """Read features with this reader, which other estimators may share.

        What was learned stays: an empty reader copies the names known here. A reader with other
        names for the same slots is refused. Its limits of names may differ.
        """
        own = self.engine.reader
        if own is reader:
            return
        if not reader.reads_like(own):
            raise ValueError(f"cannot share {reader!r}: this model's features are {own!r}")
        frozen, begun = own.frozen(), own.fresh().frozen()
        if reader.frozen() == begun:
            reader.restore_frozen(frozen)
        elif frozen not in (begun, reader.frozen()):
            raise ValueError(
                "the reader and this model have different edges of buckets; share the features of "
                "one model, and train the others from scratch"
            )
        known = own.names() if isinstance(own, Names) else []
        if isinstance(reader, Names) and isinstance(own, Names) and known and not reader.size:
            reader.adopt(own)
        elif known != (reader.names()[: len(known)] if known else []):
            raise ValueError(
                "the reader and this model have different names for the same slots; share the "
                "features of one model, and train the others from scratch"
            )
        if reader != own:
            self.features = reader.fresh()
        self.engine.reader = reader

    def progressive_events(self, events: Events, measures: Iterable[str] = ()) -> ScoredEvents:
        """Learn decoded events, each after it was scored; return the scores, and these measures.

        Events without a label or of weight 0 are only scored. An event that diverges (its score is
        not finite, or its gradient too large to square) is not learned, and its score is NaN. The
        events must have been decoded with this model's features (`share_features`).
        """
        scored = ScoredEvents(self, len(events), measures)
        for part in self.parts(events):
            self.learn_part(events, part)
            scored.add(part)
        return scored.end()

    def parts(self, events: Events) -> Iterator[LabeledRun]:
        """Yield decoded events in parts; each is to be learned before the next is asked for."""
        raise NotImplementedError

    def score_events(self, events: Events, measures: Iterable[str] = ()) -> ScoredEvents:
        """Score decoded events and measure them, as `progressive_events`, without learning."""
        scores = self.engine.learner.score(events)
        weights = events.learned_weights()
        scored = ScoredEvents(self, len(events), measures)
        scored.add(LabeledRun(0, len(events), self.codes_of(events), weights, scores))
        return scored.end()

    def codes_of(self, events: Events) -> Array:
        """Return the engine's number for each event's label, 0 where it has none or weight 0."""
        raise NotImplementedError

    def learn_part(self, rows: Rows, part: LabeledRun, *, skip: bool = True) -> None:
        """Learn a part and write its scores; `skip`: those of rows that diverge are NaN."""
        self.engine.learner.run(
            rows, part.codes, part.weights, part.scores, part.start, part.stop, skip
        )

    def align(self, scores: Array, sign: float, new: float = 0.0) -> Array:
        """Return scores of earlier, when `sign` was that of the part, in the columns of now.

        `new` fills the columns of outputs added since.
        """
        if sign * self.sign < 0.0:
            scores = -scores
        learner = self.engine.learner
        if scores.shape[1] == 1 and isinstance(learner, OneVersusRest):
            scores = np.hstack([-scores, scores])
        missing = learner.outputs - scores.shape[1]
        if not missing:
            return scores
        return np.pad(scores, ((0, 0), (0, missing)), constant_values=new)

    @property
    def sign(self) -> float:
        """The sign of scores for the first label seen; 0: unknown, or never swapped."""
        return 0.0

    def order_labels(self, labels: Sequence[Any]) -> None:
        """Say which of two labels is the positive one: the later of these; numbers have none."""

    def know_labels(self, labels: Sequence[Any]) -> None:
        """Add labels before they are seen, so that all copies of a model number them alike."""

    def code_and_factor(self, label: Any) -> tuple[float, float]:
        """Return a label's code for the engine, and the factor on the weight of its events."""
        return float(label), 1.0

    # What can be measured from scores and label codes, by name.
    score_measures: ClassVar[Mapping[str, Callable[..., Array]]] = {}

    # -- weights ----------------------------------------------------------------------------------

    def _by_name(self, values: Array) -> dict[Any, float]:
        names = self.feature_names()
        return {names[j]: float(values[j]) for j in np.flatnonzero(values).tolist()}

    @property
    def nonzero(self) -> int:
        """The exact number of non-zero weights, without the intercept."""
        return int(np.count_nonzero(self.coefficients()))

    @property
    def penalty_value(self) -> float:
        """Psi(w) at the current weights."""
        return float(self._penalty.value(self.engine.learner.penalized_weights()))

    @property
    def steps(self) -> int:
        """How many steps the rule has taken: one per event of weight > 0, or per batch."""
        return int(max(rule.t for rule in self.rules))

    @property
    def rules(self) -> list[Rule]:
        """The rules with their state, one for each output."""
        return self.engine.learner.rules()

    def _coefficients(self, n: int) -> Array:
        """Return the weights of columns 0 .. n-1, a row for each output."""
        all_weights = self.engine.learner.coefficients()
        slots = self.engine.reader.columns(n, False)
        if slots is None:
            return all_weights[:, :n].copy()
        out = np.zeros((len(all_weights), n))
        known = (slots >= 0) & (slots < all_weights.shape[1])
        out[:, known] = all_weights[:, slots[known]]
        return out

    def coef(self, n: int) -> Array:
        """Return the weights of the features named 0 .. n-1 as an array; K x n with K outputs."""
        if not is_integer(n) or n < 0:
            raise ValueError(f"n, the number of columns, must be an integer >= 0, not {n!r}")
        out = self._coefficients(n)
        return out[0] if len(out) == 1 else out

    def _bound_against(self, u: Any, intercept: float) -> tuple[float | None, str | None]:
        if isinstance(u, Mapping):
            values = np.zeros(self.engine.reader.size)
            for name, weight in u.items():
                slot = self.engine.reader.slot_of(name)
                if slot is None or slot >= len(values):
                    values = np.append(values, weight)
                else:
                    values[slot] = weight
            u = values
        elif u is not None and np.ndim(u) == 1:
            slots = self.engine.reader.columns(len(u), False)
            if slots is not None:
                return self._bound_against(
                    {j: float(x) for j, x in enumerate(u) if x != 0.0}, intercept
                )
        bound, reason = self.engine.learner.bound(u, intercept)
        return bound, reason

    def explain_one(self, x: Event, output: Any = None) -> list[Contribution]:
        """Return what the intercept and each feature add to an event's score, largest first.

        With several classes or targets, explain the score of `output`; None: of the predicted
        class, or the first target. The name of the intercept is None.
        """
        learner = self.engine.learner
        k = self.output_index(output)

        def weight(slot: int | None) -> float:
            found = learner.intercepts() if slot is None else learner.weights_at(slot)
            return float(found[k])

        return contributions(self.engine.reader, x, weight)

    def output_index(self, wanted: Any) -> int:
        """Return the index of a class or target among the outputs; None: of the first."""
        if wanted is None or self.engine.learner.outputs == 1:
            return 0
        if wanted not in self.outputs:
            raise ValueError(f"{wanted!r} is not one of {self.outputs}")
        return self.outputs.index(wanted)

    @property
    def outputs(self) -> list[Any]:
        """What each score is for: the labels seen, or the targets; empty with one target."""
        return []

    @property
    def weights(self) -> dict[Any, Any]:
        """The non-zero weights by name; with several outputs, by label or target first."""
        values = self.coefficients()
        if self._single_output():
            return self._by_name(values[0])
        return {output: self._by_name(values[k]) for k, output in enumerate(self.outputs)}

    @property
    def intercept(self) -> Any:
        """The intercept; with several outputs, by label or target."""
        values = self.engine.learner.intercepts()
        if self._single_output():
            return float(values[0])
        return {output: float(values[k]) for k, output in enumerate(self.outputs)}

    def debug_one(self, x: Event, decimals: int = 5) -> str:
        """Return `explain_one` as a text table, as river prints it."""
        rows = self.explain_one(x)
        columns = [
            ["Intercept" if one.name is None else str(one.name) for one in rows],
            *([f"{one[k]: ,.{decimals}f}" for one in rows] for k in (1, 2, 3)),
        ]
        table: str = print_table(["Name", "Value", "Weight", "Contribution"], columns)
        return table

    def regret_bound(self, u: Any = None, intercept: float = 0.0) -> float | None:
        """Return the paper's bound on the regret against `u` for the events so far.

        `u` is weights (by name, or an array by column), a number for their norm, or None for the
        rule's own radius. Without a proven bound return None; `why_no_bound` gives the reason.
        With batches, the bound is on the sum of their mean losses: multiply it by `batch`.
        """
        return self._bound_against(u, intercept)[0]

    def why_no_bound(self, u: Any = None, intercept: float = 0.0) -> str | None:
        """Return why `regret_bound` is None; None if it is not."""
        return self._bound_against(u, intercept)[1]

    # -- copies and files -------------------------------------------------------------------------

    def clone(
        self,
        new_params: dict[str, Any] | None = None,
        include_attributes: bool = False,  # noqa: FBT001, FBT002 - as in river
    ) -> Self:
        """Return a new estimator with these parameters; `include_attributes`: its state too."""
        clone = super().clone(new_params)
        if include_attributes:
            clone.restore(copy.deepcopy(self.state()))
        return clone

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays.

        Without `features`, it is for a checkpoint that keeps shared features once.
        """
        self.engine.raise_if_busy()
        shared = {"features": self.engine.reader.state()} if features else {}
        return shared | {
            "label_name": self._label_name,
            "learner": self.engine.learner.state(),
            "seed": self._seed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; features that it lacks are restored before."""
        if "features" in state:
            self.engine.reader.restore(state["features"])
        self._label_name = state["label_name"]
        self._seed = state["seed"]
        self.engine.learner.restore(state["learner"])

    def __getstate__(self) -> dict[str, Any]:
        params = {name: getattr(self, name) for name in self._get_params()}
        return {"params": params, "state": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["params"])  # type: ignore[misc]
        self.restore(state["state"])

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
        """Write the model to a file, from which `load` resumes bit for bit.

        `notes` are plain data stored beside it, such as its origin; `load` ignores them.
        """
        saved = self.file_data(self.state())
        model_file.write(path, saved if notes is None else {**saved, "notes": dict(notes)})

    def file_data(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return what a file holds: the class, its parameters, and this state."""
        params = {name: encode_param(getattr(self, name)) for name in self._get_params()}
        return {"estimator": type(self).__name__, "params": params, "state": state}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, learner: str | None = None) -> Self:
        """Load a model that `save` wrote, or a learner of a daemon's `checkpoint.path`.

        The daemon may be running; its newest checkpoint is read. Nothing in the file is executed.
        """
        kept = is_url(path) or os.path.isdir(path)  # noqa: PTH112 - bytes are paths too
        data = checkpoints.model(path, learner) if kept else model_file.read(path)
        return cls.from_file_data(data, path)

    @classmethod
    def from_file_data(cls, data: dict[str, Any], path: str | os.PathLike[str]) -> Self:
        """Return the model of a file's data; `path` is its name in errors."""
        try:
            return cls._from_file_data(data, path)
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(
                f"{path} is not a model that this version of streamlearn can read: {error!r}"
            ) from error

    @classmethod
    def _from_file_data(cls, data: dict[str, Any], path: str | os.PathLike[str]) -> Self:
        name = data["estimator"]
        classes = {kind.__name__: kind for kind in (cls, *all_subclasses(cls))}
        if name not in classes:
            raise ModelFileError(
                f"{path} holds a {name}, not a {cls.__name__}; load it with {name}.load"
            )
        params = {key: decode_param(value) for key, value in data["params"].items()}
        model: Self = classes[name](**params)
        model.restore(data["state"])
        return model

    # -- without weights --------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Return what turns scores into predictions, as plain data: all but features and weights.

        `from_description` returns such a model.
        """
        params = {name: encode_param(getattr(self, name)) for name in self._get_params()}
        params["features"] = None
        outputs = {"names": self.outputs, "count": self.engine.learner.outputs}
        return {"estimator": type(self).__name__, "params": params, "outputs": outputs}

    @classmethod
    def from_description(cls, data: Mapping[str, Any]) -> Self:
        """Return the model of a description, which has its outputs but no weights."""
        classes = {kind.__name__: kind for kind in (cls, *all_subclasses(cls))}
        params = {key: decode_param(value) for key, value in data["params"].items()}
        model: Self = classes[data["estimator"]](**params)
        model.restore_outputs(data["outputs"])
        return model

    def restore_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Restore the outputs of a description."""
        raise NotImplementedError


class Contribution(NamedTuple):
    """What a feature adds to a score: value x weight. The name of the intercept is None."""

    name: Any
    value: float
    weight: float
    contribution: float


def contributions(
    reader: Reader, x: Event, weight: Callable[[int | None], float]
) -> list[Contribution]:
    """Return what intercept and features add to a score, given the weight of a slot.

    The slot of the intercept is None.
    """
    # A fresh reader knows the names where the model has only their hashes.
    names = exact_names(reader)
    found = [contribution(None, 1.0, weight(None))]
    for own, value in names.read_event(x):
        name = names.name_of(own)
        slot = reader.slot_of(name)
        found.append(contribution(name, value, 0.0 if slot is None else weight(slot)))
    return sorted(found, key=lambda one: -abs(one.contribution))


def contribution(name: Any, value: float, weight: float) -> Contribution:
    """Return the contribution of a feature with this value and weight."""
    return Contribution(name, value, weight, value * weight)
