"""How records become rows to be predicted and learned: at once, or when their labels come.

The seam between the daemon and late labels. `At once` is the way of events that bring their labels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.daemon.collectors.observer import InvalidRecord
    from streamlearn.daemon.learners import Learner
    from streamlearn.estimators.frames import Array
    from streamlearn.stream import Decoder, Records
    from streamlearn.stream.formats.label_set import LabelSet
    from streamlearn.stream.sources.polled import Polled


class EventReader(Protocol):
    """Records in, rows out; what it remembers is in the checkpoint."""

    delayed: bool  # whether labels come later
    decoder: Decoder  # of the events
    labels: LabelSet  # which labels there may be

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Read a batch, of which `rows` are what there is to do; what could not be read."""

    @property
    def rows(self) -> Events:
        """The rows of the last batch."""

    @property
    def predicted(self) -> Array:
        """Which of them were predicted, for the first time."""

    @property
    def learned(self) -> Array:
        """The weight with which each of them is learned and measured; 0: not."""

    @property
    def closed(self) -> Array:
        """Which of them came after the labels had closed."""

    def orphans(self) -> list[tuple[Records, str]]:
        """Records that have waited in vain, and the reason."""

    def attach(self, learners: Sequence[Learner]) -> None:
        """These learners learn the rows."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


def closing_row(labels: LabelSet, before: int, labeled: Array) -> float:
    """The row that closed the labels, of which `before` were seen before the first row.

    -1: they were closed before it; infinite: they are not closed.
    """
    if not labels.closed:
        return math.inf
    if labels.closed_at <= before:
        return -1.0
    return float(np.flatnonzero(labeled)[labels.closed_at - before - 1])


class ImmediateEventReader:
    """Events that bring their own labels."""

    delayed = False

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.labels = decoder.labels
        self.rows = Events()
        self._before = 0  # labeled events before the batch

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Decode them."""
        self._before = self.labels.events
        self.rows.clear()
        self.decoder.decode(polled.values, self.rows, polled.order)
        return self.rows.bad

    @property
    def closed(self) -> Array:
        """Those behind the event that closed the labels."""
        row = closing_row(self.labels, self._before, self.learned > 0.0)
        return np.arange(len(self.rows)) > row

    @property
    def predicted(self) -> Array:
        """All of them."""
        return np.ones(len(self.rows), dtype=bool)

    @property
    def learned(self) -> Array:
        """Those with a label."""
        return self.rows.learned_weights()

    def orphans(self) -> list[tuple[Records, str]]:
        """None."""
        return []

    def attach(self, learners: Sequence[Learner]) -> None:
        """Nothing to prepare."""

    def state(self) -> dict[str, Any]:
        """The labels met."""
        return {"decoder": self.decoder.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.decoder.restore(state["decoder"])
