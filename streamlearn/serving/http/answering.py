"""Which learner answers, and what is logged of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import UNSET

from streamlearn.serving.http.predicting import Prediction, Predictor, Refusal
from streamlearn.serving.http.reading import RequestError
from streamlearn.serving.http.roles import Roles
from streamlearn.serving.split import bucket_of, number_of
from streamlearn.stream.impressions import ENCODER, HEADER, Served

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from streamlearn.serving.http.follower import Follower
    from streamlearn.serving.http.options import Options
    from streamlearn.serving.split import Split
    from streamlearn.stream.sinks.sink import Record


@dataclass(slots=True)
class Answer:
    """The predictions for a request, in the order of its records, and what is to be logged."""

    predictions: list[Prediction | Refusal]
    predictor: Predictor | None = None  # that made all of them; None: each event has its own
    invalid: int = 0
    arms: dict[str, int] = field(default_factory=dict)  # events by arm
    impressions: list[Record] = field(default_factory=list)


class Answering:
    """Answer the records of requests.

    The learner that a request names answers it; otherwise the one that is promoted, the one of the
    event's arm, the configured one, or the first, whichever comes first.
    """

    def __init__(self, options: Options, follower: Follower) -> None:
        self.follower = follower
        self.learner = options.learner
        self.split = options.split
        self.logs = options.log is not None
        self._predictors: dict[str, Predictor] = {}
        self._roles: tuple[Mapping[str, Any], Roles] | None = None

    @property
    def default(self) -> str:
        """The learner that answers if neither the request nor an arm names one."""
        published, promoted = self.follower.snapshots, self.follower.promoted
        if promoted in published and promoted is not None:
            return promoted
        return self.learner or min(published, default="")

    def predictor(self, learner: str | None) -> Predictor:
        """Return the predictor of a learner, with its newest snapshot."""
        snapshots = self.follower.snapshots
        if not snapshots:
            raise RequestError(503, "no model has been published yet", retry_after="1")
        name = learner or self.default
        if name not in snapshots:
            known = ", ".join(sorted(snapshots))
            raise RequestError(404, f"no learner {name!r}; there are: {known}")
        found = self._predictors.get(name)
        if found is None or found.snapshot is not snapshots[name]:
            found = self._predictors[name] = Predictor(snapshots[name])
        return found

    def answer(
        self, records: Sequence[bytes], learner: str | None, *, explain: bool, log: bool
    ) -> Answer:
        """Predict records, each learner's with one version."""
        log = log and self.logs
        if self.split is not None and learner is None:
            return self._by_arm(self.split, records, explain=explain, log=log)
        predictor = self.predictor(learner)
        roles, now = self._roles_of(predictor), time.time()
        if log and predictor.time_is_feature:
            records = [roles.timed(one, now) for one in records]
        answer = Answer(predictor.predict(records, explain=explain), predictor)
        answer.invalid = len(predictor.events.invalid)
        if log:
            answer.impressions = [
                impression(one, record, predictor, roles, now, None)
                for one, record in zip(answer.predictions, records, strict=True)
                if isinstance(one, Prediction)
            ]
        return answer

    def _by_arm(
        self, split: Split, records: Sequence[bytes], *, explain: bool, log: bool
    ) -> Answer:
        """Predict each event by the learner of its arm; without a user there is no arm."""
        predictor = self.predictor(None)
        roles, now = self._roles_of(predictor), time.time()
        if log and predictor.time_is_feature:
            records = [roles.timed(one, now) for one in records]
        users = [roles.user_of(record) for record in records]
        numbers = [None if user is None else number_of(user, split.salt) for user in users]
        arms = [None if number is None else split.arm(number) for number in numbers]
        found: list[Any] = [None] * len(records)
        answer = Answer(found)
        for arm in dict.fromkeys(arms):
            predictor = self.predictor(self._learner_of(arm))
            mine = [i for i, one in enumerate(arms) if one == arm]
            predictions = predictor.predict([records[i] for i in mine], explain=explain)
            invalid = len(predictor.events.invalid)
            answer.invalid += invalid
            if arm is not None:
                answer.arms[arm] = len(mine) - invalid
            for i, one in zip(mine, predictions, strict=True):
                found[i] = one
                if isinstance(one, Refusal):
                    continue
                one.learner, one.version = predictor.learner, predictor.version
                one.arm = UNSET if arm is None else arm
                if log:
                    answer.impressions.append(
                        impression(one, records[i], predictor, roles, now, numbers[i])
                    )
        return answer

    def _learner_of(self, arm: str | None) -> str | None:
        """Return the learner of an arm; None: the default one."""
        published, promoted = self.follower.snapshots, self.follower.promoted
        return arm if promoted not in published and arm in published else None

    def _roles_of(self, predictor: Predictor) -> Roles:
        """Return the fields of events with a role."""
        fields = predictor.snapshot.header.get("fields", {})
        if self._roles is None or self._roles[0] != fields:
            by = None if self.split is None else self.split.by
            self._roles = (fields, Roles(fields, by))
        return self._roles[1]


def impression(
    prediction: Prediction,
    record: bytes,
    predictor: Predictor,
    roles: Roles,
    now: float,
    number: int | None,
) -> Record:
    """Return the record of a served prediction, which gets an id if it has none."""
    if prediction.id is UNSET:
        prediction.id = next(roles.ids)
    name = prediction.id
    unknown = predictor.classes and len(predictor.labels) < 2  # its sign may still change
    served = Served(
        predictor.learner,
        predictor.version,
        now,
        bucket_of(number_of(name) if number is None else number),
        None if unknown or prediction.score is UNSET else prediction.score,
        None if prediction.arm is UNSET else prediction.arm,
    )
    value = roles.completed(record, name, now)
    return value, name.encode(), [(HEADER, ENCODER.encode(served))]
