"""A batch of records that was processed, as observers see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlearn.core.arrays import Array
    from streamlearn.core.invalid_record import InvalidRecord
    from streamlearn.daemon.learners import LearnerResult
    from streamlearn.engine.events import Events
    from streamlearn.stream import Records
    from streamlearn.stream.polled import Polled


@dataclass(slots=True)
class PartitionBatch:
    """Consecutive records of one partition, and the invalid ones among them."""

    records: Records
    start: int  # the position before them
    invalid: list[InvalidRecord] = field(default_factory=list)
    tombstones: int = 0
    bytes: int = 0  # of the values


@dataclass(slots=True)
class Batch:
    """A processed batch, in polled order; valid until the call returns.

    Each row of `events` is predicted and learned; with delayed labels it may be only one of both.
    `predicted` marks the rows that were predicted.
    """

    parts: Sequence[PartitionBatch]
    polled: Polled  # the same records, in polled order
    events: Events
    results: Mapping[str, LearnerResult]  # by learner
    predicted: Array
    unlabeled: int = 0  # events without a label or of weight 0, never learned
    since_label: int | None = None  # events since the last label; None: labels are delayed
    schemas: Mapping[int | str, int] = field(default_factory=dict)  # records by schema id
    seconds: dict[str, float] = field(default_factory=dict)  # by stage: decode, learn, publish
