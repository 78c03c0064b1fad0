"""Turn records into rows to predict and learn; `DelayedEventReader` does so for delayed labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.daemon.absent_fields import AbsentFields
from streamlearn.engine.events import Events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.daemon.learners import Learner
    from streamlearn.stream import Decoder, Partition, Records
    from streamlearn.stream.formats.label_set import LabelSet
    from streamlearn.stream.polled import Polled


def closing_row(labels: LabelSet, before: int, labeled: Array) -> float:
    """Return the row that closed the label set, after `before` labels in earlier batches.

    -1 if an earlier batch closed it, infinity if it is still open.
    """
    if not labels.closed:
        return math.inf
    if labels.closed_at <= before:
        return -1.0
    return float(np.flatnonzero(labeled)[labels.closed_at - before - 1])


def decode(decoder: Decoder, polled: Polled, to: Events) -> None:
    """Decode records in their order, with their headers if those are needed."""
    headers = polled.headers if decoder.reads_headers else None
    decoder.decode(polled.values, to, polled.order, headers)


class EventReader:
    """Read events that include their labels; the state is part of the checkpoint."""

    delayed = False  # whether labels are delayed
    unjoined = 0  # delayed labels since the last one that met its event

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder  # of the events
        self.labels = decoder.labels
        self.rows = Events()  # of the last batch
        self.absent = [AbsentFields(one) for one in self.decoders]
        self._before = 0  # labeled events before the batch

    @property
    def decoders(self) -> list[Decoder]:
        """Return all decoders."""
        return [self.decoder]

    def decoder_of(self, where: Partition) -> Decoder:  # noqa: ARG002 - for subclasses
        """Return the decoder of a partition's records."""
        return self.decoder

    def read(self, polled: Polled) -> list[InvalidRecord]:
        """Read a batch into `rows`; return the invalid records."""
        self._before = self.labels.events
        self.rows.clear()
        decode(self.decoder, polled, self.rows)
        self.absent[0].add(self.rows)
        return self.rows.invalid

    @property
    def predicted(self) -> Array:
        """Mark the rows that are predicted; a row is predicted once."""
        return np.ones(len(self.rows), dtype=bool)

    @property
    def weights(self) -> Array:
        """Return the weight with which each row is learned and measured; 0 for neither."""
        return self.rows.learned_weights()

    @property
    def after_closing(self) -> Array:
        """Mark the rows that arrived after the label set was closed."""
        row = closing_row(self.labels, self._before, self.weights > 0.0)
        return np.arange(len(self.rows)) > row

    def take_schema_counts(self) -> dict[int | str, int]:
        """Return the number of records by the id of their schema, since the last call."""
        return self.decoder.take_schema_counts()

    @property
    def publishes(self) -> bool:
        """Whether predictions of the last batch are published."""
        return True

    def orphans(self) -> list[Records]:
        """Return label records that never found an event, with the reason."""
        return []

    def attach(self, learners: Sequence[Learner]) -> None:
        """Prepare the learners that will learn the rows."""

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"decoder": self.decoder.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.decoder.restore(state["decoder"])
