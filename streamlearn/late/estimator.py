"""An estimator whose labels arrive later than its features, matched by id."""

from __future__ import annotations

import contextlib
import copy
import math
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from river import base

from streamlearn.core.progressive import WeightedMean
from streamlearn.core.weights import checked_weight
from streamlearn.errors import IncompatibleError, InvalidEventError, ModelFileError
from streamlearn.estimators import model_file
from streamlearn.estimators.classifier import LinearClassifier
from streamlearn.estimators.linear import Event, Linear
from streamlearn.estimators.parameter_data import decode_param, encode_param
from streamlearn.estimators.regressor import LinearRegressor
from streamlearn.late.corrections import check_corrections
from streamlearn.late.delayed_learner import DelayedLearner
from streamlearn.late.join import DROP, Join
from streamlearn.late.joined_rows import PREDICTED

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable


class DelayedLabels(base.Base):
    """Predict events now, hold their features, and learn them when their labels arrive.

    An event is learned with its original features, and `loss` is that of its original prediction. A
    label may arrive before its features. Time is the latest plausible `t` of the calls, not the
    machine's clock; see `streamlearn.late.clock`.

    Parameters
    ----------
    estimator
        A classifier, or a regressor of one target.
    hold_events
        How many events and labels may be held; beyond that, the oldest is evicted as if it
        timed out.
    hold_for
        How many seconds features are held without a label; None: until they are evicted.
    on_timeout
        `"drop"`, or the label to learn when none arrives in time.
    corrections
        Learn a label that arrives after its timeout, and undo what was learned at the timeout. For
        rules that sum slopes (dual averaging); others are refused.

    Examples
    --------
    >>> import streamlearn as sl
    >>> model = sl.DelayedLabels(sl.LinearClassifier(), hold_for=1800.0, on_timeout=False)
    >>> model.predict_one("e1", {"ad": "shoes"}, t=0.0)  # None: no label yet
    >>> model.predict_one("e2", {"ad": "hats"}, t=60.0)
    >>> model.learn_one("e1", True, t=75.0)
    >>> model.predict_one("e3", {"ad": "hats"}, t=2000.0)  # e2 timed out
    False
    >>> model.held, model.counts["joined"], model.counts["timed_out"], round(model.loss, 3)
    (1, 1, 1, 0.693)
    """

    def __init__(
        self,
        estimator: LinearClassifier | LinearRegressor,
        *,
        hold_events: int = 1_000_000,
        hold_for: float | None = None,
        on_timeout: Any = DROP,
        corrections: bool = False,
    ) -> None:
        if not isinstance(estimator, LinearClassifier | LinearRegressor):
            raise IncompatibleError(
                f"estimator must be a LinearClassifier, a LinearRegressor or a preset, "
                f"not {estimator!r}"
            )
        if estimator.objective.loss.kind == "multitarget":
            raise IncompatibleError(
                f"{estimator!r} has several targets, but a delayed label is a single value"
            )
        self.estimator = estimator
        self.hold_events = hold_events
        self.hold_for = hold_for
        self.on_timeout = on_timeout
        self.corrections = corrections
        # Rows are learned without the GIL; other threads must not add rows meanwhile.
        self._lock = threading.Lock()
        self._accepted: dict[Any, None] = {}
        label = on_timeout.item() if isinstance(on_timeout, np.generic) else on_timeout
        if not (isinstance(label, str) and label == DROP):
            try:
                self._accepted_label(label)
            except InvalidEventError as error:
                raise InvalidEventError(
                    f"on_timeout must be {DROP!r} or a label: {error}"
                ) from None
        self._join = Join(hold_events, hold_for, label, corrections)
        self._learner = DelayedLearner(estimator, self._join)
        self._loss = WeightedMean()
        if corrections:
            check_corrections(estimator)

    # -- events and labels ------------------------------------------------------------------------

    def predict_one(self, id: int | str | bytes, x: Event, t: Any = None, w: float = 1.0) -> Any:  # noqa: A002 - the event's id
        """Predict an event of time `t`, and hold it until its label arrives.

        An event whose id is known is predicted, but not held again.
        """
        with self._lock:
            return self.estimator.prediction(*self._predicted(id, x, t, w))

    def score_one(self, id: int | str | bytes, x: Event, t: Any = None, w: float = 1.0) -> Any:  # noqa: A002 - the event's id
        """Do `predict_one`, and return the score; an array with several outputs."""
        with self._lock:
            return self._predicted(id, x, t, w)[0]

    def learn_one(self, id: int | str | bytes, y: Hashable, t: Any = None) -> None:  # noqa: A002 - the event's id
        """Learn the event of a label of time `t`, or hold the label until its event arrives."""
        key, moment = encode_id(id), seconds(t)
        with self._lock:
            label = self._accepted_label(y)
            self.estimator.engine.raise_if_busy()
            self._join.add_label(label, key, moment)
            self._learn()

    def _accepted_label(self, y: Any) -> Any:
        """Return a label as a Python object; InvalidEventError if it cannot be learned."""
        if self.estimator.learns != "classes":
            self.estimator.check_labels([y])
            return y if isinstance(y, float) else float(y)
        label = y.item() if isinstance(y, np.generic) else y
        try:
            known = label in self._accepted
        except TypeError:
            raise InvalidEventError(f"a label must be hashable, got {y!r}") from None
        if not known:
            self.estimator.check_labels([*self._accepted, label])
            self._accepted[label] = None
        return label

    def _predicted(
        self, key: int | str | bytes, x: Event, t: Any, w: float
    ) -> tuple[Any, int | None]:
        """Hold an event, and return its score and the number of labels known then; None: as now."""
        weight = checked_weight(w)
        self.estimator.engine.raise_if_busy()  # before any change
        self._join.add_event(self.estimator.reader, x, encode_id(key), seconds(t), weight)
        return self._learn()

    def _learn(self) -> tuple[Any, int | None]:
        """Learn and predict the rows of the join; return the last prediction, as `_predicted`."""
        rows = self._join.rows
        if not len(rows):
            return None, None
        try:
            done, score = self._learner.learn_each(self._loss)
            return (score, None) if done else self._learn_batch()
        finally:
            self._join.clear()

    def _learn_batch(self) -> tuple[Any, int | None]:
        rows = self._join.rows
        scored = self._learner.learn(["loss"])
        losses = scored.measures["loss"]
        learned = ~np.isnan(losses)
        self._loss.add(losses[learned], rows.weights[learned])
        predicted = np.flatnonzero(rows.roles == PREDICTED).tolist()
        if not predicted:
            return None, None
        last = predicted[-1]
        score = scored.scores[last]
        return score if scored.scores.ndim > 1 else float(score), int(scored.known_labels[last])

    # -- metrics ----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """The number of events and labels held."""
        return self._join.held

    @property
    def counts(self) -> dict[str, int]:
        """The number of events and labels by outcome; timed_out includes evicted."""
        return self._join.counts

    @property
    def loss(self) -> float:
        """The mean loss of the original predictions of learned events; NaN before the first."""
        return self._loss.mean

    @property
    def now(self) -> float:
        """The time of the stream; NaN before the first `t`."""
        return self._join.clock.now

    # -- copies and files -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything except the estimator as plain data and arrays."""
        return {
            "join": self._join.state(),
            "predictions": self._learner.state(),
            "loss": self._loss.state(),
            "accepted": list(self._accepted),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`, bit for bit; the estimator is restored separately."""
        self._join.restore(state["join"])
        self._learner.restore(state["predictions"])
        self._loss.restore(state["loss"])
        self._accepted = dict.fromkeys(state["accepted"])

    def _settings(self) -> dict[str, Any]:
        names = ("hold_events", "hold_for", "on_timeout", "corrections")
        return {one: getattr(self, one) for one in names}

    def _parts(self) -> dict[str, Any]:
        return {"estimator": self.estimator, "params": self._settings(), "state": self.state()}

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return self._parts()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["estimator"], **state["params"])  # type: ignore[misc]
        self.restore(state["state"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the estimator and the join consistently, even while other threads learn."""
        with self._lock:
            parts = copy.deepcopy(self._parts(), memo)
        found = type(self).__new__(type(self))
        found.__setstate__(parts)
        return found

    def __copy__(self) -> Self:
        """Copy the estimator too: stored scores belong to one estimator."""
        return copy.deepcopy(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator and all held events to a file, from which `load` resumes."""
        one = self.estimator
        with self._lock:
            saved = {
                "estimator": "DelayedLabels",
                "model": one.file_data(one.state()),
                "params": encode_param(self._settings()),
                "state": self.state(),
            }
        model_file.write(path, saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load what `save` wrote; nothing in the file is executed."""
        data = model_file.read(path)
        if data.get("estimator") != "DelayedLabels":
            raise ModelFileError(
                f"{path} holds a {data.get('estimator')}, not a DelayedLabels; load it with the "
                "`load` of its own class"
            )
        try:
            settings = {
                key: decode_param(value) for key, value in decode_param(data["params"]).items()
            }
            one: Any = Linear.from_file_data(data["model"], path)
            found = cls(one, **settings)
            found.restore(data["state"])
        except (LookupError, TypeError, AttributeError) as error:
            raise ModelFileError(
                f"{path} is not a model that this version of streamlearn can read: {error!r}"
            ) from error
        return found


def encode_id(given: int | str | bytes) -> bytes:
    """Return an id as bytes; a number and its text are the same id.

    >>> encode_id(17), encode_id("e1")
    (b'17', b'e1')
    """
    if isinstance(given, bytes):
        return given
    if isinstance(given, bool) or not isinstance(given, int | str | np.integer):
        raise ValueError(f"id must be a string, bytes or an integer, not {given!r}")
    return str(given).encode(errors="surrogatepass")


def seconds(t: Any) -> float:
    """Return a time in seconds since 1970; NaN: none. A datetime without a time zone is UTC."""
    if type(t) is float and math.isfinite(t):
        return t
    if t is None:
        return math.nan
    if isinstance(t, datetime) and t == t:  # noqa: PLR0124 - pandas' NaT is not itself
        return (t if t.tzinfo is not None else t.replace(tzinfo=UTC)).timestamp()
    number = isinstance(t, int | float | np.integer | np.floating)
    if number and not isinstance(t, bool | np.timedelta64):
        with contextlib.suppress(OverflowError):
            if math.isfinite(moment := float(t)):
                return moment
    raise ValueError(f"t must be a finite number of seconds or a datetime, not {t!r}")
