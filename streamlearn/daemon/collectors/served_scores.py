"""Measure what was served: the score in an impression's header, once its label is known.

The score is kept by the ticket under which the join holds the event, and is part of the checkpoint,
so each served event counts once. What learners measure themselves (progressive loss, regret) is
their own score at the arrival of the event, and does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.core.labels import label_text
from streamlearn.daemon.collectors.observer import Observer
from streamlearn.daemon.served_loss import ServedLosses
from streamlearn.late.joined_rows import LEARNED, PREDICTED, TIMED_OUT, JoinedRows
from streamlearn.stream.impressions import BUCKETS, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn import config
    from streamlearn.core.arrays import Array
    from streamlearn.daemon.batch import Batch
    from streamlearn.daemon.learners import Learner, Learners
    from streamlearn.daemon.status import Status
    from streamlearn.stream.impressions import Served


def observers(serve: config.ServeConfig | None) -> list[Observer]:
    """Return the observer of served scores, if they are logged."""
    return [] if serve is None or serve.log is None else [ServedScores()]


class ServedScores(Observer):
    """Keep served scores by ticket until their labels are known.

    A score of one output is in the first column; those of several are in a column for each label.
    """

    name = "served"

    def __init__(self) -> None:
        self.losses = ServedLosses()
        self.learners: Learners | None = None
        self.labels: list[str] = []
        self.scores = np.empty((0, 1))
        self.pairs = np.empty(0, dtype=np.int32)  # of a learner and an arm; -1: not served
        self.buckets = np.empty(0, dtype=np.int32)

    def on_start(self, learners: Learners, status: Status) -> None:  # noqa: ARG002 - the interface's
        """Share the losses with who shows them."""
        self.learners, learners.served = learners, self.losses

    def on_batch(self, batch: Batch) -> None:
        """Keep the scores of new events, and measure those whose label came."""
        rows = batch.events
        if not isinstance(rows, JoinedRows) or self.learners is None:
            return
        roles, tickets = rows.roles, rows.tickets
        arrived = np.flatnonzero((roles == PREDICTED) & (tickets >= 0))
        if len(arrived):
            self._make_room(int(tickets[arrived].max()) + 1)
            self._keep(batch, rows.index[arrived], tickets[arrived])
        outcome = ((roles == LEARNED) | (roles == TIMED_OUT)) & (tickets >= 0) & (rows.weights > 0)
        known = np.flatnonzero(outcome & (tickets < len(self.pairs)))
        known = known[self.pairs[tickets[known]] >= 0]
        names = list(self.losses.arms)
        for pair in np.unique(self.pairs[tickets[known]]).tolist():
            name, _ = names[pair]
            mine = known[self.pairs[tickets[known]] == pair]
            self._measure(self.learners[name], rows, mine, self.losses.arms[names[pair]])

    def _make_room(self, tickets: int) -> None:
        """Make room for all tickets."""
        more = tickets - len(self.pairs)
        if more > 0:
            more += tickets // 8
            self.scores = np.pad(self.scores, ((0, more), (0, 0)), constant_values=np.nan)
            self.pairs = np.pad(self.pairs, (0, more), constant_values=-1)
            self.buckets = np.pad(self.buckets, (0, more))

    def _keep(self, batch: Batch, numbers: Array, tickets: Array) -> None:
        """Keep the served scores of these records."""
        self.pairs[tickets] = -1
        which, places = batch.polled.find(numbers)
        records = batch.polled.records
        for k, i, ticket in zip(which.tolist(), places.tolist(), tickets.tolist(), strict=True):
            headers = records[k].headers
            served = None if headers is None else read(headers[i])
            if served is not None and self._known(served.learner) and served.score is not None:
                self._keep_one(served, ticket)

    def _known(self, learner: str) -> bool:
        return self.learners is not None and learner in self.learners.members

    def _keep_one(self, served: Served, ticket: int) -> None:
        """Keep a served score."""
        self.pairs[ticket] = self.losses.number_of(served.learner, served.arm or "")
        self.buckets[ticket] = served.bucket % BUCKETS
        self.scores[ticket] = np.nan
        if not isinstance(served.score, dict):
            self.scores[ticket, 0] = served.score
            return
        if new := [label for label in served.score if label not in self.labels]:
            self.labels += new
            wider = ((0, 0), (0, len(new)))
            self.scores = np.pad(self.scores, wider, constant_values=np.nan)
        for label, score in served.score.items():
            self.scores[ticket, 1 + self.labels.index(label)] = score

    def _measure(self, learner: Learner, rows: JoinedRows, known: Array, loss: Any) -> None:
        """Measure served scores by the learner's loss."""
        model, tickets = learner.model, rows.tickets[known]
        scores = self.scores[tickets][:, self._columns(model.outputs, learner)]
        codes = np.array([model.code_and_factor(rows.label_of(i))[0] for i in known.tolist()])
        finite = np.isfinite(scores).all(axis=1) & ~np.isnan(codes)
        if finite.any():
            losses = type(model).score_measures["loss"](
                model, np.ascontiguousarray(scores[finite]), codes[finite]
            )
            loss.add(self.buckets[tickets][finite], losses, rows.weights[known][finite])

    def _columns(self, outputs: Sequence[Any], learner: Learner) -> list[int]:
        """Return the columns of the outputs of a learner."""
        if learner.model.engine.learner.outputs == 1:
            return [0]
        texts = [label_text(label) for label in outputs]
        return [1 + self.labels.index(text) if text in self.labels else 0 for text in texts]

    def state(self) -> dict[str, Any]:
        """Copy the state for a checkpoint."""
        return {
            "losses": self.losses.state(),
            "labels": list(self.labels),
            "scores": self.scores.copy(),
            "pairs": self.pairs.copy(),
            "buckets": self.buckets.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.losses.restore(state["losses"])
        self.labels = list(state["labels"])
        self.scores, self.pairs = state["scores"].copy(), state["pairs"].copy()
        self.buckets = state["buckets"].copy()
