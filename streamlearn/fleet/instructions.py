"""What every process of a fleet is told at its start, and what it makes of that.

Its process keeps nothing that matters: which partitions it reads, and from where, is told by the
daemon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

import streamlearn
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.learners import Learners
from streamlearn.fleet.packed_batch import Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.event_reader import EventReader
    from streamlearn.kafka.reader import KafkaReader


@dataclass(frozen=True)
class Instructions:
    """What every process is told at its start."""

    settings: config.Config
    fetch_bytes: int
    features: Mapping[str, Any] = field(default_factory=dict)  # the state of the feature reader
    decoders: list[dict[str, Any]] = field(default_factory=list)  # of the decoders
    wanted: Wanted = field(default_factory=Wanted)
    version: str = streamlearn.__version__


def settings_of_process(settings: config.Config) -> config.Config:
    """Return what such a process needs of the daemon's settings."""
    return msgspec.structs.replace(settings, fleet=config.FleetConfig())


def require_same_version(told: Instructions) -> None:
    """Raise ConfigError if this node has another version than the daemon."""
    own = streamlearn.__version__
    if told.version != own:
        problem = config.ConfigProblem(
            "fleet.ray",
            f"a node has streamlearn {own}, and the daemon {told.version}; install the same "
            "version on all",
        )
        raise config.ConfigError("fleet", [problem])


def prepare(told: Instructions) -> tuple[Learners, EventReader]:
    """Build fresh learners, and the reader of events with decoders as the daemon's."""
    settings = told.settings
    shared = config.feature_reader(settings.features)
    learners = Learners(config.estimators(settings), shared)
    events = build.event_reader(settings, shared, list(learners))
    if told.decoders:
        shared.restore(dict(told.features))
        for decoder, state in zip(events.decoders, told.decoders, strict=True):
            decoder.restore(state)
    return learners, events


def connect(told: Instructions) -> KafkaReader:
    """Connect to the brokers, for reading."""
    source = told.settings.source
    assert isinstance(source, config.KafkaSourceConfig)  # noqa: S101 - checked before
    return build.connection(source).reader(
        isolation=source.isolation, fetch_bytes=told.fetch_bytes, group=None
    )
