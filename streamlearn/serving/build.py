"""Build what publishes and serves from a configuration."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn import config
from streamlearn.daemon.builders.sources import connection
from streamlearn.serving.http.options import LogOptions, Options
from streamlearn.serving.publisher import Publisher
from streamlearn.serving.split import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlearn.daemon.process.log import Log


def observers(settings: config.Config, log: Log) -> list[Publisher]:
    """Return the publisher of snapshots, if they are configured."""
    serve = settings.serve
    if serve is None:
        return []
    return [
        Publisher(
            directory_of(settings),
            serve,
            config.event_fields(settings.format),
            log,
        )
    ]


def directory_of(settings: config.Config) -> Path:
    """Return the directory of the snapshots."""
    serve, checkpoint = settings.serve, settings.checkpoint
    if serve is not None and serve.path is not None:
        return Path(serve.path)
    if checkpoint is None:
        raise ValueError("snapshots are in checkpoint.path, or in serve.path; set one of them")
    return Path(checkpoint.path) / "serving"


def options(settings: config.Config, counts: Path) -> Options:
    """Return the settings of the server; `counts` is a directory for the processes' counts."""
    serve = settings.serve
    if serve is None:
        raise ValueError("the configuration has no [serve], so its daemon publishes no snapshots")
    split = serve.split
    served = serve.learners or tuple(learner.name for learner in settings.learners)
    return Options(
        path=directory_of(settings),
        counts=counts,
        settings=serve,
        learner=serve.learner or served[0],
        split=None if split is None else Split(split.arms, split.by, split.salt),
        log=log_options(serve.log, settings.source),
    )


def log_options(log: config.ServeLogConfig | None, source: config.Source) -> LogOptions | None:
    """Return the settings of the log; None if nothing is logged."""
    if log is None or not isinstance(source, config.KafkaSourceConfig):
        return None
    kafka = connection(source)
    return LogOptions(
        settings=log,
        connect=partial(kafka.sink, log.topic, buffer_bytes=2 * log.buffer_bytes),
    )


def fields_of(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the roles of fields in the events that a model file was trained on."""
    if "format" not in notes:
        return {}
    settings = config.parse("", "", {"source.kind": "stdin", **notes["format"]}, environ={})
    return asdict(config.event_fields(settings.format))
