"""What classifiers and regressors share: a model of one rule, loss and penalty, and its faces."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from river import base
from river.utils.pretty import print_table

from streamlearn.core.parameters import Parameterized
from streamlearn.engine.joint import Joint
from streamlearn.engine.model import Model
from streamlearn.engine.single import OneVersusRest, Single
from streamlearn.errors import IncompatibleError, ModelFileError
from streamlearn.estimators import checkpoints, frames, model_file
from streamlearn.features import Names, Reader, from_state
from streamlearn.losses import Loss, VectorLoss
from streamlearn.penalties import Penalty, Zero
from streamlearn.rules import Mixture, Rule
from streamlearn.rules.needs import check

if TYPE_CHECKING:
    from streamlearn.engine.events import Events
    from streamlearn.estimators.frames import Array, RowTable


class Memory(Protocol):
    """Scores of rows that were predicted long before they are learned, for the one estimator."""

    @property
    def label_before(self) -> Any:
        """The label that a correction takes back."""

    def fit(self, outputs: int, *, split: bool) -> None:
        """Room for this many outputs; `split`: two classes that shared one have their own."""

    def mirror(self) -> None:
        """The two classes change places."""

    def corrections(self, start: int, stop: int) -> list[int]:
        """The rows among these that are corrections."""

    def asked_at(self, row: int) -> Array:
        """The scores at which the row was learned with `label_before`; NaN: it was not."""

    def take(self, scores: Array, start: int, stop: int) -> None:
        """Remember the scores of what was predicted, and show those of what was learned."""


class Objective(NamedTuple):
    """What an estimator minimizes over its events: loss + penalty."""

    loss: Loss | VectorLoss
    penalty: Penalty
    intercept: str  # "none", "free" of the penalty, or "inside" it


AVERAGES = ("last", "uniform", "tail", "random")
Event = Mapping[Any, Any]


class Linear(base.Estimator):
    """Rule x penalty x loss x features, as a river estimator."""

    # What the model is made of. A preset overrides them with properties of its parameters.
    rule: Rule | None
    loss: Loss | VectorLoss | None
    penalty: Penalty | None
    features: Reader | None
    fit_intercept: bool | str
    average: str
    batch: int
    seed: int | None

    _default_loss: Loss

    def _assemble(self) -> None:
        """Build the model; refuse here what cannot be learned."""
        name = type(self).__name__
        self._rule = Mixture() if self.rule is None else self.rule
        self._penalty = Zero() if self.penalty is None else self.penalty
        self._loss = self._default_loss if self.loss is None else self.loss
        for part, kind in ((self._rule, Rule), (self._penalty, Penalty)):
            if not isinstance(part, kind):
                raise IncompatibleError(f"{name}: {part!r} is not a {kind.__name__.lower()}")
        if not isinstance(self._loss, Loss | VectorLoss):
            raise IncompatibleError(f"{name}: {self._loss!r} is not a loss")
        if self.average not in AVERAGES:
            raise IncompatibleError(
                f"{name}: average is one of {', '.join(AVERAGES)}, not {self.average!r}"
            )
        if not whole(self.batch) or self.batch < 1:
            raise IncompatibleError(
                f"{name}: batch must be a whole number >= 1, not {self.batch!r}"
            )
        if self.seed is not None and (not whole(self.seed) or not 0 <= self.seed < 2**64):
            raise IncompatibleError(
                f"{name}: seed is None or a whole number >= 0, not {self.seed!r}"
            )
        check(self._rule, self._penalty, self._loss)
        self._intercept = self._place_of_intercept()
        if self.seed is None:
            # river's convention: without a seed two runs differ, where chance plays a part
            self._seed = int.from_bytes(os.urandom(8)) if self.average == "random" else 0
        else:
            self._seed = int(self.seed)
        if self.features is not None and not isinstance(self.features, Reader):
            raise IncompatibleError(
                f"{name}: features are Names() or Hashing(), not {self.features!r}"
            )
        reader = Names() if self.features is None else self.features.fresh()
        # what predict_many calls its series: the name of the labels seen last
        self._label_name: str | int | None = None
        # reads and learns; `late` and `regret` use it too
        self.engine = Model(reader, self._fresh_learner(), self._penalty.on_simplex)

    def _place_of_intercept(self) -> str:
        wish = self.fit_intercept
        if wish not in (True, False, "penalized"):
            raise IncompatibleError(
                f"{type(self).__name__}: fit_intercept is True, False or 'penalized', not {wish!r}"
            )
        if wish == False:  # noqa: E712 - of NumPy's too
            return "none"
        if self._penalty.on_simplex:
            raise IncompatibleError(
                f"{type(self).__name__} with {self._penalty!r}: weights on a simplex leave no room "
                "for an intercept; use fit_intercept=False"
            )
        return "inside" if wish == "penalized" else self._rule.intercept

    def _fresh_learner(self) -> Single | Joint:
        rule, penalty, loss = self._rule, self._penalty, self._loss
        place, batch, seed = self._intercept, int(self.batch), self._seed
        if isinstance(loss, VectorLoss):
            outputs = max(loss.outputs, 1)
            return Joint(rule, penalty, loss, place, self.average, batch, seed, outputs)
        return Single(rule, penalty, loss, place, self.average, batch, seed)

    # -- internal interface -----------------------------------------------------------------------
    #
    # For the other packages of streamlearn; users have no need of it, and it may change.

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's parameters by name."""
        params: dict[str, Any] = self._get_params()
        return params

    @property
    def objective(self) -> Objective:
        """What is minimized, with the defaults filled in."""
        return Objective(self._loss, self._penalty, self._intercept)

    @property
    def reader(self) -> Reader:
        """The features in use: those of `features`, or those shared with other estimators."""
        return self.engine.reader

    def feature_names(self) -> Sequence[Any]:
        """Return the name of each slot."""
        return self.engine.reader.names()

    def coefficients(self) -> Array:
        """Return the weights by slot, a row for each output."""
        return self.engine.learner.coefficients()

    # -- scores ---------------------------------------------------------------------------------

    def score_rows(self, X: Any) -> Array:
        """The scores <w, x> of the rows of a CSR matrix or an array; n x K with K outputs."""
        scores = self._scores_of(frames.Matrix(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores_of(self, X: RowTable) -> Array:
        """The scores of rows, a column for each output."""
        return self.engine.learner.score(X.rows(self.engine, grow=False))

    # -- decoded events ---------------------------------------------------------------------------

    def share_features(self, reader: Reader) -> None:
        """Read features with this reader from now on, together with other estimators.

        What was learned stays: an empty reader takes over the names known here; one that knows
        other names for the same slots is refused.
        """
        own = self.engine.reader
        if own is reader:
            return
        if reader != own:
            raise ValueError(f"this model's features are {own!r}, which are not {reader!r}")
        known = own.names() if isinstance(own, Names) else []
        if known and not reader.size:
            reader.restore(own.state())
        elif known != (reader.names()[: len(known)] if known else []):
            raise ValueError(
                "the reader and this model know different names for the same slots: share the "
                "features of one model, and learn the others afresh"
            )
        self.engine.reader = reader

    def _learn_events(
        self,
        events: Events,
        codes: Array,
        weights: Array,
        start: int,
        stop: int,
        memory: Memory | None = None,
    ) -> Array:
        """Learn these rows; one whose score is not finite is left out, and its score NaN.

        With a memory, scores are those of when the rows were predicted; NaN for a correction.
        """
        learner = self.engine.learner
        scores = np.empty((len(events), learner.outputs))
        if memory is None:
            self._learn_rows(events, codes, weights, scores, start, stop)
            return scores[start:stop]
        memory.fit(learner.outputs, split=isinstance(learner, OneVersusRest))
        at = start
        for row in memory.corrections(start, stop):
            self._learn_rows(events, codes, weights, scores, at, row)
            memory.take(scores, at, row)
            self._correct(events, row, float(codes[row]), float(weights[row]), memory)
            scores[row] = np.nan
            at = row + 1
        self._learn_rows(events, codes, weights, scores, at, stop)
        memory.take(scores, at, stop)
        return scores[start:stop]

    def _learn_rows(
        self, events: Events, codes: Array, weights: Array, scores: Array, at: int, stop: int
    ) -> None:
        """Learn these rows and fill in their scores."""
        while at < stop:
            at = self.engine.learner.run(events, codes, weights, scores, at, stop)
            if at < stop:
                scores[at] = np.nan
                at += 1

    def check_corrections(self) -> None:
        """IncompatibleError if what an event has taught cannot be taken back."""
        if not self.engine.learner.takes_back:
            raise IncompatibleError(
                f"{type(self).__name__} with {self.rules[0]!r}: the slope of an event can be taken "
                "back only where weights follow from the sum of all slopes; for corrections use "
                'DualAveraging or AdaGradDualAveraging, a scalar loss, average="last" and batch=1'
            )

    def _correct(
        self, events: Events, row: int, code: float, weight: float, memory: Memory
    ) -> None:
        """Learn a row, and take back what it taught with another label."""
        before, factor = self.code_of(memory.label_before)
        self.engine.correct(
            events, row, code, weight, memory.asked_at(row), before, factor * events.weights[row]
        )

    def code_of(self, label: Any) -> tuple[float, float]:
        """What the learner takes a label for, and the factor on the weight of its events."""
        return float(label), 1.0

    # what can be measured of a score and its label; each estimator says what it has
    measured: ClassVar[Mapping[str, Callable[..., Array]]] = {}

    def _measure(
        self,
        measures: Mapping[str, Array],
        scores: Array,
        codes: Array,
        weights: Array,
        start: int,
    ) -> None:
        """Fill in what was asked for of the rows from `start` on; NaN for rows not learned."""
        stop = start + len(scores)
        learned = (weights[start:stop] > 0.0) & ~np.isnan(scores[:, 0])
        codes = codes[start:stop]
        # by number: which of the rows were learned can't be foreseen, and a mask is slow then
        rows = None if learned.all() else np.flatnonzero(learned)
        if rows is not None:
            scores, codes = scores[rows], codes[rows]
        for name, out in measures.items():
            values = self.measured[name](self, scores, codes)
            if rows is None:
                out[start:stop] = values
            else:
                out[start:stop] = np.nan
                out[start + rows] = values

    # -- what was learned --------------------------------------------------------------------------

    def _by_name(self, values: Array) -> dict[Any, float]:
        names = self.feature_names()
        return {names[j]: float(values[j]) for j in np.flatnonzero(values).tolist()}

    @property
    def nonzero(self) -> int:
        """How many weights of features are not 0: an exact count, the intercept left out."""
        return int(np.count_nonzero(self.coefficients()))

    @property
    def penalty_value(self) -> float:
        """Psi(w) at the current weights."""
        return float(self._penalty.value(self.engine.learner.penalised()))

    @property
    def steps(self) -> int:
        """How many steps were taken: events of weight > 0, or batches of them."""
        return int(max(rule.t for rule in self.rules))

    @property
    def rules(self) -> list[Rule]:
        """The rules at work, one for each output: their state, to look at."""
        return self.engine.learner.rules()

    def _coefficients(self, n: int) -> Array:
        """The weights of columns 0 .. n-1, a row for each output."""
        all_weights = self.engine.learner.coefficients()
        slots = self.engine.reader.columns(n, False)
        if slots is None:
            return all_weights[:, :n].copy()
        out = np.zeros((len(all_weights), n))
        known = (slots >= 0) & (slots < all_weights.shape[1])
        out[:, known] = all_weights[:, slots[known]]
        return out

    def coef(self, n: int) -> Array:
        """The weights of the features named 0 .. n-1 as an array; K x n with K outputs."""
        if not whole(n) or n < 0:
            raise ValueError(f"n is how many columns, a whole number >= 0; not {n!r}")
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

    def why(self, x: Event, output: Any = None) -> list[Contribution]:
        """What each feature of an event adds to its score, and the intercept; largest first.

        With several classes or targets it is the score of `output`; None: of the class predicted,
        or of the first target. The intercept has the name None.
        """
        learner, reader = self.engine.learner, self.engine.reader
        k = 0 if learner.outputs == 1 else self._output(output)
        # with names of their own, also where the model knows only their hashes
        names = Names(reader.interactions)
        found = [contribution(None, 1.0, float(learner.intercepts()[k]))]
        for own, value in names.read_event(x):
            name = names.name_of(own)
            slot = reader.slot_of(name)
            weight = 0.0 if slot is None else float(learner.weights_at(slot)[k])
            found.append(contribution(name, value, weight))
        return sorted(found, key=lambda one: -abs(one.contribution))

    def _output(self, wanted: Any) -> int:
        """The place of a class or target among the outputs."""
        if wanted is None:
            return 0
        if wanted not in self.outputs:
            raise ValueError(f"{wanted!r} is not one of {self.outputs}")
        return self.outputs.index(wanted)

    @property
    def outputs(self) -> list[Any]:
        """What each score is of: the labels seen, or the targets; of one target, nothing."""
        return []

    def debug_one(self, x: Event, decimals: int = 5) -> str:
        """`why` as a table of text, as river prints it."""
        rows = self.why(x)
        columns = [
            ["Intercept" if one.name is None else str(one.name) for one in rows],
            *([f"{one[k]: ,.{decimals}f}" for one in rows] for k in (1, 2, 3)),
        ]
        table: str = print_table(["Name", "Value", "Weight", "Contribution"], columns)
        return table

    def regret_bound(self, u: Any = None, intercept: float = 0.0) -> float | None:
        """The paper's bound on the regret against `u` for what has been seen.

        `u` is weights (by name, or an array by column), a number for their norm, or None for the
        rule's own radius. None where nothing is proved: `why_no_bound` says why. With batches the
        bound is on the sum of their mean losses: times `batch` for the events.
        """
        return self._bound_against(u, intercept)[0]

    def why_no_bound(self, u: Any = None, intercept: float = 0.0) -> str | None:
        """Why `regret_bound` is None; None if it is not."""
        return self._bound_against(u, intercept)[1]

    # -- copies and files -------------------------------------------------------------------------

    def clone(
        self,
        new_params: dict[str, Any] | None = None,
        include_attributes: bool = False,  # noqa: FBT001, FBT002 - as in river
    ) -> Self:
        """A fresh estimator with the same parameters; with `include_attributes`, what it knows."""
        clone = super().clone(new_params)
        if include_attributes:
            clone.restore(copy.deepcopy(self.state()))
        return clone

    def state(self, *, features: bool = True) -> dict[str, Any]:
        """Return what was learned as plain data and arrays.

        Without `features`, it is for a checkpoint that keeps shared features once.
        """
        self.engine.waiting()
        state = {
            "label_name": self._label_name,
            "learner": self.engine.learner.state(),
            "seed": self._seed,
        }
        return state | ({"features": self.engine.reader.state()} if features else {})

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
        """Write the model to a file; `load` goes on from it, to the bit.

        `notes` are plain data kept beside it, such as where it came from; `load` leaves them be.
        """
        saved = self.described(self.state())
        model_file.write(path, saved if notes is None else {**saved, "notes": dict(notes)})

    def described(self, state: dict[str, Any]) -> dict[str, Any]:
        """What a file holds: the kind of estimator, its parameters, and this state."""
        params = {name: plain(getattr(self, name)) for name in self._get_params()}
        return {"estimator": type(self).__name__, "params": params, "state": state}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, learner: str | None = None) -> Self:
        """The model that `save` wrote, or a learner of a daemon's checkpoint directory.

        The daemon may be running: its newest checkpoint counts. Nothing in the file is executed.
        """
        directory = os.path.isdir(path)  # noqa: PTH112 - bytes are paths too
        data = checkpoints.model(path, learner) if directory else model_file.read(path)
        return cls.revived(data, path)

    @classmethod
    def revived(cls, data: dict[str, Any], path: str | os.PathLike[str]) -> Self:
        """The model of a file's data; `path` is what errors call it."""
        try:
            return cls._revived(data, path)
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(
                f"{path} is not a model that this streamlearn understands: {error!r}"
            ) from error

    @classmethod
    def _revived(cls, data: dict[str, Any], path: str | os.PathLike[str]) -> Self:
        kind = data["estimator"]
        kinds = {kind.__name__: kind for kind in (cls, *descendants(cls))}
        if kind not in kinds:
            raise ModelFileError(
                f"{path} holds a {kind}, not a {cls.__name__}: load it with {kind}.load"
            )
        params = {name: revived(value) for name, value in data["params"].items()}
        model: Self = kinds[kind](**params)
        model.restore(data["state"])
        return model

    def _name_labels(self, y: Any) -> None:
        """Remember what a series of labels is called."""
        name = getattr(y, "name", None)
        self._label_name = name if isinstance(name, str | int) else None


class Contribution(NamedTuple):
    """What a feature adds to a score: its value times its weight; the intercept has no name."""

    name: Any
    value: float
    weight: float
    contribution: float


def contribution(name: Any, value: float, weight: float) -> Contribution:
    """Of a feature with this value and weight."""
    return Contribution(name, value, weight, value * weight)


def whole(value: Any) -> bool:
    """Whether `value` is a whole number, and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def descendants(kind: type[Any]) -> list[type[Any]]:
    """All subclasses, theirs too."""
    return [below for sub in kind.__subclasses__() for below in (sub, *descendants(sub))]


def plain(value: Any) -> Any:
    """A parameter as plain data: specs by name and parameters. Every dict in it is a tagged one."""
    if isinstance(value, Parameterized):
        params = {name: plain(item) for name, item in value.params.items()}
        return {"spec": type(value).__name__, "params": params}
    if isinstance(value, Reader):
        return {"features": value.fresh().state()}
    if isinstance(value, Mapping):
        return {"mapping": [(plain(key), plain(item)) for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return type(value)([plain(item) for item in value])
    return value


def revived(value: Any) -> Any:
    """The inverse of `plain`; only classes of this package are ever made."""
    if isinstance(value, tuple | list):
        return type(value)([revived(item) for item in value])
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {revived(key): revived(item) for key, item in value["mapping"]}
    if "features" in value:
        return from_state(value["features"])
    kinds = {kind.__name__: kind for kind in descendants(Parameterized)}
    if value["spec"] not in kinds:
        raise ModelFileError(f"the model needs {value['spec']}, which is not known here")
    return kinds[value["spec"]](**{name: revived(item) for name, item in value["params"].items()})
