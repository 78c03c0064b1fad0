"""Build the fleet from a configuration."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.features.fields import Buckets
from streamlearn.fleet.packed_batch import Wanted
from streamlearn.fleet.reader_pool import ReaderPool
from streamlearn.fleet.remote_reader import Instructions, settings_of_reader
from streamlearn.kafka import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlearn import config
    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.daemon.learners import Learners
    from streamlearn.daemon.process.log import Log
    from streamlearn.kafka.reader import KafkaReader


def connect(
    settings: config.Config, log: Log
) -> Callable[[EventReader, Learners, Connection], Connection] | None:
    """Return how the daemon connects if other processes read; None without them."""
    if settings.fleet.readers == 0:
        return None

    def through_readers(
        events: EventReader, learners: Learners, connection: Connection
    ) -> Connection:
        own = {one.name: getattr(connection, one.name) for one in fields(Connection)}
        return FleetConnection(**own, settings=settings, events=events, learners=learners, log=log)

    return through_readers


@dataclass(frozen=True, kw_only=True)
class FleetConnection(Connection):
    """A connection whose readers are other processes."""

    settings: config.Config
    events: EventReader
    learners: Learners
    log: Log

    def reader(self, *, isolation: str, fetch_bytes: int, group: str | None) -> KafkaReader:
        """Start the readers, with the decoders' state of the checkpoint."""
        settings, fleet = self.settings, self.settings.fleet
        require_fixed_decoding(self.events, self.learners)
        orphans = settings.labels is not None and settings.labels.orphans
        predictions = settings.predictions
        return ReaderPool(
            super().reader(isolation=isolation, fetch_bytes=fetch_bytes, group=group),
            Instructions(
                settings_of_reader(settings),
                max(fetch_bytes // fleet.readers, 1 << 16),
                self.learners.reader.state(),
                [decoder.state() for decoder in self.events.decoders],
                Wanted(
                    keys=predictions.topic is not None or predictions.path is not None,
                    everything=orphans,
                ),
            ),
            fleet.readers,
            address=fleet.ray,
            deadline_seconds=fleet.deadline_seconds,
            log=self.log,
        )


def require_fixed_decoding(events: EventReader, learners: Learners) -> None:
    """Stop if decoding still depends on the order of events, which no reader knows."""
    if not events.labels.closed and any(learner.learns == "classes" for learner in learners):
        raise Stop(
            Exit.USAGE,
            "fleet.readers requires labels that are declared, or closed by an earlier run; set "
            "format.labels, or run once with fleet.readers = 0",
        )
    reader = learners.reader
    known = reader.frozen()
    warming = [
        name
        for name, field in reader.fields.items()
        if isinstance(field, Buckets)
        and isinstance(field.edges, int)
        and "edges" not in known.get(name, {})
    ]
    if warming:
        raise Stop(
            Exit.USAGE,
            f"fleet.readers requires the edges of buckets, but those of {', '.join(warming)} are "
            "not learned yet; declare them, or run with fleet.readers = 0 until they are",
        )
